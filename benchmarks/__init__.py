"""What is measured, against what; results as JSON with the commit they came from."""

import os

# As the `seunet` command runs: large pages for large maps (docs/speed.md), for all candidates alike.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
