"""What is measured: every module prints its figures and writes them as JSON to results/benchmarks."""
