"""The section “Measured” of docs/data.md, from the results: `python -m benchmarks.data_page`."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.data_results import RESULTS, ROOT
from seunet.atomic import write_text

PAGE = ROOT / "docs" / "data.md"
HEADING = "## Measured\n"


def main() -> None:
    """Replace everything after the heading."""
    write_text(PAGE, PAGE.read_text().split(HEADING)[0] + HEADING + measured())


def measured() -> str:
    """The section's text."""
    data, reliability = (json.loads((RESULTS / f"{name}.json").read_text()) for name in ("data", "reliability_data"))
    cores = data["machine"]["cores"]
    intro = (
        f"On {cores} shared cores. `make bench-data` (commit {data['commit'][:7]}) and `make reliability` (commit "
        f"{reliability['commit'][:7]}) write these figures to `benchmarks/results/data.json` and "
        "`reliability_data.json`; `python -m benchmarks.data_page` writes this section from them."
    )
    parts = [intro, _monuseg(data["monuseg"]), _bcss(data["bcss"]), _stain(data["stain"]), _loader(data["loader"])]
    return "\n" + "\n\n".join([*parts, _reliability(reliability)]) + "\n"


def _monuseg(figures: dict[str, Any]) -> str:
    rules = figures["rules"]
    others = "; ".join(
        f"{rule}: mean {rules[rule]['mean_iou']}, lowest {rules[rule]['lowest_iou']}"
        for rule in ("half a pixel off", "even–odd, edge left out")
    )
    return (
        f"**MoNuSeg.** {figures['images']} images in {figures['seconds']} s, {figures['windows']['train']} training and "
        f"{figures['windows']['test']} test windows, {figures['nuclei']:,} nuclei. On the {figures['original_outlines']} "
        f"files with original outlines the foreground has an IoU of at least {figures['lowest_iou']} (mean "
        f"{figures['mean_iou']}) with the published instance maps; files with another count of nuclei: "
        f"{len(figures['files_with_another_count_of_nuclei'])}. By other rules ({others}). The farthest vertex lies "
        f"{rules['farthest_vertex_beyond_the_image_px']} px beyond its image. `verify`: {figures['findings_of_verify']} "
        "findings."
    )


def _bcss(figures: dict[str, Any]) -> str:
    names = list(figures["by_histogram"])
    lines = [f"| mask | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for mask, areas in figures["areas_px"].items():
        lines.append(f"| {mask} | {' | '.join(f'{areas[name]:,}' for name in names)} |")
    first = next(iter(figures["areas_px"]))
    same = figures["areas_px"][first] == figures["by_histogram"]
    return (
        f"**BCSS.** The eight real masks under made images, {figures['seconds']} s, {figures['windows']['train']} windows, "
        f"{figures['windows_left_out']} left out. Areas in pixels; those of {first}, counted from the histogram of its "
        f"codes, are {'the same' if same else 'DIFFERENT'}.\n\n" + "\n".join(lines)
    )


def _stain(figures: dict[str, Any]) -> str:
    rows = [
        "| images with known stains | λ | haematoxylin, worst | median | eosin, worst | median |",
        "|---|---|---|---|---|---|",
    ]
    kinds = {
        "made": "made tissue, four stain pairs",
        "real_restained": "real tissue restained (its own separation, other stains)",
        "real_restained_no_pure_pixels": "real tissue restained without pure pixels",
    }
    for key, words in kinds.items():
        for penalty in ("0.1", "0.02"):
            fit = figures[key][f"penalty {penalty}"]
            angles = [fit[f"{s}_{k}_degrees"] for s in ("haematoxylin", "eosin") for k in ("worst", "median")]
            rows.append(f"| {words} ({fit['fitted']}) | {penalty} | {' | '.join(f'{angle}°' for angle in angles)} |")
    nmf = figures["made"]["plain_nmf"]
    seconds = figures["seconds_1000x1000_one_thread"]
    spams = figures["spams"]
    beside = (
        "`spams` was not installed."
        if isinstance(spams, str)
        else f"`spams` takes {spams['seconds']} s for the same ({spams['times_ours']} times ours) and finds vectors "
        f"{spams['degrees_apart'][0]}° and {spams['degrees_apart'][1]}° from ours."
    )
    return (
        "**Stains.** Angle between the vectors found and the known ones:\n\n"
        + "\n".join(rows)
        + "\n\nThe last kind cannot be solved: where no pixel has one stain alone, the sparsest mixture is another one. A plain "
        f"non-negative factorisation is {nmf['haematoxylin_worst_degrees']}° and {nmf['eosin_worst_degrees']}° off on one made "
        f"image. No entry of a stain vector was negative (lowest {figures['made']['penalty 0.1']['lowest_entry']}). A 1000 × 1000 "
        f"image takes {seconds['fit']} s to fit and {seconds['apply']} s to transform on one thread. {beside} The spread by "
        f"which two stains are told from one is at least {figures['lowest_spread_of_two_stains']} in the MoNuSeg images and at most "
        f"{figures['highest_spread_of_one_stain']} with one stain."
    )


def _loader(figures: dict[str, Any]) -> str:
    rates = figures["windows_per_second_by_workers"]
    steps = figures["seconds_per_training_step_of_20"]
    return (
        f"**Loader.** Windows of 400 px a second, flips and shifts on: {rates['0']} without workers, {rates['1']} with one, "
        f"{rates['2']} with two, {figures['windows_per_second_mapped_from_disk']} mapped from disk with one. A batch of 20 takes "
        f"{figures['seconds_per_batch_of_20_one_worker']} s, a training step on it {steps['seunet']} s (SEUNet) and "
        f"{steps['unet']} s (UNet) at the paper's widths: the loader takes {100 * figures['share_of_the_shortest_step']:.2f} % of the "
        "shorter."
    )


def _reliability(figures: dict[str, Any]) -> str:
    xml, images, kills = figures["xml"], figures["images"], figures["interruption"]
    rows = [
        "| what was tried | outcome |",
        "|---|---|",
        f"| {xml['files']:,} broken or hostile XML files | {xml['refused']:,} refused in one line with exit code 2, "
        f"{xml['accepted']:,} read; {xml['tracebacks']} tracebacks, {xml['slow']} over 2 s (slowest "
        f"{xml['slowest_seconds']} s), {xml['peak_MiB']} MiB at most, {xml['lost_regions']} regions lost |",
        f"| {figures['rings']['rings']:,} self-crossing, doubled, level or off-image rings | {figures['rings']['differing']} differ "
        "from whole-number arithmetic |",
        f"| {images['files']:,} broken images and masks | {images['refused']:,} refused, {images['accepted']:,} read; "
        f"{images['tracebacks']} tracebacks, {images['hangs']} hangs; bombs refused within "
        f"{images['slowest_bomb_seconds']} s |",
        f"| {figures['verify']['planted']:,} planted faults, {figures['verify']['clean_sets']} clean sets | "
        f"{figures['verify']['missed']} missed, {figures['verify']['alarms']} false alarms |",
        f"| {kills['runs']} runs killed with signal 9 ({kills['kills_that_landed']} kills landed, "
        f"{kills['with_some_images_finished']} with images finished) and run again | {kills['differing']} differ from an "
        "unbroken run |",
    ]
    return "**What must not go wrong.**\n\n" + "\n".join(rows)


if __name__ == "__main__":
    main()
