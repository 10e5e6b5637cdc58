"""TODO-door."""
