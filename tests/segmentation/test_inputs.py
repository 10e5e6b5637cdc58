"""Files, folders, patterns and tables become a list; what cannot be done is a line and stops nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from seunet.errors import InputError
from seunet.segmentation.inputs import Inputs, find_inputs
from seunet.segmentation.item_names import result_name


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    """A folder with images, other files and a subfolder."""
    folder = tmp_path / "slides"
    (folder / "deeper").mkdir(parents=True)
    for name in ("b.svs", "a.PNG", "c.ome.tif", "notes.txt", "._b.svs", "deeper/d.tiff"):
        (folder / name).write_bytes(b"x")
    return folder


def names(inputs: Inputs) -> list[str]:
    return [item.name for item in inputs.items]


def table(folder: Path, *lines: str) -> Path:
    path = folder / "list.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_folder_stands_for_its_own_images_in_order(slides: Path) -> None:
    found = find_inputs([str(slides)])
    assert names(found) == ["a", "b", "c"]
    assert [item.path.name for item in found.items] == ["a.PNG", "b.svs", "c.ome.tif"]
    assert found.faults == found.warnings == ()


def test_a_pattern_reaches_where_it_says(slides: Path) -> None:
    assert names(find_inputs([f"{slides}/*.svs"])) == ["b"]
    assert names(find_inputs([f"{slides}/**"])) == ["a", "b", "c", "d"]
    assert names(find_inputs([f"{slides}/**/*.tif*"])) == ["c", "d"]


def test_a_file_named_itself_may_have_any_suffix_and_the_order_is_the_users(slides: Path) -> None:
    assert names(find_inputs([str(slides / "notes.txt"), str(slides / "b.svs"), f"{slides}/a*"])) == ["notes", "b", "a"]


def test_a_table_gives_paths_relative_to_itself_and_mpp(slides: Path) -> None:
    found = find_inputs([str(table(slides, "path,mpp", "b.svs,0.263", "deeper/d.tiff,", f"{slides}/a.PNG,0.5"))])
    assert [(item.name, item.mpp) for item in found.items] == [("b", 0.263), ("d", None), ("a", 0.5)]
    assert found.warnings == ()


def test_magnification_is_taken_as_ten_over_it_with_a_warning(slides: Path) -> None:
    found = find_inputs([str(table(slides, "path,magnification", "b.svs,40x", "a.PNG,20", "c.ome.tif,"))])
    assert [item.mpp for item in found.items] == [0.25, 0.5, None]
    assert found.warnings == ("list.csv: magnification is read as 10 / magnification µm per pixel; better give mpp",)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("b.svs,0", "list.csv row 2 mpp: 0 µm per pixel is outside 0.05–20; correct the table or leave the cell empty"),
        ("b.svs,-1", "list.csv row 2 mpp: -1 µm per pixel is outside 0.05–20"),
        ("b.svs,nan", "list.csv row 2 mpp: nan µm per pixel is outside"),
        ("b.svs,inf", "list.csv row 2 mpp: inf µm per pixel is outside"),
        ("b.svs,250", "list.csv row 2 mpp: 250 µm per pixel is outside"),
        ("b.svs,x", "list.csv row 2: mpp 'x' is not a number; write it like 0.25"),
        ("b.svs,0·25", "list.csv row 2: mpp '0·25' is not a number"),
        ("gone.svs,0.5", "list.csv row 2: no such file 'gone.svs'; paths are relative to the table"),
        ("deeper,0.5", "list.csv row 2: no such file 'deeper'"),
        (",0.5", "list.csv row 2: no such file ''"),
    ],
)
def test_a_bad_row_is_a_line_and_the_others_are_done(slides: Path, row: str, line: str) -> None:
    found = find_inputs([str(table(slides, "path,mpp", row, "a.PNG,0.5"))])
    assert names(found) == ["a"]
    (fault,) = found.faults
    assert line in str(fault)
    assert "\n" not in str(fault)


@pytest.mark.parametrize("power", ["0", "-20", "nan", "4000"])
def test_an_impossible_magnification_is_a_fault(slides: Path, power: str) -> None:
    found = find_inputs([str(table(slides, "path,magnification", f"b.svs,{power}", "a.PNG,"))])
    assert f"list.csv row 2 magnification {power}: " in str(found.faults[0])


def test_images_with_one_name_go_to_the_folders_that_they_lie_in(slides: Path) -> None:
    for folder in ("deeper", "other"):
        (slides / folder).mkdir(exist_ok=True)
        (slides / folder / "B.tif").write_bytes(b"x")
    named = [str(slides / path) for path in ("b.svs", "deeper/B.tif", "other/B.tif", "a.PNG")]
    assert names(find_inputs(named)) == ["b", "deeper/B", "other/B", "a"]
    assert names(find_inputs(named[1:])) == ["deeper/B", "other/B", "a"]
    assert names(find_inputs([f"{slides}/*/B.tif"])) == ["deeper/B", "other/B"]
    rows = table(slides, "path,mpp", "deeper/B.tif,0.5", "other/B.tif,0.25")
    assert [(item.name, item.mpp) for item in find_inputs([str(rows)]).items] == [("deeper/B", 0.5), ("other/B", 0.25)]


def test_of_two_images_with_one_name_in_one_folder_the_first_is_done(slides: Path) -> None:
    (slides / "B.tif").write_bytes(b"x")
    found = find_inputs([str(slides / "b.svs"), str(slides / "B.tif"), str(slides / "a.PNG")])
    assert names(found) == ["b", "a"]
    assert [str(fault) for fault in found.faults] == [
        f"{slides}/B.tif: its results would go to B/ like those of {slides}/b.svs; rename one file"
    ]


def test_a_folder_searched_at_any_depth_is_mirrored(slides: Path, tmp_path: Path) -> None:
    (slides / ".hidden").mkdir()
    (slides / ".hidden" / "h.png").write_bytes(b"x")
    (slides / "deeper" / "b.webp").write_bytes(b"x")
    (slides / "deeper" / "linked.svs").symlink_to(tmp_path / "elsewhere.svs")
    (tmp_path / "elsewhere.svs").write_bytes(b"x")
    found = find_inputs([str(slides)], recursive=True)
    assert names(found) == ["a", "b", "c", "deeper/b", "deeper/d", "deeper/linked"]


@pytest.mark.parametrize("mark", ["run.json", ".work"])
def test_results_are_no_inputs_of_a_folder_or_pattern(slides: Path, mark: str) -> None:
    result = slides / "out" / "b"
    result.mkdir(parents=True)
    for name in (mark, "overlay.png", "labels.tif"):
        (result / name).write_bytes(b"x")
    assert names(find_inputs([str(slides)], recursive=True)) == ["a", "b", "c", "deeper/d"]
    assert names(find_inputs([f"{slides}/**"])) == ["a", "b", "c", "d"]
    assert names(find_inputs([str(result / "overlay.png")])) == ["overlay"]


def test_images_that_are_not_read_are_named(slides: Path) -> None:
    for name in ("e.jp2", "f.vsi", "g.gif", "h.dcm", "._h.dcm"):
        (slides / name).write_bytes(b"x")
    (line,) = find_inputs([str(slides)]).warnings
    assert line == f"{slides}: skipped e.jp2, f.vsi, g.gif and 1 more; convert to TIFF"


def test_one_file_given_twice_is_done_once_unless_its_mpp_differs(slides: Path) -> None:
    twice = find_inputs([str(slides / "b.svs"), f"{slides}/deeper/../b.svs"])
    assert names(twice) == ["b"]
    assert twice.warnings == (f"{slides}/deeper/../b.svs: given twice; done once",)
    other = find_inputs([str(slides / "b.svs"), str(table(slides, "path,mpp", "b.svs,0.3"))])
    assert str(other.faults[0]) == "list.csv row 2: given twice with another mpp; remove one of the two"


def test_what_is_missing_is_a_fault_while_something_is_there(slides: Path) -> None:
    found = find_inputs([str(slides / "gone.svs"), f"{slides}/*.ndpi", str(slides / "b.svs")])
    assert [str(fault) for fault in found.faults] == [
        f"{slides}/gone.svs: no such file or folder; check the path",
        f"{slides}/*.ndpi: matches no image; check the pattern",
    ]


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ([], "no inputs; give images, folders, patterns or a CSV with the columns path,mpp"),
        (["{}/gone.svs"], "{}/gone.svs: no such file or folder; check the path"),
        (["{}/empty"], "{}/empty: no images in this folder; --recursive searches its subfolders"),
        (["{}/gone.svs", "{}/x*"], r"gone.svs: no such file .* \(and 1 more inputs that cannot be used\)"),
        (["{}/bad.csv"], "bad.csv: header lacks path; columns are path"),
    ],
)
def test_nothing_found_is_an_input_error(tmp_path: Path, inputs: list[str], line: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.csv").write_text("file,mpp\na,1\n")
    with pytest.raises(InputError, match=line.format(tmp_path, tmp_path)):
        find_inputs([text.format(tmp_path) for text in inputs])


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("slide.svs", "slide"),
        ("slide.ome.tif", "slide"),
        ("slide.OME.TIFF", "slide"),
        ("slide.ome.svs", "slide.ome"),
        ("a b-c_1.2.png", "a b-c_1.2"),
        ('x:y?*"<>|.tif', "x_y______"),
        ("back\\slash.tif", "back_slash"),
        ("..tif", "_"),
        (".png", "png"),
        ("con.tif", "con_"),
        ("summary.csv.png", "summary.csv_"),
        ("new\nline.png", "new_line"),
        ("é" * 120 + ".png", "é" * 80),
        ("Gewebe µ.png", "Gewebe µ"),
    ],
)
def test_a_results_folder_is_named_after_the_file_and_safe_anywhere(file: str, name: str) -> None:
    assert result_name(Path(file)) == name
