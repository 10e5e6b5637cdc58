"""Pure functions of the paper: Gaussian derivatives, σ ranges, rescaling, fusion.  Knows torch and numpy only."""
