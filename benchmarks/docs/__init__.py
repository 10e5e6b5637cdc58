"""The marked blocks of pages, filled from committed results: `python -m benchmarks.docs`."""
