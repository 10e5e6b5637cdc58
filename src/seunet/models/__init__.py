"""One U skeleton and the ways to fill it; model files."""
