"""Settings of the whole suite: two threads, and Hypothesis without a clock (machines are shared and slow)."""

from __future__ import annotations

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _fixed_seed_and_threads() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(2)
