"""The figures of docs/results/data.md."""

from __future__ import annotations

from typing import Any

from benchmarks.record import results, source
from seunet.evaluation import markdown_table


def measured() -> str:
    """The section below the heading “Measured”."""
    data, reliability = results("data"), results("reliability_data")
    cores = data["machine"]["cores"]
    intro = (
        f"On {cores} shared cores. `make bench-data` (commit {data['commit'][:7]}) and `make reliability` (commit "
        f"{reliability['commit'][:7]}) write these figures to `results/benchmarks/data.json` and "
        "`reliability_data.json`; those of stains have a command of their own."
    )
    parts = [intro, _monuseg(data["monuseg"]), _bcss(data["bcss"]), _stain(results("stain")), _loader(data["loader"])]
    return "\n\n".join([*parts, _reliability(reliability)])


def _monuseg(got: dict[str, Any]) -> str:
    rules = got["rules"]
    others = "; ".join(
        f"{rule}: mean {rules[rule]['mean_iou']}, lowest {rules[rule]['lowest_iou']}"
        for rule in ("half a pixel off", "even–odd, edge left out")
    )
    return (
        f"**MoNuSeg.** {got['images']} images in {got['seconds']} s, {got['windows']['train']} training and "
        f"{got['windows']['test']} test windows, {got['nuclei']:,} nuclei. On the {got['original_outlines']} "
        f"files with original outlines the foreground has an IoU of at least {got['lowest_iou']} (mean "
        f"{got['mean_iou']}) with the published instance maps; files with another count of nuclei: "
        f"{len(got['files_with_another_count_of_nuclei'])}. By other rules ({others}). The farthest vertex lies "
        f"{rules['farthest_vertex_beyond_the_image_px']} px beyond its image. `verify`: {got['findings_of_verify']} "
        "findings."
    )


def _bcss(got: dict[str, Any]) -> str:
    names = list(got["by_histogram"])
    rows = [[mask, *(f"{areas[name]:,}" for name in names)] for mask, areas in got["areas_px"].items()]
    first = next(iter(got["areas_px"]))
    same = got["areas_px"][first] == got["by_histogram"]
    return (
        f"**BCSS.** The eight real masks under made images, {got['seconds']} s, {got['windows']['train']} windows, "
        f"{got['windows_left_out']} left out. Areas in pixels; those of {first}, counted from the histogram of its "
        f"codes, are {'the same' if same else 'DIFFERENT'}.\n\n" + markdown_table(["mask", *names], rows)
    )


def _stain(got: dict[str, Any]) -> str:
    kinds = {
        "made": "made tissue, four stain pairs",
        "real_restained": "real tissue restained",
        "real_restained_no_pure_pixels": "the same without pure pixels",
    }
    names = {"penalty 0.1": " (`vahadane`)", "penalty 0.02": " (`vahadane-tuned`)"}
    header = ["λ", *(f"{words}, {got[key]['images']} images" for key, words in kinds.items())]
    rows = [
        [f"{penalty.removeprefix('penalty ')}{names.get(penalty, '')}", *(_angles(got[key][penalty]) for key in kinds)]
        for penalty in got["made"]
        if penalty.startswith("penalty")
    ]
    nmf = got["made"]["plain_nmf"]
    seconds = got["seconds_1000x1000_one_thread"]
    spams = got["spams"]
    beside = (
        "`spams` was not installed."
        if isinstance(spams, str)
        else f"`spams` takes {spams['seconds']} s for dictionary (all tissue) and concentrations "
        f"({spams['times_ours']} times ours) and finds vectors "
        f"{spams['degrees_apart'][0]}° and {spams['degrees_apart'][1]}° from ours."
    )
    return (
        "**Stains.** Angles between the vectors found and the known ones, haematoxylin / eosin, worst image (median). "
        "Real tissue is rendered from its own separation with other stains:\n\n"
        + markdown_table(header, rows)
        + "\n\nThe last kind cannot be solved: where no pixel has one stain alone, the sparsest mixture is "
        "another one. A plain "
        f"non-negative factorisation is {nmf['haematoxylin_worst_degrees']}° and {nmf['eosin_worst_degrees']}° "
        f"off on one made "
        f"image. No entry of a stain vector was negative (lowest {got['made']['penalty 0.1']['lowest_entry']}). "
        f"A 1000 × 1000 "
        f"image takes {seconds['fit']} s to fit and {seconds['apply']} s to transform on one thread. {beside} "
        f"The spread by "
        f"which two stains are told from one is at least {got['lowest_spread_of_two_stains']} in the MoNuSeg "
        f"images and at most "
        f"{got['highest_spread_of_one_stain']} with one stain. {source(got)}"
    )


def _angles(fit: dict[str, float]) -> str:
    worst, median = (
        " / ".join(f"{fit[f'{stain}_{k}_degrees']:.1f}°" for stain in ("haematoxylin", "eosin"))
        for k in ("worst", "median")
    )
    return f"{worst} ({median})"


def _loader(got: dict[str, Any]) -> str:
    rates = got["windows_per_second_by_workers"]
    steps = got["seconds_per_training_step_of_20"]
    return (
        f"**Loader.** Windows of 400 px a second, flips and shifts on: {rates['0']} without workers, "
        f"{rates['1']} with one, "
        f"{rates['2']} with two, {got['windows_per_second_mapped_from_disk']} mapped from disk with one. A "
        f"batch of 20 takes "
        f"{got['seconds_per_batch_of_20_one_worker']} s, a training step on it {steps['seunet']} s (SEUNet) and "
        f"{steps['unet']} s (UNet) at the paper's widths (20 times one window): the loader takes "
        f"{100 * got['share_of_the_shortest_step']:.2f} % of the "
        "shorter."
    )


def _reliability(got: dict[str, Any]) -> str:
    xml, images, kills = got["xml"], got["images"], got["interruption"]
    rows = [
        "| what was tried | outcome |",
        "|---|---|",
        f"| {xml['files']:,} broken or hostile XML files | {xml['refused']:,} refused in one line with exit code 2, "
        f"{xml['accepted']:,} read; {xml['tracebacks']} tracebacks, {xml['slow']} over 2 s (slowest "
        f"{xml['slowest_seconds']} s), {xml['peak_MiB']} MiB at most, {xml['lost_regions']} regions lost |",
        f"| {got['rings']['rings']:,} self-crossing, doubled, level or off-image rings | "
        f"{got['rings']['differing']} differ "
        "from whole-number arithmetic |",
        f"| {images['files']:,} broken images and masks | {images['refused']:,} refused, {images['accepted']:,} "
        f"read; "
        f"{images['tracebacks']} tracebacks, {images['hangs']} hangs; bombs refused within "
        f"{images['slowest_bomb_seconds']} s |",
        f"| {got['verify']['planted']:,} planted faults, {got['verify']['clean_sets']} clean sets | "
        f"{got['verify']['missed']} missed, {got['verify']['alarms']} false alarms |",
        f"| {kills['runs']} runs killed with signal 9 ({kills['kills_that_landed']} kills landed, "
        f"{kills['with_some_images_finished']} with images finished) and run again | {kills['differing']} "
        f"differ from an "
        "unbroken run |",
    ]
    return "**What must not go wrong.**\n\n" + "\n".join(rows)


BLOCKS = {"docs/results/data.md": {"measured": measured}}
