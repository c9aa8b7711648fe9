"""Rules that every released case obeys: declared, public, and checked before anything is asked."""
