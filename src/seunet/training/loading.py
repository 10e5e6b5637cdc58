"""What a run learns from and is judged by: windows of the training images, some images held out."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Sampler

from seunet.data.holding_out import hold_out, together
from seunet.data.joined_windows import JoinedWindows
from seunet.data.manifest import Manifest, fingerprint, read_manifest
from seunet.data.windows import WindowDataset
from seunet.errors import InputError
from seunet.training.config import DataSection, RecipeSection
from seunet.training.distributed import Processes
from seunet.training.trainer import collate


class Sources:
    """Training and held-out windows of a prepared set, or of several."""

    training: WindowDataset | JoinedWindows
    validation: WindowDataset | JoinedWindows | None

    def __init__(
        self,
        section: DataSection,
        seed: int,
        scale_bands: Sequence[tuple[float, float]] = (),
        foreign_share: float = 0.0,
    ) -> None:
        sets = section.all_sets()
        self.manifests = [read_manifest(one.root) for one in sets]
        self.manifest = self.manifests[0]
        check_classes(section, self.manifests)
        held = [
            hold_out(manifest, one.root, one.hold_out, one.hold_out_every)
            for one, manifest in zip(sets, self.manifests, strict=True)
        ]
        self.held_out = held[0] if len(held) == 1 else together(held)
        training = [
            WindowDataset(
                one.root,
                "train",
                augmentation=section.augmentation,
                seed=seed + OWN_STREAM * place,
                images=[image.name for image in out.learnt_from],
                scale_bands=scale_bands,
                foreign_share=foreign_share,
                mpp=section.mpp,
                rim_um=section.rim_um,
            )
            for place, (one, out) in enumerate(zip(sets, held, strict=True))
        ]
        validation = [
            WindowDataset(one.root, ("train", "validation"), images=out.names, mpp=section.mpp)
            for one, out in zip(sets, held, strict=True)
            if out.images
        ]
        if section.sets is None:
            self.training, self.validation = training[0], validation[0] if validation else None
        else:
            self.training = JoinedWindows(training, [one.weight for one in sets], section.epoch_windows)
            self.validation = JoinedWindows(validation) if validation else None

    def class_name(self, code: int) -> str:
        return next((entry.name for entry in self.manifest.classes if entry.code == code), f"class {code}")

    def class_shares(self) -> str:
        """Of the labelled pixels learnt from, what share each class has: `background 81.4 %, nucleus 18.6 %`."""
        pixels = {
            entry.name: sum(image.class_pixels.get(str(entry.code), 0) for image in self.held_out.learnt_from)
            for entry in self.manifest.classes
        }
        total = max(sum(pixels.values()), 1)
        return ", ".join(f"{name} {100 * count / total:.3g} %" for name, count in pixels.items())

    @property
    def data_hash(self) -> str:
        """Of everything the sets hold: sources, options, pixels, windows."""
        hashes = [manifest.content_hash() for manifest in self.manifests]
        return hashes[0] if len(hashes) == 1 else fingerprint(hashes)


OWN_STREAM = 2**32
"""What is added to the seed from set to set: window n of one set is not varied like window n of another."""


def check_classes(section: DataSection, manifests: Sequence[Manifest]) -> None:
    """Refuse sets whose codes mean different things, and a rim where there is more than one class of objects."""
    sets = section.all_sets()
    names = [[entry.name for entry in manifest.classes] for manifest in manifests]
    for one, theirs in zip(sets, names, strict=True):
        if theirs != names[0]:
            raise InputError(
                f"{one.root}: its classes ({', '.join(theirs)}) are not those of {sets[0].root} "
                f"({', '.join(names[0])}); prepare both with one --class-map or --class-name"
            )
    if section.rim_um is not None and len(names[0]) != 2:
        raise InputError(f"`data.rim_um` is for background and one class of objects, not {', '.join(names[0])}")


class ShareSampler(Sampler[list[tuple[int, ...]]]):
    """This process's share of every batch of an epoch from step `start` on: lists of its keys, (epoch, index).

    With `bands`, of (epoch, index, band), the bands in turn.

    Batch n of the epoch is keys[n·B : (n + 1)·B] for any number of processes, each of which takes its slice: the
    processes together see what one would.  Windows that do not fill a batch are left to other epochs.
    """

    def __init__(
        self, keys: Sequence[tuple[int, int]], batch: int, start: int, processes: Processes, bands: int = 0
    ) -> None:
        self._keys, self._bands = keys, bands
        self._batch, self._start, self._processes = batch, start, processes
        self.steps = len(keys) // batch

    def __iter__(self) -> Iterator[list[tuple[int, ...]]]:
        share = self._batch // self._processes.size
        for step in range(self._start, self.steps):
            first = step * self._batch + self._processes.rank * share
            mine = self._keys[first : first + share]
            yield [(*key, place % self._bands) for place, key in enumerate(mine)] if self._bands else list(mine)

    def __len__(self) -> int:
        return self.steps - self._start


def batches(
    windows: WindowDataset | JoinedWindows, sampler: ShareSampler, workers: int, pin_memory: bool
) -> DataLoader:
    """The batches of (the rest of) an epoch, made by `workers` processes beside this one, or by this one."""
    return DataLoader(
        windows,
        batch_sampler=sampler,
        num_workers=workers,
        collate_fn=collate,
        pin_memory=pin_memory,
        worker_init_fn=_leave_signals_to_the_run,
        generator=torch.Generator(),  # or each start of an epoch would draw from torch's own, and a resumed one twice
    )


def _leave_signals_to_the_run(_worker: int) -> None:
    """Ctrl-C and a scheduler's SIGTERM reach the workers as well; the run still needs them to end its step.

    A second SIGTERM ends a worker: that is how torch gets rid of one that does not leave.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _frame: signal.signal(number, signal.SIG_DFL))


def check_shares(
    windows: WindowDataset | JoinedWindows, recipe: RecipeSection, processes: Processes, root: Path
) -> None:
    """Refuse a batch that cannot be filled or shared out."""
    batch, bands = recipe.batch, len(windows.scale_bands)
    if bands and batch % (bands * processes.size * recipe.accumulate):
        raise InputError(
            f"`recipe.batch` (={batch}) must be divisible by the {bands} heads"
            + (f" × {processes.size} processes" if processes.size > 1 else "")
            + (f" × {recipe.accumulate} parts" if recipe.accumulate > 1 else "")
            + ", each of which is shown windows of its own (`recipe.first_head_scale`)"
        )
    if windows.epoch_windows < batch:
        raise InputError(
            f"{root}: {windows.epoch_windows} training windows do not fill a batch of {batch}; lower `recipe.batch`"
        )
    if batch % processes.size:
        raise InputError(f"`recipe.batch` (={batch}) must be divisible by the {processes.size} processes")
