# Every target works on a machine with only Python 3.11, pip and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: install browser demo test lint bench bench-data bench-training bench-results reliability matrix wheels site tutorials lock licences audit soak clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/seunet warm-up
	@touch $@

demo: $(STAMP)
	$(BIN)/seunet demo

# Chromium for the tests of the viewer, from Debian's packages; without it they are skipped.
browser:
	command -v chromium || (apt-get update && apt-get install --yes --no-install-recommends chromium)

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks.measure.network

bench-data: $(STAMP)
	$(BIN)/python -m benchmarks.measure.data
	$(BIN)/python -m benchmarks.measure.data.stain prepared/monuseg
	$(BIN)/python -m benchmarks.docs

bench-training: $(STAMP)
	$(BIN)/python -m benchmarks.measure.network.training

bench-results: $(STAMP)
	$(BIN)/python -m benchmarks.measure.segmentation.splitting
	$(BIN)/python -m benchmarks.measure.segmentation.objects
	$(BIN)/python -m benchmarks.measure.segmentation.slides
	$(BIN)/python -m benchmarks.measure.segmentation.throughput

reliability: $(STAMP)
	$(BIN)/python -m benchmarks.reliability.data
	$(BIN)/python -m benchmarks.reliability.training
	$(BIN)/python -m benchmarks.reliability.inference
	$(BIN)/python -m benchmarks.reliability.cluster
	$(BIN)/python -m benchmarks.reliability.slide_kills
	$(BIN)/python -m benchmarks.reliability.trial

# The documentation as a site, build/site/index.html; a warning is an error.
site: $(STAMP)
	$(BIN)/python -m tools.docs_site

# What the tutorials print and draw, anew.
tutorials: $(STAMP)
	$(BIN)/python tools/run_tutorials.py

# 500 images and 20 large slides in one process, about an hour.
soak: $(STAMP)
	$(BIN)/python -m benchmarks.reliability.soak

# Versions and SHA-256 of everything but torch (docs/dependencies.md). The CPU build of torch has no CUDA packages below it.
TORCH_FROM ?= --torch-backend cpu
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet uv==0.13.8
	build/lock/bin/uv pip compile pyproject.toml --quiet --all-extras --constraints constraints.txt --python-version 3.11 \
		--generate-hashes --no-annotate --no-emit-package torch $(TORCH_FROM) --custom-compile-command "make lock" --output-file requirements.lock

licences: $(STAMP)
	$(BIN)/python tools/licences.py

# Asks a data base of advisories over the network.
audit:
	$(PYTHON) -m venv build/audit
	build/audit/bin/pip install --quiet pip-audit==2.10.1
	build/audit/bin/pip-audit --require-hashes --disable-pip --requirement requirements.lock

# Image objects, runtimes, Pythons and conditions; of other Pythons those that `make wheels` kept.
matrix: $(STAMP)
	$(BIN)/python -m benchmarks.reliability.matrix --environments wheels
	$(BIN)/python -m benchmarks.reliability.round_trips
	$(BIN)/python -m benchmarks.docs

# Every Python that is found, from the wheel, without constraints: downloads torch for each.
wheels: $(STAMP)
	$(BIN)/python tools/try_wheel.py $(PYTHONS) --keep wheels

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
