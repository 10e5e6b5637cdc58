"""`make bench`: what the package promises, measured."""

from __future__ import annotations

import sys

from benchmarks.measure.network import equivariance, parts, speed

if __name__ == "__main__":
    speed.main("--quick" in sys.argv)
    parts.main()
    equivariance.main()
