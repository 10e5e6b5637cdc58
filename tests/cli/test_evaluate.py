"""`seunet evaluate`, `equivariance` and `plot`, as a user runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from seunet.cli.progress import duration, progress_of
from support.cli import seunet
from tests.support.prepared import prepared_nuclei, prepared_tissue, saved_model

FAST = ("--scales", "0.5,1", "--no-progress")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli")
    prepared_nuclei(root)
    saved_model(root / "model")
    saved_model(root / "plain", "unet", widths=(4, 8))
    return root


@pytest.fixture(scope="module")
def out(root: Path) -> Path:
    ran = seunet("evaluate", root / "model", root / "set", "-o", root / "out", "--scaled-filters", "--resampled", *FAST)
    assert (ran.code, ran.err) == (0, "")
    assert "scaled filters, best head (oracle)" in ran.out
    assert ran.out.splitlines()[-1].endswith(f"MiB: {root / 'out' / 'evaluation.md'}")
    return root / "out"


def test_a_report_is_json_csv_a_table_and_two_pictures(out: Path) -> None:
    names = sorted(path.name for path in out.iterdir() if not path.name.startswith("equi"))
    objects = ["objects.csv", "objects.json", "objects.md"]
    assert names == ["curves.png", "evaluation.csv", "evaluation.json", "evaluation.md", *objects, "panels.png"]
    for name in ("curves.png", "panels.png"):
        with Image.open(out / name) as picture:
            picture.load()
            assert min(picture.size) >= 800


def test_finished_work_is_shown_again_without_being_done_again(root: Path, out: Path) -> None:
    before = (out / "evaluation.json").read_bytes()
    (out / "curves.png").unlink()
    ran = seunet(
        "evaluate", root / "model", root / "set", "-o", out, "--scaled-filters", "--resampled", "--no-panels", *FAST
    )
    assert ran.code == 0
    assert (out / "evaluation.json").read_bytes() == before
    assert (out / "curves.png").is_file()


def test_the_options_of_before_work_and_are_not_shown(root: Path, out: Path, tmp_path: Path) -> None:
    old = ("evaluate", root / "model", root / "set", "-o", out, "--told", "--oracle", "--no-panels", *FAST)
    before = (out / "evaluation.json").read_bytes()
    assert seunet(*old).code == 0
    assert (out / "evaluation.json").read_bytes() == before
    ran = seunet("evaluate", root / "plain", root / "set", "-o", tmp_path / "o", "--known", "--no-panels", *FAST)
    assert ran.code == 0
    assert "  stated, prediction " in ran.out
    words = seunet("evaluate", "--help").out.split()
    assert {"--scaled-filters", "--stated", "--resampled"} <= set(words)
    assert not {"--told", "--known", "--oracle"} & set(words)
    report = out / "evaluation.json"
    for way in ("told", "scaled_filters"):
        assert seunet("plot", "curves", report, "--way", way, "-o", tmp_path / f"{way}.png").code == 0
    assert (tmp_path / "told.png").read_bytes() == (tmp_path / "scaled_filters.png").read_bytes()


def test_equivariance_may_share_the_folder(root: Path, out: Path) -> None:
    ran = seunet("equivariance", root / "model", root / "set", "-o", out, "--scales", "0.5,2", "--no-progress")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("equivariance error of the logits, mean over 2 scales:\n  σ-matched ")
    assert {"equivariance.json", "equivariance.md", "equivariance.png"} <= {path.name for path in out.iterdir()}


def test_lines_are_printed_where_there_is_no_terminal(root: Path, tmp_path: Path) -> None:
    ran = seunet(
        "evaluate",
        root / "plain",
        root / "set",
        "-o",
        tmp_path / "o",
        "--scales",
        "0.5,1",
        "--no-panels",
        "--no-objects",
    )
    assert ran.code == 0
    assert [line[7:21] for line in ran.err.splitlines()] == ["blind, s = 0.5", "blind, s = 1  "]
    assert ran.err.endswith(" s left\n")
    assert [line[:6] for line in ran.err.splitlines()] == ["[  0%]", "[ 20%]"]


def test_a_duration_is_told_in_the_units_it_is_thought_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert [duration(seconds) for seconds in (12, 340, 8000)] == ["12 s", "6 min", "2 h 13 min"]
    with progress_of(False) as report:
        report(1, 2, "nobody asked")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("nowhere", "set"),
            "nowhere: no such model folder; give one that `save_pretrained` wrote, or a model of the package "
            "(nuclei, nuclei-2), or hf-hub:owner/name",
        ),
        (("model", "nowhere"), "nowhere: no such folder; make it with `seunet data prepare`"),
        (
            ("model", "set", "--split", "tset"),
            "unknown split 'tset'; did you mean 'test'? (known: test, train, validation)",
        ),
        (("model", "set", "--split", "validation"), "set: no windows in split validation (the set has: train, test)"),
        (
            ("model", "set", "--fusions", "p_end"),
            "unknown fusion 'p_end'; did you mean 'p_ens'? (known: mean, p_dist, p_ens)",
        ),
        (("model", "set", "--scales", "0.01"), "scale 0.01 leaves less than one pixel of a 32×32 window"),
        (
            ("model", "set", "--scales", "x"),
            "--scales 'x': must be numbers with commas between them, e.g. --scales 0.5,1,2",
        ),
        (
            ("plain", "set", "--scaled-filters"),
            "--scaled-filters multiplies the σ of a model, and unet has none; leave it out, or use --resampled",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], line: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    ran = seunet("evaluate", *arguments, "-o", tmp_path / "o")
    assert (ran.code, ran.out, ran.err) == (2, "", f"seunet: {line}\n")
    assert not (tmp_path / "o").exists()


def test_a_set_of_other_classes_is_refused(root: Path, tmp_path: Path) -> None:
    tissue = prepared_tissue(tmp_path)
    ran = seunet("evaluate", root / "model", tissue, "-o", tmp_path / "o", "--split", "train")
    assert (ran.code, ran.err) == (
        2,
        f"seunet: {tissue}: has 3 classes (other, tumour, stroma) and the model 2; "
        "evaluate a model on the classes it was trained for\n",
    )


def test_images_are_a_subset_by_name(root: Path, tmp_path: Path) -> None:
    name = "TCGA-02-1002-01Z-00-DX1"
    ran = seunet("evaluate", root / "plain", root / "set", "-o", tmp_path / "o", "--images", name, *FAST, "--no-panels")
    assert ran.code == 0
    assert json.loads((tmp_path / "o" / "evaluation.json").read_text())["data"]["images"] == [name]
    ran = seunet("evaluate", root / "plain", root / "set", "-o", tmp_path / "p", "--images", name[:-1], *FAST)
    assert ran.code == 2
    assert ran.err.startswith(f"seunet: unknown image '{name[:-1]}'; did you mean ")


def test_an_out_of_another_run_is_refused_unless_given_up(root: Path, out: Path, tmp_path: Path) -> None:
    shutil.copytree(out, tmp_path / "o")
    again = ("evaluate", root / "plain", root / "set", "-o", tmp_path / "o", *FAST, "--no-panels")
    ran = seunet(*again)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f'seunet: {tmp_path / "o"}: holds another evaluation (its `model.name` is "seunet", not "unet"); '
        "pass --overwrite or choose another OUT\n"
    )
    assert seunet(*again, "--overwrite").code == 0


def test_a_folder_of_something_else_and_a_file_are_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("dear")
    ran = seunet("evaluate", root / "plain", root / "set", "-o", tmp_path / "mine", *FAST)
    assert (ran.code, ran.err) == (
        2,
        f"seunet: {tmp_path / 'mine'}: holds something else (thesis.tex); pass --overwrite or choose an empty OUT\n",
    )
    ran = seunet("evaluate", root / "plain", root / "set", "-o", tmp_path / "mine" / "thesis.tex", *FAST)
    assert (ran.code, ran.err) == (
        2,
        f"seunet: {tmp_path / 'mine' / 'thesis.tex'}: is a file; choose a folder for OUT\n",
    )


def test_a_report_that_was_cut_short_is_refused(root: Path, tmp_path: Path) -> None:
    report = tmp_path / "o" / "evaluation.json"
    report.parent.mkdir()
    report.write_text('{"format":"seunet-evaluation/1","mod')
    line = f"seunet: {report}: not JSON, or cut short; make it again with --overwrite\n"
    assert seunet("evaluate", root / "plain", root / "set", "-o", report.parent, *FAST)[::2] == (2, line)
    assert seunet("plot", "curves", report, "-o", tmp_path / "a.png")[::2] == (2, line)
    report.write_text('{"format":"other"}')
    line = f'seunet: {report}: not a report of `seunet evaluate` (no "format": "seunet-evaluation/1")\n'
    assert seunet("plot", "curves", report, "-o", tmp_path / "a.png")[::2] == (2, line)


def test_figures_are_drawn_again_from_files(root: Path, out: Path, tmp_path: Path) -> None:
    report, log = out / "evaluation.json", tmp_path / "log.jsonl"
    log.write_text('{"step":1,"head_weights":[0.5,0.5]}\n{"step":2,"head_weights":[0.6,0.4]}\n{"step":3,"head')
    for arguments in (
        ("curves", report),
        ("curves", report, report, "--labels", "a,b", "--row", "p_dist"),
        ("sigmas", report),
        ("sigmas", root / "model"),
        ("weights", log),
    ):
        ran = seunet("plot", *arguments, "-o", tmp_path / "a.png")
        assert (ran.code, ran.out, ran.err) == (0, f"{tmp_path / 'a.png'}\n", "")
        with Image.open(tmp_path / "a.png") as picture:
            assert picture.size[0] == 1600
        (tmp_path / "a.png").unlink()


def test_what_cannot_be_drawn_is_one_line(root: Path, out: Path, tmp_path: Path) -> None:
    picture, other = tmp_path / "a.png", tmp_path / "log.jsonl"
    ran = seunet("plot", "sigmas", root / "plain", "-o", picture)
    assert ran.err == f"seunet: {root / 'plain'}: unet has no σ; give a model made of Gaussian derivatives\n"
    ran = seunet("plot", "weights", other, "-o", picture)
    assert ran.err == f"seunet: {other}: cannot be read (No such file or directory); give a log.jsonl\n"
    other.write_text("[]\n")
    ran = seunet("plot", "weights", other, "-o", picture)
    assert ran.err == f"seunet: {other}: not the log of a training run; give its log.jsonl\n"
    ran = seunet("plot", "curves", out / "evaluation.json", "-o", tmp_path)
    assert ran.err == (
        f"seunet: {tmp_path}: is a folder; give a name for the picture, e.g. {tmp_path / 'curves.png'}\n"
    )
    partial = json.loads((out / "evaluation.json").read_text())
    del partial["scores"]
    other.write_text(json.dumps(partial))
    ran = seunet("plot", "curves", other, "-o", picture)
    assert (ran.code, picture.exists()) == (2, False)
    assert ran.err == f"seunet: {other}: was interrupted; finish it with the `seunet evaluate` that began it\n"


@pytest.mark.parametrize("verb", ["evaluate", "equivariance", "plot curves", "plot sigmas", "plot weights"])
def test_the_help_has_an_example(verb: str) -> None:
    ran = seunet(*verb.split(), "--help")
    assert ran.code == 0
    assert f"Example: seunet {verb} " in " ".join(ran.out.split())
