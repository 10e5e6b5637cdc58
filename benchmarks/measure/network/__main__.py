"""`make bench`: what the package promises, measured: speed, the parts of the CPU path, equivariance."""

from __future__ import annotations

import argparse
import sys

from benchmarks.declare import Benchmark
from benchmarks.measure.network import equivariance, parts, speed

BENCHMARK = Benchmark("measure.network", (), 16)


def parser() -> argparse.ArgumentParser:
    return speed.parser()


if __name__ == "__main__":
    speed.main(sys.argv[1:])
    parts.main([])
    equivariance.main([])
