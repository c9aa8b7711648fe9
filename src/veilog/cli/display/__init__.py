"""How the command shows things to people: tables and panels. Nothing here computes anything."""
