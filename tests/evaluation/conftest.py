"""A prepared set of nuclei and a small model, made once per test file."""

from __future__ import annotations

from pathlib import Path

import pytest

from seunet.models import ScaleUNet
from tests.support.prepared import prepared_nuclei, saved_model


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluation")


@pytest.fixture(scope="module")
def data(root: Path) -> Path:
    return prepared_nuclei(root)


@pytest.fixture(scope="module")
def model(root: Path) -> ScaleUNet:
    return saved_model(root / "model")
