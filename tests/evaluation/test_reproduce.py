"""A reproduction from one file: trains what is missing, measures it, writes one page, and goes on where it stopped."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from matplotlib.figure import Figure

from seunet.errors import InputError
from seunet.evaluation import run as evaluation_run
from seunet.evaluation.page import Heading, Picture, Table, Text, as_html, as_markdown
from seunet.evaluation.reproduce.paper_numbers import PAPER
from seunet.evaluation.reproduce.plan import measured_pixels, training_pixels
from seunet.evaluation.reproduce.protocol import jobs, read_protocol, slug
from seunet.evaluation.reproduce.report import page
from seunet.evaluation.reproduce.run import read_measured, reproduce
from seunet.evaluation.reproduce.tables import best_heads, row_names, spread, systems_table
from seunet.evaluation.run import open_windows
from seunet.evaluation.test_scales import TEST_SCALES
from seunet.look import look_css
from seunet.maths import scaled_size
from seunet.training import Sources
from support.cli import seunet
from support.training import ALONE, tiny_file
from tests.support.old_words import in_old_words

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def protocol_file(nuclei: Path, tmp_path: Path) -> Path:
    """Two models on the synthetic nuclei, a few steps each."""
    tiny_file(tmp_path / "training.yaml", nuclei, recipe__epochs=1)
    tree = {
        "title": "Two tiny models",
        "paper": "monuseg",
        "training": "training.yaml",
        "data": str(nuclei),
        "split": "train",
        "tiles": {"size_px": 32, "stride_px": 32, "every": 2},
        "equivariance_tiles": {"size_px": 32, "stride_px": 64},
        "window_sizes_px": [32, 48],
        "way_scales": {"stated": [0.5, 1.0]},
        "models": [
            {
                "name": "CNN",
                "set": {"model.name": "unet", "model.widths": [4, 8]},
                "ways": ["blind", "resampled", "estimated"],
            },
            {"name": "SEUNet", "seeds": [0, 1], "first_seed_ways": ["scaled_filters", "stated"]},
        ],
        "panels": ["CNN", "SEUNet"],
        "questions": [
            {"ask": "Is SEUNet above the CNN?", "first": "SEUNet", "second": "CNN"},
            {"ask": "Does the best head move?", "first": "SEUNet"},
        ],
    }
    path = tmp_path / "protocol.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("reproduce-*.yaml")), ids=lambda path: path.name)
def test_every_shipped_protocol_loads_with_the_training_of_each_of_its_models(path: Path) -> None:
    protocol = read_protocol(path)
    listed = list(jobs(protocol))
    names = {job.entry.name for job in listed}
    assert all(job.config.data.root == protocol.data and job.config.seed == job.seed for job in listed)
    if "width" in path.name:  # a question of its own, of SEUNets alone
        assert len(names) == 2
        return
    assert names >= {"CNN", "SEUNet"}
    for name in () if "demonstration" in protocol.title else PAPER[protocol.paper].equivariance:
        assert name in names


def test_the_report_has_the_paper_s_tables_with_its_numbers_and_every_picture_inside(
    protocol_file: Path, tmp_path: Path
) -> None:
    ran = seunet("reproduce", protocol_file, "-o", tmp_path / "report", "--no-progress")
    assert ran.code == 0, ran.err
    text, html = ((tmp_path / "report" / name).read_text() for name in ("report.md", "report.html"))
    assert re.search(r"\| CNN \| \d+\.\d\d \| \d+\.\d\d \| 54\.94 \|", text)
    assert re.search(r"\| SEUNet, p_ens \| \d+\.\d\d \(\d+\.\d\d–\d+\.\d\d\) \|.*\| 59\.98 \|", text)
    assert "scaled filters (σ × s)" in text
    assert "image resampled" in text
    dear = re.search(r"\| SEUNet, scale stated \(as `segment` uses it\), p_ens \(seed \d alone\) \|(.*)\|", text)
    assert dear is not None
    assert [cell.strip() != "–" for cell in dear[1].split("|")] == [False, True, True, False, False, False, False]
    assert "| CNN, scale estimated from the pixels |" in text
    numbers = json.loads((tmp_path / "report" / "statistics.json").read_text())
    answered = numbers["questions"][0]
    difference = numbers["systems"]["SEUNet"]["mean"]["value"] - numbers["systems"]["CNN"]["mean"]["value"]
    assert answered["value"] == pytest.approx(difference, abs=2e-6)
    assert answered["low"] <= answered["value"] <= answered["high"]
    expected = "yes" if answered["low"] > 0 else "no" if answered["high"] < 0 else "not decided by these data"
    assert f"| Is SEUNet above the CNN? | **{expected}** | {100 * answered['value']:+.2f} (" in text
    assert re.search(r"\| Does the best head move\? \| \*\*(yes|no|not decided by these data)\*\* \|", text)
    assert "**One training** of CNN: there the interval is of the images alone" in text
    mean = numbers["systems"]["SEUNet"]["mean"]
    assert f"| SEUNet | {100 * mean['value']:.2f} (" in text
    assert len(mean["by_seed"]) == 2
    assert re.search(r"\| system, mean of its seeds \| 32 px \| 48 px \| largest range of a seed \|", text)
    pictures = re.findall(r"\]\((figures/[^)]+)\)", text)
    assert len(pictures) >= 6
    assert "figures/panels.png" in pictures
    assert all((tmp_path / "report" / name).is_file() for name in pictures)
    assert html.count('src="data:image/png;base64,') == len(pictures)
    protocol = read_protocol(protocol_file)
    again = page(protocol, read_measured(protocol, tmp_path / "report"), tmp_path / "report" / "figures", numbers)
    assert as_markdown(again, tmp_path / "report") == text
    elsewhere = read_protocol(protocol_file, ("data=gone",))
    kept = page(elsewhere, read_measured(elsewhere, tmp_path / "report"), tmp_path / "report" / "figures", numbers)
    assert [block.path.name for block in kept if isinstance(block, Picture) and block.draw is None] == ["panels.png"]
    before = {path: path.read_bytes() for path in (tmp_path / "report").rglob("*.json*")}
    assert seunet("reproduce", protocol_file, "-o", tmp_path / "report", "--no-progress").code == 0
    after = {path: path.read_bytes() for path in before}
    changed = [path.name for path in before if after[path] != before[path]]
    assert set(changed) <= {"clock.jsonl"}, "what was trained and measured is read, not done again"


def test_stopped_in_the_middle_of_training_or_measuring_it_goes_on(protocol_file: Path, tmp_path: Path) -> None:
    protocol = read_protocol(protocol_file)
    calls = 0

    def now_and_then() -> bool:
        nonlocal calls
        calls += 1
        return calls in (2, 9, 30, 61, 95, 140)

    for _ in range(100):
        stopped_at = reproduce(protocol, tmp_path / "cut", ALONE, stop_wanted=now_and_then)
        if stopped_at is None:
            break
    assert stopped_at is None
    assert reproduce(protocol, tmp_path / "whole", ALONE) is None
    assert calls > 140
    cut, whole = (read_measured(protocol, tmp_path / name) for name in ("cut", "whole"))
    assert len(whole) == len(list(jobs(protocol)))
    for one, other in zip(cut, whole, strict=True):
        assert one.evaluation["results"] == other.evaluation["results"]
        assert one.evaluation["scores"] == other.evaluation["scores"]
        assert one.equivariance is not None
        assert other.equivariance is not None
        assert one.equivariance["errors"] == other.equivariance["errors"]


def test_models_can_be_done_apart_and_the_report_names_what_is_missing(protocol_file: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    ran = seunet("reproduce", protocol_file, "-o", parts, "--only", "seunet", "--no-progress")
    assert ran.code == 0, ran.err
    assert ran.out == f"2 models; 1 more are still to be measured: {parts}/report.html\n"
    text = (parts / "report.md").read_text()
    assert "**Not complete.** 1 of 3 are still to be measured: CNN (seed 0)." in text
    assert "| Is SEUNet above the CNN? | **not measured yet** | – |" in text
    assert re.search(r"\| Does the best head move\? \| \*\*(yes|no|not decided by these data)\*\* \|", text)
    assert not (parts / "runs" / "cnn-seed0").exists()
    ran = seunet("reproduce", protocol_file, "-o", parts, "--only", "CNN", "--no-progress")
    assert (ran.code, ran.out) == (0, f"3 models: {parts}/report.html\n")
    assert "Not complete" not in (parts / "report.md").read_text()
    assert re.findall(r"\| (\w+, seed \d) \|", (parts / "report.md").read_text()) == [
        "CNN, seed 0",
        "SEUNet, seed 0",
        "SEUNet, seed 1",
    ]
    ran = seunet("reproduce", protocol_file, "-o", parts, "--only", "CNNN")
    assert ran.code == 2
    assert ran.err.startswith("seunet: unknown model 'cnnn'; did you mean 'cnn'? (known: cnn, cnn-seed0, seunet,")


def test_what_a_protocol_will_cost_is_said_before_it_is_started(protocol_file: Path, tmp_path: Path) -> None:
    ran = seunet("reproduce", protocol_file, "--plan")
    assert ran.code == 0, ran.err
    assert [line.split("  ")[0] for line in ran.out.splitlines()] == ["core-hours", "CNN", "SEUNet", "all"]
    assert not (tmp_path / "runs").exists()
    protocol = read_protocol(protocol_file)
    cnn, first, second = jobs(protocol)
    by_scale = sum(scaled_size(32, scale) ** 2 for scale in TEST_SCALES)
    once = by_scale * sum(len(open_windows(protocol.data, "train", None, tiles)) for tiles in ((32, 32, 2), (32, 64)))
    apart = sum(len(open_windows(protocol.data, "train", None, (side, side))) * side**2 for side in (32, 48))
    assert measured_pixels(protocol, second) == once + apart
    assert measured_pixels(protocol, first) > measured_pixels(protocol, second)
    assert measured_pixels(protocol, cnn) > measured_pixels(protocol, second)
    learnt, judged = training_pixels(first.config, Sources(first.config.data, 0))
    assert learnt == 4 * 4 * 24**2  # steps of four crops
    assert judged == 8 * 32**2  # two of six images are held out
    ran = seunet("reproduce", protocol_file)
    assert ran.code == 2
    assert "needs the folder of the report" in ran.err


def test_what_is_measured_is_kept_without_its_weights_and_its_data_but_not_for_another_training(
    protocol_file: Path, tmp_path: Path
) -> None:
    out, only = tmp_path / "report", ("cnn",)
    reproduce(read_protocol(protocol_file), out, ALONE, only=only)
    run = out / "runs" / "cnn-seed0"
    shutil.rmtree(run / "model")
    for weights in run.glob("*.safetensors"):
        weights.unlink()
    elsewhere = read_protocol(protocol_file, ("data=gone",))
    assert reproduce(elsewhere, out, ALONE, only=only) is None
    assert read_measured(elsewhere, out)[0].evaluation["scores"]
    with pytest.raises(InputError, match=r"cnn-seed0: `recipe.batch` is 1, the run was started with 4"):
        reproduce(elsewhere, out, ALONE, only=only, training_overrides=("recipe.batch=1",))


def test_a_report_and_a_protocol_of_before_are_gone_on_with(
    protocol_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = read_protocol(protocol_file)
    assert reproduce(protocol, tmp_path / "report", ALONE) is None
    now = read_measured(protocol, tmp_path / "report")
    protocol_file.write_text(in_old_words(protocol_file.read_text()))
    for path in [tmp_path / "report" / "protocol.yaml", *(tmp_path / "report").rglob("evaluation.json")]:
        path.write_text(in_old_words(path.read_text()))
    assert read_protocol(protocol_file) == protocol
    assert "known:" in (tmp_path / "report" / "protocol.yaml").read_text()
    monkeypatch.setattr(evaluation_run, "confusions", None)
    assert reproduce(read_protocol(protocol_file), tmp_path / "report", ALONE) is None
    again = read_measured(read_protocol(protocol_file), tmp_path / "report")
    assert [one.evaluation for one in again] == [one.evaluation for one in now]


def test_a_folder_of_another_protocol_or_of_somebody_else_is_refused(protocol_file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    ran = seunet("reproduce", protocol_file, "-o", tmp_path / "mine")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"seunet: {tmp_path}/mine: holds something else (thesis.txt); choose a new or empty folder\n"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "protocol.yaml").write_text(yaml.safe_dump({"title": "Another"}))
    ran = seunet("reproduce", protocol_file, "-o", tmp_path / "other")
    assert ran.code == 2
    assert "belongs to another protocol (its `title` is 'Another', not 'Two tiny models'); choose another" in ran.err
    (tmp_path / "file").write_text("")
    assert (
        "is a file; choose a folder for the report" in seunet("reproduce", protocol_file, "-o", tmp_path / "file").err
    )


def test_what_is_wrong_in_a_protocol_is_one_line(protocol_file: Path, tmp_path: Path) -> None:
    tree = yaml.safe_load(protocol_file.read_text()) | {"questions": [], "panels": []}
    for change, expected in (
        ({"model": []}, "unknown key 'model'; did you mean 'models'?"),
        ({"models": tree["models"] + [{"name": "cnn"}]}, "two models are called 'CNN'"),
        ({"models": [{"name": "CNN", "set": {"model.nam": "unet"}}]}, "option 'nam'"),
        ({"models": [{"name": "CNN", "seeds": [0, 1, 0]}]}, "seed 0 of 'CNN' is there twice; give each seed once"),
        ({"questions": [{"ask": "Why?", "first": "Nobody"}]}, "question 'Why?': no model is called 'Nobody'"),
        ({"panels": ["Nobody"]}, "`panels`: no model is called 'Nobody'"),
        ({"window_sizes_px": [32, 4000]}, "`window_sizes_px` asks for windows of 4000 px, and "),
        ({"way_scales": {"blind": [0.3]}, "models": tree["models"][:1]}, "scales of 'blind': 0.3 is not a test scale"),
    ):
        protocol_file.write_text(yaml.safe_dump(tree | change))
        ran = seunet("reproduce", protocol_file, "-o", tmp_path / "out")
        assert ran.code == 2
        assert expected in ran.err, ran.err
        assert ran.err.count("\n") == 1


def test_a_name_becomes_part_of_a_path() -> None:
    assert slug("SEUNet, σ fixed") == "seunet-sigma-fixed"


def test_several_seeds_are_a_mean_with_the_lowest_and_the_highest() -> None:
    assert spread([0.5]) == "50.00"
    assert spread([0.5, 0.6, None]) == "55.00 (50.00–60.00)"
    assert spread([0.1, 0.3], percent=False) == "0.200 (0.100–0.300)"
    assert spread([None]) == "–"


def test_a_page_is_the_same_in_markdown_and_html(tmp_path: Path) -> None:
    picture = tmp_path / "figures" / "a.png"
    picture.parent.mkdir()
    picture.write_bytes(b"png")
    shown = Picture(picture, "It", Figure)
    blocks = [Heading("A < B", 1), Text("`x` is **bold** *s*"), Table(["a", "b"], [["1", "2"]]), shown]
    text, html = as_markdown(blocks, tmp_path), as_html("A < B", blocks)
    assert text == "# A < B\n\n`x` is **bold** *s*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n![It](figures/a.png)\n\n*It*\n"
    for part in (
        "<h1>A &lt; B</h1>",
        "<code>x</code> is <strong>bold</strong> <em>s</em>",
        "<td>1</td>",
        "base64,cG5n",
        look_css(),
    ):
        assert part in html
    assert "http" not in html  # nothing is fetched


def test_the_best_head_of_each_scale_is_numbered_from_one() -> None:
    rows = [
        {"way": "blind", "head": True, "row": f"head {n}", "ious": ious}
        for n, ious in enumerate(([0.5, 0.1], [0.4, 0.3]))
    ]
    assert best_heads({"scores": rows}) == [1, 2]
    assert row_names({"scores": [{"way": "blind", "row": "prediction"}]}, "blind") == ["prediction"]
    with pytest.raises(IndexError):
        systems_table([], PAPER["bcss"]).rows[0]
    with pytest.raises(InputError):
        read_protocol(Path("nowhere.yaml"))
