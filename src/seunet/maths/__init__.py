"""Pure functions: nothing here reads, writes, prints or holds state; torch and numpy are all it knows."""
