"""A whole evaluation: what the report says, and that interruptions leave no trace in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import seunet as package
from seunet import create_model
from seunet.errors import InputError
from seunet.evaluation import run as module
from seunet.evaluation.figures.curves import curves_figure, own_curves, rival_curves
from seunet.evaluation.figures.panels import Panel, painted, panels_figure
from seunet.evaluation.provenance import check_fit, data_notes, source_commit
from seunet.evaluation.report_folder import one_line_a_result, read_report
from seunet.evaluation.run import EvaluationSettings, evaluate, open_windows
from seunet.evaluation.scores import BEST_HEAD, comma_separated, markdown, scores
from seunet.evaluation.test_scales import TEST_SCALES, check_scales, parsed_scales, scale_label
from seunet.maths import headline_iou
from seunet.models import ScaleUNet, weights_sha256
from tests.support.old_words import in_old_words
from tests.support.prepared import prepared_tissue, saved_model

SETTINGS = EvaluationSettings(scales=(0.5, 1.0, 1.5), ways=("blind", "scaled_filters", "resampled"))


@pytest.fixture(scope="module")
def document(root: Path, data: Path, model: ScaleUNet) -> dict[str, Any]:
    return evaluate(model, data, root / "out", SETTINGS)


def row(document: dict[str, Any], way: str, name: str) -> dict[str, Any]:
    return next(row for row in document["scores"] if (row["way"], row["row"]) == (way, name))


def without_clock(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    del document["clock"]
    return document


def test_the_scales_are_the_papers() -> None:
    assert len(TEST_SCALES) == 17
    assert (TEST_SCALES[0], TEST_SCALES[8], TEST_SCALES[16]) == (0.25, 1.0, 4.0)
    labels = "0.25 0.3 0.35 0.42 0.5 0.59 0.71 0.84 1 1.19 1.41 1.68 2 2.38 2.83 3.36 4"
    assert [scale_label(scale) for scale in TEST_SCALES] == labels.split()


def test_the_report_says_what_was_evaluated(document: dict[str, Any], root: Path, model: ScaleUNet) -> None:
    assert read_report(root / "out" / "evaluation.json", "evaluation") == document
    assert document["model"]["weights_sha256"] == weights_sha256(model)
    config = json.loads((root / "model" / "config.json").read_text())
    assert document["model"]["weights_sha256"] == config["weights"]["sha256"]
    assert document["model"]["options"] == config["options"]
    assert (document["data"]["windows"], len(document["data"]["images"])) == (18, 2)
    assert document["data"]["classes"] == ["background", "nucleus"]
    assert {"seconds", "peak_memory_mib", "machine"} <= document["clock"].keys()
    assert not (root / "out" / "evaluation.partial.json").exists()


def test_a_score_is_the_headline_iou_of_its_matrix_and_the_mean_is_over_the_scales(document: dict[str, Any]) -> None:
    for found in document["results"]:
        place = document["arguments"]["scales"].index(found["scale"])
        for name, confusion in found["confusions"].items():
            expected = headline_iou(torch.tensor(confusion))
            assert row(document, found["way"], name)["ious"][place] == pytest.approx(expected, abs=1e-6)
    for each in document["scores"]:
        assert each["mean"] == pytest.approx(sum(each["ious"]) / 3, abs=2e-6)


def test_scaled_filters_and_resampled_at_the_training_scale_are_blind(document: dict[str, Any]) -> None:
    at_one = [found["confusions"] for found in document["results"] if found["scale"] == 1]
    assert at_one[0] == at_one[1] == at_one[2]
    elsewhere = [found["confusions"] for found in document["results"] if found["scale"] == 1.5]
    assert elsewhere[0] != elsewhere[1] != elsewhere[2]


def test_the_best_head_is_the_largest_at_each_scale(document: dict[str, Any]) -> None:
    for way in ("blind", "scaled_filters"):
        heads = [row(document, way, f"head {number}")["ious"] for number in range(1, 6)]
        assert row(document, way, BEST_HEAD)["ious"] == [max(column) for column in zip(*heads, strict=True)]


def test_the_table_has_a_column_a_scale_and_the_best_head_in_bold(document: dict[str, Any]) -> None:
    lines = markdown(document).splitlines()
    assert "| test scale | 0.5 | 1 | 1.5 | mean |" in lines
    rows = {line.split(" | ")[0][2:]: line.rstrip(" |").split(" | ")[1:] for line in lines if line.startswith("| ")}
    assert set(rows) >= {
        "head 1",
        "p_ens",
        BEST_HEAD,
        "scaled filters, head 5",
        f"scaled filters, {BEST_HEAD}",
        "resampled, mean",
    }
    for place in range(3):
        bold = [name for name, cells in rows.items() if cells[place].startswith("**") and name.startswith("head")]
        ious = {f"head {number}": row(document, "blind", f"head {number}")["ious"][place] for number in range(1, 6)}
        assert bold == [name for name, iou in ious.items() if iou == max(ious.values())]
    assert rows["p_ens"][3] == f"{100 * row(document, 'blind', 'p_ens')['mean']:.2f}"


def test_the_csv_has_a_line_for_every_matrix(document: dict[str, Any]) -> None:
    lines = comma_separated(document).splitlines()
    assert lines[0] == "way,row,scale,size_px,pixels,iou,iou_background,iou_nucleus"
    assert len(lines) == 1 + 3 * 3 * 8
    assert lines[1].startswith(f"blind,head 1,0.5,16,{18 * 16**2},")


def test_an_evaluation_that_is_there_is_not_made_again(
    document: dict[str, Any], root: Path, data: Path, model: ScaleUNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "confusions", None)
    assert evaluate(model, data, root / "out", SETTINGS) == document


@pytest.mark.parametrize("parts", [0, 1, 5, 8])
def test_an_interrupted_run_goes_on_and_ends_with_the_same_report(
    parts: int, document: dict[str, Any], root: Path, data: Path, model: ScaleUNet, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    count, real = iter(range(100)), module._Run._finish

    def interrupted(*arguments: Any) -> None:
        if next(count) == parts:
            raise KeyboardInterrupt
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module._Run, "_finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluate(model, data, tmp_path / "out", SETTINGS)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["evaluation.partial.json"]
    kept = json.loads((tmp_path / "out" / "evaluation.partial.json").read_text())
    assert len(kept["results"]) == parts
    evaluate(model, data, tmp_path / "out", SETTINGS)
    assert next(count) == parts + 1  # the finished parts were not done again, nor counted by the second run
    assert without_clock(tmp_path / "out" / "evaluation.json") == without_clock(root / "out" / "evaluation.json")
    with_clock = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert one_line_a_result(with_clock) == (tmp_path / "out" / "evaluation.json").read_text()


@pytest.mark.parametrize("results", [0, 2, 5, 9])
def test_a_report_in_the_words_of_before_is_read_and_gone_on_with(
    results: int, document: dict[str, Any], root: Path, data: Path, model: ScaleUNet, tmp_path: Path
) -> None:
    old = json.loads(in_old_words((root / "out" / "evaluation.json").read_text()))
    assert old["arguments"]["ways"] == ["blind", "told", "oracle"]
    assert {each["label"] for each in old["scores"]} >= {"told, p_ens", "oracle resize, p_ens"}
    path = tmp_path / "evaluation.json"
    if results < 9:
        path, old["results"] = tmp_path / "evaluation.partial.json", old["results"][:results]
        del old["scores"]
    path.write_text(json.dumps(old))
    assert read_report(path, "evaluation")["results"] == document["results"][:results]
    found = evaluate(model, data, tmp_path, SETTINGS)
    assert {**found, "clock": None} == {**document, "clock": None}
    assert set(found["clock"]["seconds_by_part"]) == set(document["clock"]["seconds_by_part"])


def test_progress_rises_to_the_total_and_goes_on_after_an_interruption(
    data: Path, model: ScaleUNet, tmp_path: Path
) -> None:
    seen: list[tuple[int, int, str]] = []

    def note(done: int, total: int, text: str) -> None:
        seen.append((done, total, text))
        if len(seen) == 5:
            raise KeyboardInterrupt

    settings = EvaluationSettings(scales=(0.5, 1.0))
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, data, tmp_path, settings, progress=note)
    evaluate(model, data, tmp_path, settings, progress=note)
    assert [done for done, _, _ in seen[5:]] == sorted(done for done, _, _ in seen[5:])
    assert seen[5][0] == 18 * 16**2  # where the first scale ended
    assert seen[-1][0] == seen[-1][1] == 18 * (16**2 + 32**2)
    assert seen[-1][2] == "blind, s = 1"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        (EvaluationSettings(scales=(0.5, 1.0)), "arguments.scales"),
        (EvaluationSettings(split="train"), "data.split"),
        (EvaluationSettings(antialias=True), "arguments.antialias"),
        (EvaluationSettings(ways=("blind", "resampled")), "arguments.ways"),
    ],
)
def test_the_report_of_another_run_is_refused_with_the_field_that_differs(
    changed: EvaluationSettings, field: str, data: Path, model: ScaleUNet, tmp_path: Path
) -> None:
    base = EvaluationSettings(scales=(0.5,))
    changed = EvaluationSettings(
        **{**vars(changed), "scales": changed.scales if field == "arguments.scales" else base.scales}
    )
    evaluate(model, data, tmp_path, base)
    with pytest.raises(InputError) as error:
        evaluate(model, data, tmp_path, changed)
    assert f"{tmp_path}: holds another evaluation (its `{field}` is " in str(error.value)
    assert str(error.value).endswith("; pass --overwrite or choose another OUT")
    assert evaluate(model, data, tmp_path, changed, overwrite=True)["results"]


def test_the_report_of_another_model_is_refused(data: Path, model: ScaleUNet, tmp_path: Path) -> None:
    evaluate(model, data, tmp_path / "out", EvaluationSettings(scales=(0.5,)))
    with pytest.raises(InputError, match=r"holds another evaluation \(its `model\.weights_sha256` is "):
        evaluate(saved_model(tmp_path / "other", seed=1), data, tmp_path / "out", EvaluationSettings(scales=(0.5,)))


def test_three_classes_give_a_mean_over_classes_and_a_plain_model_one_row(tmp_path: Path) -> None:
    data = prepared_tissue(tmp_path)
    model = saved_model(tmp_path / "model", "unet", widths=(4, 8), classes=3)
    settings = EvaluationSettings(split="train", scales=(0.5, 1.0), ways=("blind", "pyramid"))
    document = evaluate(model, data, tmp_path / "out", settings)
    labels = [each["label"] for each in document["scores"]]
    assert labels[0] == "prediction"
    assert labels[1:] == [f"pyramid, {name}" for name in
                          ("× 0.5", "× 0.7", "× 1", "× 1.4", "× 2", "mean", "p_dist", "p_ens", BEST_HEAD)]  # fmt: skip
    assert "mIoU of 3 classes in percent" in markdown(document)
    assert document["sigma"] is None
    assert "iou_other,iou_tumour,iou_stroma" in comma_separated(document)


def test_the_curves_are_the_rows_of_the_report(document: dict[str, Any]) -> None:
    curves = own_curves(document)
    labels = [curve.label for curve in curves]
    assert labels == [*(f"head {n}" for n in range(1, 6)), "p_ens", BEST_HEAD, "scaled filters, p_ens",
                      f"scaled filters, {BEST_HEAD}", "resampled, p_ens"]  # fmt: skip
    axis = curves_figure(curves, "IoU", "title").axes[0]
    for curve, line in zip(curves, axis.lines, strict=False):
        assert list(line.get_xdata()) == [0.5, 1.0, 1.5]
        assert list(line.get_ydata()) == [100 * iou for iou in curve.ious]  # type: ignore[operator]


def test_several_models_share_a_figure(document: dict[str, Any]) -> None:
    curves = rival_curves([document, document], ["ours", "theirs"], row="p_dist", way="scaled_filters")
    assert [curve.label for curve in curves] == ["ours", "theirs"]
    assert curves[0].ious == row(document, "scaled_filters", "p_dist")["ious"]
    with pytest.raises(InputError, match="1 labels for 2 reports; give one per report"):
        rival_curves([document, document], ["ours"])
    with pytest.raises(InputError, match="unknown row 'p_dits'; did you mean 'p_dist'"):
        rival_curves([document], row="p_dits")
    with pytest.raises(InputError, match="unknown way in the report 'pyramid'"):
        rival_curves([document], way="pyramid")
    other = {**document, "data": {**document["data"], "classes": ["a", "b", "c"]}}
    with pytest.raises(InputError, match="the reports measure different things"):
        rival_curves([document, other])


def test_no_two_of_many_models_look_alike(document: dict[str, Any]) -> None:
    curves = rival_curves([document] * 12, [str(number) for number in range(12)])
    lines = curves_figure(curves, "IoU", "title").axes[0].lines[:12]
    assert len({(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines}) == 12


def test_a_panel_shows_classes_in_their_colours_and_the_best_prediction_in_bold() -> None:
    codes = torch.tensor([[0, 1], [1, 255]])
    colors = [(0, 0, 0), (255, 214, 64)]
    assert painted(codes, colors).tolist() == [[[0, 0, 0], [255, 214, 64]], [[255, 214, 64], [255, 255, 255]]]
    image = torch.zeros(2, 2, 3, dtype=torch.uint8)
    panel = Panel(0.25, image, codes, (("p_ens", codes, 0.5), ("stated, p_ens", codes, 0.75)))
    axes = panels_figure([panel], colors, "title").axes
    assert [axis.get_title() for axis in axes] == ["image", "truth", "p_ens", "stated, p_ens"]
    assert axes[0].get_ylabel() == "s = 0.25\n2×2 px"
    assert [axis.get_xlabel() for axis in axes[2:]] == ["50.0", "75.0"]
    assert [axis.xaxis.label.get_fontweight() for axis in axes[2:]] == ["normal", "bold"]
    assert (axes[2].images[0].get_array() == painted(codes, colors).numpy()).all()
    assert not panels_figure([panel], colors, "title", ["background", "nucleus"]).legends
    (key,) = panels_figure([panel], [*colors, (9, 9, 9)], "title", ["other", "tumour", "stroma"]).legends
    assert [text.get_text() for text in key.get_texts()] == ["other", "tumour", "stroma", "not labelled"]


@pytest.mark.parametrize(
    ("scales", "text"),
    [
        ((0.01,), "scale 0.01 leaves less than one pixel of a 32×32 window"),
        ((-1.0,), "scale -1 must be a positive number"),
        ((float("nan"),), "scale nan must be a positive number"),
        ((1e6,), "scale 1e+06 makes a window 32000000×32000000 px; the limit is 268,435,456 px"),
        ((1.0, 2.0, 1.0), "scale 1 is given twice"),
    ],
)
def test_scales_that_cannot_be_are_refused(scales: tuple[float, ...], text: str) -> None:
    with pytest.raises(InputError) as error:
        check_scales(scales, 32)
    assert str(error.value) == text


@pytest.mark.parametrize("text", ["", "a", "1;2"])
def test_scales_that_are_no_numbers_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be numbers with commas between them"):
        parsed_scales(text)


def test_images_of_several_resolutions_are_a_note(document: dict[str, Any]) -> None:
    assert document["notes"] == []
    assert data_notes({"mpp": [0.25, 0.26]}) == data_notes({"mpp": None}) == data_notes({"mpp": None}, 0.25) == []
    assert data_notes({"mpp": [0.25, 0.25]}, 0.255) == []
    other = "the images have 0.5 µm per pixel, the model learnt at 0.25: s = 2 is its own scale here"
    assert data_notes({"mpp": [0.5, 0.5]}, 0.25) == [other]
    assert data_notes({"mpp": [0.25, 0.5]}) == [
        "the images have 0.25 to 0.5 µm per pixel; s is relative to each image's own pixels"
    ]
    assert "Note: they differ." in markdown({**document, "notes": ["they differ"]})


def test_a_model_of_other_channels_is_refused(data: Path) -> None:
    model = create_model("unet", widths=(4, 8), in_channels=4)
    with pytest.raises(InputError) as error:
        check_fit(model, open_windows(data, "test", None))
    assert str(error.value) == f"the model takes 4 channels; the images of {data} have 3"


def test_the_commit_is_that_of_the_checkout_or_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(package, "__file__", str(tmp_path / "lib" / "seunet" / "__init__.py"))
    assert source_commit() is None
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert source_commit() is None


def test_a_class_that_is_nowhere_has_no_iou_and_the_table_a_dash(document: dict[str, Any]) -> None:
    empty = {"way": "blind", "scale": 1.0, "size_px": 2, "confusions": {"prediction": [[4, 0], [0, 0]]}}
    bare = {**document, "arguments": {**document["arguments"], "ways": ["blind"], "scales": [1.0]}, "results": [empty]}
    bare["scores"] = scores(bare)
    assert bare["scores"][0]["ious"] == [None]
    assert "| prediction | – | – |" in markdown(bare)
    assert comma_separated(bare).splitlines()[1] == "blind,prediction,1,2,4,,1.0,"
