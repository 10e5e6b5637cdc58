"""Settings of the whole suite: one thread a worker, and Hypothesis without a clock (machines are shared and slow)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# Some virtual machines announce AMX and kill who uses it; torch reads this when half precision is first used.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

# Tests of Ctrl-C start processes, which would be deaf to it where the run itself was begun in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import hypothesis
import pytest
import torch

from support.training import prepared_nuclei
from tests.support.tissue_model import dark_disc_model

hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _fixed_seed_and_threads() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)


@pytest.fixture(scope="session")
def nuclei(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared set of six small images, not to be changed: 24 windows of 32 px, differing in labelled pixels."""
    return prepared_nuclei(tmp_path_factory.mktemp("nuclei"))


@pytest.fixture(scope="session")
def disc_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small model that finds dark discs, not to be changed."""
    return dark_disc_model(tmp_path_factory.mktemp("model") / "discs")
