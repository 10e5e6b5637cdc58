"""Vahadane: angles to known stains by each λ, seconds for an image, and the targets computed again.

    python -m benchmarks.measure.data.stain prepared/monuseg

One thread.  `spams` is compared with where it is installed; nothing here needs it.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import importlib
import importlib.util
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.declare import MONUSEG, Benchmark
from benchmarks.record import write_results
from seunet.data import STAIN_METHODS, TARGET, read_manifest
from seunet.maths import DENSITY, START, Stains, apply_stains, concentrations, fit_stains, tissue
from support.stained import MATRICES, angle_degrees, concentrations_of_tissue, render, stained_image, unit

BENCHMARK = Benchmark("measure.data.stain", ("results/benchmarks/stain.json",), 2, MONUSEG, needs=(MONUSEG,))

SIZE_PX = 1000
REPEATS = 5
PENALTIES = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
"""λ: the published 0.1, `vahadane-tuned`'s 0.02, and what is around them."""


def parser() -> argparse.ArgumentParser:
    made = BENCHMARK.parser(__doc__)
    made.add_argument("monuseg", type=Path, help="prepared/monuseg")
    return made


def stain_figures(monuseg: Path) -> dict[str, Any]:
    """Made tissue, real tissue restained, time, target."""
    figures: dict[str, Any] = {
        "made": _angles([stained_image(name, 500, seed) for name in MATRICES for seed in range(5)])
    }
    figures["highest_spread_of_one_stain"] = round(max(map(_spread, _one_stain())), 4)
    image, matrix = stained_image("macenko", SIZE_PX, 0)
    figures["made"]["plain_nmf"] = _worst([(_plain_nmf(image), matrix)])
    manifest = read_manifest(monuseg)
    train = [np.asarray(Image.open(monuseg / e.image.path)) for e in manifest.images if e.split == "train"]
    figures["real_restained"] = _angles([_restained(pixels, number) for number, pixels in enumerate(train)])
    mixed = [_restained(pixels, number, mixed=True) for number, pixels in enumerate(train)]
    figures["real_restained_no_pure_pixels"] = _angles(mixed)
    figures["targets"] = {name: _target(name, train) for name in STAIN_METHODS}
    every = [np.asarray(Image.open(monuseg / e.image.path)) for e in manifest.images]
    figures["lowest_spread_of_two_stains"] = round(min(map(_spread, every)), 4)
    figures["seconds_1000x1000_one_thread"] = _seconds(train[0])
    figures["spams"] = _spams_figures(train[0]) if importlib.util.find_spec("spams") else "not installed"
    return figures


def _angles(images: list[tuple[NDArray[np.uint8], NDArray[np.float64]]]) -> dict[str, Any]:
    """By each λ."""
    out: dict[str, Any] = {"images": len(images)}
    for penalty in PENALTIES:
        fitted = [(fit_stains(pixels, penalty), known) for pixels, known in images]
        pairs = [(fit.matrix, known) for fit, known in fitted if isinstance(fit, Stains)]
        out[f"penalty {penalty:g}"] = {"fitted": len(pairs), **_worst(pairs)}
    return out


def _worst(pairs: list[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for row, name in enumerate(("haematoxylin", "eosin")):
        errors = [angle_degrees(found[row], known[row]) for found, known in pairs]
        out[f"{name}_worst_degrees"] = round(max(errors), 2)
        out[f"{name}_median_degrees"] = round(statistics.median(errors), 2)
    out["lowest_entry"] = round(float(min(found.min() for found, _ in pairs)), 4)
    return out


def _restained(
    pixels: NDArray[np.uint8], number: int, *, mixed: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Real tissue in known stains: the concentrations of its own separation, rendered by another matrix.

    `mixed` takes the concentrations by a fixed matrix instead, wider than the image's own colours: then hardly a
    pixel has one stain alone, and nothing that looks for the sparsest mixture can find the matrix again.
    """
    fitted = fit_stains(pixels)
    own = fitted.matrix if isinstance(fitted, Stains) and not mixed else unit(MATRICES["macenko"])
    amounts = concentrations(DENSITY[pixels.reshape(-1, 3)], own, 0.0).astype(np.float64)
    known = unit(MATRICES[list(MATRICES)[number % len(MATRICES)]])
    return render(amounts, known, pixels.shape[0], number), known


def _one_stain() -> list[NDArray[np.uint8]]:
    """Made tissue with haematoxylin alone and with eosin alone."""
    images = []
    for name in MATRICES:
        for left_out in (0, 1):
            amounts = concentrations_of_tissue(400, 0)
            amounts[:, left_out] = 0
            images.append(render(amounts, unit(MATRICES[name]), 400, 0))
    return images


def _spread(image: NDArray[np.uint8]) -> float:
    """Second over first singular value of the optical densities of tissue."""
    pixels = image.reshape(-1, 3)
    singular = np.linalg.svd(DENSITY[pixels[tissue(pixels)][::20]].astype(np.float64), compute_uv=False)
    return float(singular[1] / singular[0])


def _target(name: str, images: list[NDArray[np.uint8]]) -> dict[str, Any]:
    """The median of the fits to the training images, which is what the method holds."""
    penalty, target = STAIN_METHODS[name]
    fits = [fit for fit in (fit_stains(image, penalty) for image in images) if isinstance(fit, Stains)]
    matrix = unit(np.median([fit.matrix for fit in fits], axis=0).tolist())
    strength = np.median([fit.strength for fit in fits], axis=0)
    same = np.allclose(matrix, target.matrix, atol=1e-3) and np.allclose(strength, target.strength, atol=5e-3)
    return {
        "matrix": matrix.round(4).tolist(),
        "strength": strength.round(3).tolist(),
        "is_that_of_the_package": bool(same),
    }


def _seconds(image: NDArray[np.uint8]) -> dict[str, float]:
    """Of the processor, the least of the repeats."""
    fits, applies = [], []
    for _ in range(REPEATS):
        began = time.process_time()
        fitted = fit_stains(image)
        middle = time.process_time()
        if isinstance(fitted, Stains):
            apply_stains(image, fitted, TARGET)
        fits.append(middle - began)
        applies.append(time.process_time() - middle)
    return {"fit": round(min(fits), 3), "apply": round(min(applies), 3)}


def _plain_nmf(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Twenty lines of Lee and Seung, without sparsity, as the figure to beat."""
    pixels = image.reshape(-1, 3)
    density = DENSITY[pixels[tissue(pixels)][::20]].astype(np.float64)
    matrix = START / np.linalg.norm(START, axis=1, keepdims=True)
    amounts = np.maximum(density @ np.linalg.pinv(matrix), 1e-3)
    for _ in range(300):
        amounts *= (density @ matrix.T) / (amounts @ matrix @ matrix.T + 1e-9)
        matrix *= (amounts.T @ density) / (amounts.T @ amounts @ matrix + 1e-9)
    rows: NDArray[np.float64] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return rows if rows[0, 0] >= rows[1, 0] else rows[::-1]


def _spams_figures(image: NDArray[np.uint8]) -> dict[str, Any]:
    """The usual recipe on the same image: dictionary on all tissue, lasso on all pixels, one thread."""
    spams: Any = importlib.import_module("spams")

    pixels = image.reshape(-1, 3)
    density = DENSITY[pixels].astype(np.float64)
    began = time.process_time()
    chosen = np.asfortranarray(density[tissue(pixels)].T)
    settings = {
        "K": 2,
        "lambda1": 0.1,
        "mode": 2,
        "modeD": 0,
        "posAlpha": True,
        "posD": True,
        "verbose": False,
    }
    matrix = spams.trainDL(chosen, numThreads=1, iter=100, **settings).T
    matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    dictionary, signals = np.asfortranarray(matrix.T), np.asfortranarray(density.T)
    spams.lasso(signals, D=dictionary, mode=2, lambda1=0.01, pos=True, numThreads=1)
    seconds = time.process_time() - began
    ours = _seconds(image)
    fitted = fit_stains(image)
    rows = matrix if matrix[0, 0] >= matrix[1, 0] else matrix[::-1]
    apart = [round(angle_degrees(fitted.matrix[k], rows[k]), 2) for k in (0, 1)] if isinstance(fitted, Stains) else []
    ratio = round(seconds / (ours["fit"] + ours["apply"]), 1)
    return {"seconds": round(seconds, 2), "times_ours": ratio, "degrees_apart": apart}


if __name__ == "__main__":
    print(write_results(BENCHMARK, stain_figures(parser().parse_args().monuseg)))
