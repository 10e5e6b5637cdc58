"""What is measured, against what; results as JSON with the commit they came from."""

from seunet.memory import keep_freed_memory

# As the `seunet` command runs (docs/speed.md), for all candidates alike.
keep_freed_memory()
