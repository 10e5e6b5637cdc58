"""Pure functions: torch and numpy and nothing else."""
