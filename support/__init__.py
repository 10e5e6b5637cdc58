"""What tests and benchmarks share, owned by neither: made data, damaged files, oracles, runs that end when told to."""
