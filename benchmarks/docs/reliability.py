"""The table of docs/results/reliability.md: what must not go wrong, and the figure that shows it."""

from __future__ import annotations

from typing import Any

from benchmarks.record import ROOT, results, source
from seunet.evaluation import markdown_table


def held(path: str, *names: str) -> str:
    """Tests that hold a row; they must be there."""
    text = (ROOT / path).read_text()
    for name in names:
        assert f"def {name}(" in text, f"{path} has no {name}"
    return f"`{path}`: " + ", ".join(name.removeprefix("test_").replace("_", " ") for name in names)


def reliability() -> str:
    """Every row with its figure and where it comes from."""
    data, training = results("reliability_data"), results("reliability_training")
    inference, slides = results("reliability_inference"), results("slides")
    kills, cluster, soak = results("slide_kills"), results("cluster"), results("soak")
    rows = [
        *_of_data(data),
        *_of_training(training),
        *_of_inference(inference),
        *_of_slides(slides["made"], kills["kill"]),
        *_of_cohorts(cluster["killed"], soak),
        *_of_tests(),
    ]
    made = [data, training, inference, slides, kills, cluster, soak]
    lines = "\n".join(f"- {source(report)}" for report in made)
    return f"{markdown_table(['what goes wrong', 'wanted', 'found'], rows)}\n\nMade by\n\n{lines}"


def _of_data(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    xml, rings, images, verify, kill = (report[name] for name in ("xml", "rings", "images", "verify", "interruption"))
    return [
        (
            "broken or hostile XML",
            "no traceback, none over 2 s, at most 300 MiB, one line and exit code 2",
            f"{xml['files']:,} files: {xml['tracebacks']} tracebacks, {xml['slow']} slow (slowest "
            f"{xml['slowest_seconds']} s), {xml['peak_MiB']} MiB, "
            f"{xml['not_one_line'] + xml['not_exit_2']} said otherwise",
        ),
        (
            "rings that cross themselves, are doubled or lie outside",
            "none drawn otherwise than by an independent rasteriser",
            f"{rings['rings']:,} rings: {rings['differing']} differ",
        ),
        (
            "broken images in a data set",
            "no traceback, no hang, one line",
            f"{images['files']:,} files: {images['tracebacks']} tracebacks, {images['hangs']} hangs; "
            f"bombs refused within {images['slowest_bomb_seconds']} s",
        ),
        (
            "faults of a prepared set",
            "all found in one run, no false alarm",
            f"{verify['planted']:,} planted: {verify['missed']} missed; {verify['clean_sets']} clean sets: "
            f"{verify['alarms']} alarms",
        ),
        (
            "`data prepare` is killed",
            "the bytes of an unbroken run",
            f"{kill['kills_that_landed']} kills: {kill['differing']} of {kill['runs']} differ",
        ),
    ]


def _of_training(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    resume, kill, faults, damage = (report[name] for name in ("resume", "kill", "faults", "damage"))
    return [
        (
            "killed while a checkpoint is written",
            "0 of 200 unreadable, at most one interval lost",
            f"{kill['kills']} kills, {kill['landed_on_a_half_written_file']} on a half-written file: "
            f"{kill['unreadable']} unreadable, at most {kill['most_finished_checkpoints_lost']} checkpoints lost",
        ),
        (
            "a full or read-only disk, at each system call of a save",
            "the old file whole, loud, exit code 3",
            f"{faults['faults']} faults: {faults['silent']} silent, {faults['spoilt']} spoilt",
        ),
        (
            "resumed is not uninterrupted",
            "the same bits at 50 cut points, any number of workers",
            f"{resume['cut_points']} cut points, {resume['in_mid_epoch']} in mid-epoch: {resume['differing']} differ",
        ),
        ("an altered checkpoint", "detected", f"{damage['files']:,} files: {damage['undetected']} undetected"),
    ]


def _of_inference(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    mutants, cut, bombs, outlines = (report[name] for name in ("mutants", "cut_files", "bombs", "outlines"))
    return [
        (
            "broken slides and images",
            "no traceback, no hang, one line",
            f"{mutants['files']:,} files: {mutants['tracebacks']} tracebacks, {mutants['hangs']} hangs, "
            f"{mutants['crashes']} crashes, {mutants['not_one_line'] + mutants['not_exit_2']} said otherwise; "
            f"at most {mutants['peak_MiB']} MiB",
        ),
        (
            "files cut off",
            "no pixel that is not in the whole file",
            f"{cut['files']:,} files: {cut['false_pixels']} regions with false pixels",
        ),
        (
            "image bombs",
            "refused within 1 s",
            f"{bombs['files']}: {bombs['not_refused']} not refused, slowest {bombs['slowest_seconds']} s",
        ),
        (
            "invalid GeoJSON",
            "1,000 random masks: all valid, areas within 0.5 %, IoU when painted back at least 0.999",
            f"{outlines['masks']:,} masks, {outlines['objects']:,} objects: {outlines['invalid']} invalid, "
            f"{outlines['other_area']} of another area, lowest IoU {outlines['lowest_iou']}",
        ),
    ]


def _of_slides(made: dict[str, Any], kill: dict[str, Any]) -> list[tuple[str, str, str]]:
    small, large = made["sizes"]
    return [
        (
            "memory on a huge slide",
            "40,000² at most 200 MiB above 10,000², at most 2 GiB",
            f"{small['peak_mib']} → {large['peak_mib']} MiB",
        ),
        (
            "killed in mid-slide",
            "100 kills: the bytes of an unbroken run",
            f"{kill['kills']} kills: {kill['other_bytes']} of {kill['runs']} results differ",
        ),
    ]


def _of_cohorts(killed: dict[str, Any], soak: dict[str, Any]) -> list[tuple[str, str, str]]:
    memory = ", ".join(f"{name} {mib} MiB" for name, mib in soak["memory_mib"].items() if name.startswith("after"))
    return [
        (
            "workers of a cluster are killed",
            "no slide lost or doubled",
            f"{killed['slides']} slides, {killed['kills']} kills: {killed['lost']} lost, {killed['doubled']} doubled, "
            f"{killed['other_bytes']} with other bytes",
        ),
        ("memory of a long run", "at most 50 MiB more after image 500 than after image 50", memory),
    ]


def _of_tests() -> list[tuple[str, str, str]]:
    return [
        (
            "`--resume` with nothing there; config or data changed",
            "exit code 2, the field is named",
            held(
                "tests/cli/test_train.py",
                "test_resume_with_nothing_there_does_not_start_afresh",
                "test_resume_with_another_config_names_the_field_and_changes_nothing",
                "test_resume_with_other_data_is_refused",
            ),
        ),
        (
            "a loss that is no number",
            "stop within one step, the last good checkpoint kept, the batch named",
            held(
                "tests/cli/test_train.py",
                "test_a_loss_that_is_no_number_stops_the_run_in_its_step_and_names_the_batch",
            ),
        ),
        (
            "a damaged tile in mid-slide",
            "listed and marked, exit code 5; `--strict` stops",
            held(
                "tests/segmentation/test_label_image.py",
                "test_a_damaged_part_is_marked_and_listed_and_the_rest_is_done",
            ),
        ),
        (
            "seams",
            "tiled and whole within 1e-5, no label changed, 20 sizes of tiles",
            held(
                "tests/segmentation/test_tile_predictor.py",
                "test_tiled_equals_whole_for_twenty_tile_sizes_at_the_paper_s_depth",
            ),
        ),
        (
            "determinism",
            "the same bytes for 1 and 2 threads, batches of 1 and 8",
            held(
                "tests/segmentation/test_tile_predictor.py",
                "test_the_number_of_threads_changes_nothing",
                "test_a_batch_of_eight_has_the_bytes_of_each_alone",
            ),
        ),
        (
            "a malicious model file",
            "12 files refused, no code run, altered files detected by SHA-256",
            held(
                "tests/models/test_files.py",
                "test_twelve_malicious_or_foreign_files_are_refused_in_one_line",
                "test_a_pickle_in_disguise_is_refused_and_not_run",
            ),
        ),
        (
            "a config of another architecture or of huge sizes",
            "refused before anything is allocated",
            held(
                "tests/models/test_files.py",
                "test_a_config_that_cannot_be_meant_is_refused_before_anything_is_built",
                "test_a_huge_config_is_refused",
            ),
        ),
        (
            "a page that drifts from its run",
            "every table is that of the committed results and names their commit",
            held("tests/test_docs.py", "test_the_tables_of_a_page_are_those_of_the_committed_results"),
        ),
    ]


BLOCKS = {"docs/results/reliability.md": {"reliability": reliability}}
