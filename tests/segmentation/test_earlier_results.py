"""What OUT holds: summary.csv is made of it, and a result of other options is refused by the option's name."""

from __future__ import annotations

import csv
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from seunet.errors import InputError
from seunet.results import summarise
from seunet.segmentation.options import Choices
from seunet.segmentation.run_json import OLDER_NOTE, finished

MPP = {"x": 0.25, "y": 0.25, "source": "user"}


def document(name: str = "a", **more: Any) -> dict[str, Any]:
    return {
        "format": "seunet-run/1",
        "seunet": "0.1.0",
        "image": {"file": f"{name}.png", "bytes": 7, "mpp": MPP},
        "model": {"name": "seunet", "sha256": "ab"},
        "magnification": {"downsample": 0.5},
        "choices": Choices().deciding(),
        "results": {"not_analysed": []},
        "summary": {"name": name, "mpp": "0.25", "nucleus:objects": "3"},
        **more,
    }


def put(folder: Path, content: dict[str, Any] | str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def rows(out: Path) -> list[tuple[str, str, str]]:
    table = csv.DictReader((out / "summary.csv").read_text().splitlines())
    return [(row["name"], row["status"], row.get("error", "")) for row in table]


def test_the_summary_has_a_row_for_all_that_out_holds_whoever_made_it(tmp_path: Path) -> None:
    put(tmp_path / "b", document("b"))
    put(tmp_path / "patient 1" / "a", document("renamed since"))
    put(tmp_path / "c", document("c", results={"not_analysed": [[0, 1, 0, 1, "spoilt"]]}))
    put(tmp_path / "torn", '{"format": ')
    put(tmp_path / "a training", {"format": "something else"})
    (tmp_path / "begun" / ".work").mkdir(parents=True)
    summarise(tmp_path, {"b"}, {"d": "d.png: broken"}, ["e.png: no such file"])
    assert rows(tmp_path) == [
        ("b", "done", ""),
        ("begun", "unfinished", ""),
        ("c", "part", ""),
        ("d", "failed", "d.png: broken"),
        ("patient 1/a", "done", ""),
        ("torn", "failed", "run.json cannot be read; pass --overwrite to make the result again"),
        ("", "failed", "e.png: no such file"),
    ]
    assert not (tmp_path / ".lock").exists()


def test_a_failure_stays_until_its_input_is_done(tmp_path: Path) -> None:
    put(tmp_path / "b", document("b"))
    summarise(tmp_path, set(), {"a": "a.png: broken", "b": "b: holds another result"}, ["gone.png: no such file"])
    assert rows(tmp_path)[:2] == [("a", "failed", "a.png: broken"), ("b", "done", "b: holds another result")]
    summarise(tmp_path, {"b"}, {}, [])
    assert rows(tmp_path) == [("a", "failed", "a.png: broken"), ("b", "done", "")]
    put(tmp_path / "a", document("a"))
    summarise(tmp_path, {"a"}, {}, [])
    assert rows(tmp_path) == [("a", "done", ""), ("b", "done", "")]


@pytest.mark.parametrize("table", [b"\xff\xfe", b"other,columns\n1,2\n", b""])
def test_a_table_that_is_not_ours_is_replaced(tmp_path: Path, table: bytes) -> None:
    put(tmp_path / "b", document("b"))
    (tmp_path / "summary.csv").write_bytes(table)
    summarise(tmp_path, {"b"}, {}, [])
    assert rows(tmp_path) == [("b", "done", "")]


def test_several_at_once_lose_no_row(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for step in range(5):
            put(tmp_path / f"{number}-{step}", document())
            summarise(tmp_path, {f"{number}-{step}"}, {f"x{number}-{step}": "broken"}, [])

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = rows(tmp_path)
    assert [status for _, status, _ in found].count("done") == 20
    assert [status for _, status, _ in found].count("failed") == 20


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({"image": {"file": "a.png", "bytes": 7, "mpp": {**MPP, "x": 0.5, "y": 0.5}}}, "--mpp 0.25, this is --mpp 0.5"),
        ({"image": {"file": "a.png", "bytes": 7, "mpp": None}}, "--mpp 0.25, this is no µm per pixel stated"),
        (
            {"image": {"file": "a.png", "bytes": 7, "mpp": {"x": 0.5, "y": 0.4, "source": "tiff-tag"}}},
            "--mpp 0.25, this is 0.5×0.4 µm per pixel (tiff-tag)",
        ),
        ({"choices": Choices(split=False).deciding()}, "--split, this is --no-split"),
        ({"choices": Choices(zipped=True).deciding()}, "no --gzip, this is --gzip"),
        ({"choices": Choices(instances=True).deciding()}, "no --instances, this is --instances"),
        ({"choices": Choices(min_area="10px").deciding()}, "--min-area auto, this is --min-area 10px"),
    ],
)
def test_which_option_differs_is_said_as_a_user_gives_it(tmp_path: Path, now: dict[str, Any], line: str) -> None:
    folder = put(tmp_path / "a", document())
    with pytest.raises(InputError) as caught:
        finished(folder, document(**now))
    assert str(caught.value) == f"{folder}: holds a result made with {line}; pass --overwrite or choose another OUT"


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({"seunet": "9.9"}, "holds a result made by seunet 0.1.0, this is 9.9"),
        ({"model": {"name": "seunet", "sha256": "cd"}}, "holds a result of another --model"),
        (
            {"image": {"file": "a.png", "bytes": 8, "mpp": MPP}},
            "holds a result of another image (`bytes` was 7, is 8)",
        ),
    ],
)
def test_what_else_differs_is_said(tmp_path: Path, now: dict[str, Any], line: str) -> None:
    folder = put(tmp_path / "a", document())
    with pytest.raises(InputError) as caught:
        finished(folder, document(**now))
    assert str(caught.value) == f"{folder}: {line}; pass --overwrite or choose another OUT"


def test_an_older_result_is_recognised_and_said_to_be_one(tmp_path: Path) -> None:
    older = {name: value for name, value in Choices().deciding().items() if name != "min_area"}
    folder = put(tmp_path / "a", document(choices={**older, "min_area_px": 10, "scale": "told"}))
    now = document(choices=Choices(scale="stated").deciding())
    assert (found := finished(folder, now)) is not None
    assert found.notes == (OLDER_NOTE,)
    put(folder, document(choices={**older, "min_area_px": 40}))
    assert finished(folder, document(choices=Choices(min_area="10px").deciding())) is not None  # 40 half pixels
    with pytest.raises(InputError, match="made with --min-area 10px, this is --min-area auto"):
        finished(folder, document())
    put(folder, "torn")
    with pytest.raises(InputError, match=r"run\.json: cannot be read; pass --overwrite to make the result again"):
        finished(folder, now)
