"""The compiled loops: `jet.py`, `pooling.py` and `batch_norm.py` make the workers that the functions of the same names
run, from rows and strips of pixels (`rows.py`, `strips.py`) and 1-D filters and matrix products (`filters.py`).

May import: `compiling`, `vectors` and `jobs.py`.  Begin with `jet.py`.
"""
