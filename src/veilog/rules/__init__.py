"""Rules that every released case obeys: declared, public, checked before queries."""
