"""The map of the rooms is that of the code, and what CONTRIBUTING.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

from tools.map_of_rooms import PICTURE, drawn, files_of, imported, layers

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def test_the_map_of_the_rooms_is_drawn_from_the_code_as_it_is() -> None:
    assert PICTURE.read_text() == drawn(), "run python tools/map_of_rooms.py"


def test_the_map_has_every_import_and_all_of_them_point_downwards() -> None:
    found = layers()
    for place, names in enumerate(found):
        allowed = {*names, "__version__", *(name for below in found[place + 1 :] for name in below)}
        assert {used for name in names for path in files_of(name) for used in imported(path)} <= allowed


def test_the_files_that_contributing_names_are_there() -> None:
    paths = set(re.findall(r"[\w./]+/[\w.]+\.(?:py|md|svg)", PAGE))
    assert len(paths) > 25
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_names_that_contributing_gives_are_in_those_files() -> None:
    for path, name in (
        ("src/seunet/segmentation/tiled/receptive_field.py", "def layer_radius"),
        ("src/seunet/models/registry.py", "_RECIPES"),
        ("src/seunet/layers/shared_weight_conv.py", "class ScaleConvolution"),
        ("src/seunet/images/image.py", "class Image"),
        ("src/seunet/results/write.py", "def write_results"),
        ("tests/cli/test_segment.py", "FILES = "),
    ):
        assert name in (ROOT / path).read_text()
