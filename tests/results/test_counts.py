"""Counts and areas against numbers counted by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from seunet.results.counts import summary_row, write_counts, write_summary
from seunet.results.find_objects import Tally, objects
from support.planes import ArrayPlane, nuclei_frame


def found() -> Tally:
    codes = np.zeros((10, 10), dtype=np.uint8)
    codes[0:2, 0:2], codes[5:7, 5:9], codes[9, :] = 1, 1, 255
    codes[3, 3] = 2
    tally = Tally()
    assert len(list(objects(ArrayPlane(codes), nuclei_frame(), tally=tally))) == 3
    return tally


def test_counts_by_class_and_the_areas_add_up(tmp_path: Path) -> None:
    write_counts(tmp_path / "counts.csv", found(), nuclei_frame(scale=2.0, mpp=0.5), skipped_px=40)
    assert (tmp_path / "counts.csv").read_text() == (
        "kind,name,objects,area_px,area_um2,share_of_analysed\n"
        "class,background,,148,9.25,0.74\n"
        "class,nucleus,2,48,3,0.24\n"
        "class,Drüse «µ»,1,4,0.25,0.02\n"
        "area,analysed,,200,12.5,\n"
        "area,skipped as background,,160,10,\n"
        "area,not analysed,,40,2.5,\n"
        "area,all,,400,25,\n"
    )


def test_without_mpp_the_areas_in_um2_are_empty(tmp_path: Path) -> None:
    write_counts(tmp_path / "counts.csv", found(), nuclei_frame(mpp=None))
    with (tmp_path / "counts.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["area_um2"] for row in rows} == {""}
    assert [row["area_px"] for row in rows] == ["77", "12", "1", "90", "0", "10", "100"]


def test_a_slide_where_nothing_was_analysed_has_no_shares(tmp_path: Path) -> None:
    tally = Tally()
    list(objects(ArrayPlane(np.full((3, 3), 255, dtype=np.uint8)), nuclei_frame(), tally=tally))
    write_counts(tmp_path / "counts.csv", tally, nuclei_frame())
    with (tmp_path / "counts.csv").open() as file:
        assert {row["share_of_analysed"] for row in csv.DictReader(file)} == {""}


def test_a_cohort_has_a_row_for_each_slide_sorted_by_name(tmp_path: Path) -> None:
    rows = [
        summary_row("b, c.svs", found(), nuclei_frame(scale=2.0, mpp=0.5)),
        {"name": "a.svs", "error": "not an image"},
        {"name": "", "error": "no name"},
    ]
    write_summary(tmp_path / "summary.csv", rows)
    with (tmp_path / "summary.csv").open() as file:
        first, second, third = csv.DictReader(file)
    assert list(first)[:1] == ["name"]
    assert [*first][-1] == "error"
    assert third["error"] == "no name"
    assert (first["name"], first["error"], first["nucleus:objects"]) == ("a.svs", "not an image", "")
    assert second["name"] == "b, c.svs"
    assert second["mpp"] == "0.25"
    assert (second["nucleus:objects"], second["nucleus:area_um2"]) == ("2", "3")
    assert second["not_analysed_px"] == "40"
    assert "background:objects" not in second
