"""Heads and probabilities as layers: what is written is what is shown."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from seunet.errors import InputError
from seunet.images import open_image
from seunet.results import ArrayPlane, Frame, head_colors, write_label_tiff, write_probabilities
from seunet.viewer import find_shown
from support.viewed import made_result, made_slide
from tests.support.served import serving

SIDE = 300
FRAME = Frame(1.0, 0, 0, 0.5, ("background", "nucleus"), ((0, 0, 0), (255, 214, 64)))


def test_heads_and_probabilities_are_layers_of_a_result_that_has_them(tmp_path: Path) -> None:
    slide = made_slide(tmp_path / "slide.tif", SIDE, [(100.0, 100.0, 20.0)])
    heads = {"heads_won": [0.25, 0.75], "head_sigmas_px": [[0.5, 1.0], [1.0, 2.0]], "objects": {"nucleus": 1}}
    folder = made_result(tmp_path / "out" / "a", slide, SIDE, [(100.0, 100.0, 20.0)], run={"results": heads})
    won = np.ones((SIDE, SIDE), dtype=np.uint8)
    won[:, 150:] = 2
    won[:10] = 0
    write_label_tiff(folder / "heads.tif", ArrayPlane(won), FRAME)
    likely = np.zeros((SIDE, SIDE), dtype=np.uint8)
    likely[50:150, 50:150] = 255
    planes = [ArrayPlane(255 - likely), ArrayPlane(likely)]
    write_probabilities(folder / "probabilities.ome.zarr", planes, FRAME, "slide")
    with serving(find_shown([str(folder)]).shown) as served:
        facts = served.ask("api/item/0").json
        assert facts["layers"] == ["heads", "heat", "labels", "slide"]
        assert [head["name"] for head in facts["heads"]] == ["head 1, σ 0.5–1 px: 25 %", "head 2, σ 1–2 px: 75 %"]
        tiles = {layer: served.ask(f"tiles/0/{layer}/0/0/0").body for layer in ("heads", "heat")}
    shown = {layer: cv2.imdecode(np.frombuffer(body, np.uint8), cv2.IMREAD_UNCHANGED) for layer, body in tiles.items()}
    first, second = head_colors(2)
    assert (shown["heads"][5, 5, 3], shown["heat"][200, 200, 3], shown["heat"][100, 100, 3]) == (0, 0, 255)
    assert tuple(shown["heads"][20, 20, 2::-1]) == first
    assert tuple(shown["heads"][20, 200, 2::-1]) == second


def test_a_folder_of_zarr_that_holds_no_probabilities_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    with pytest.raises(InputError, match=r"not the probabilities of a result \(.*\); make them again"):
        open_image(tmp_path)
