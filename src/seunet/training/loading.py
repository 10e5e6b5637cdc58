"""What a run learns from and is judged by: windows of the training images, some images held out."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Sampler

from seunet.data.augment import epoch_order
from seunet.data.holding_out import hold_out
from seunet.data.manifest import read_manifest
from seunet.data.windows import WindowDataset
from seunet.errors import InputError
from seunet.training.config import DataSection, RecipeSection
from seunet.training.distributed import Processes
from seunet.training.trainer import collate


class Sources:
    """Training and held-out windows of a prepared set."""

    def __init__(
        self,
        section: DataSection,
        seed: int,
        scale_bands: Sequence[tuple[float, float]] = (),
        foreign_share: float = 0.0,
    ) -> None:
        self.manifest = read_manifest(section.root)
        self.held_out = hold_out(self.manifest, section.root, section.hold_out, section.hold_out_every)
        augmentation = section.augmentation.augmentation()
        self.training = WindowDataset(
            section.root,
            "train",
            augmentation=augmentation,
            seed=seed,
            images=[image.name for image in self.held_out.learnt_from],
            scale_bands=scale_bands,
            foreign_share=foreign_share,
        )
        self.validation = (
            WindowDataset(section.root, ("train", "validation"), images=self.held_out.names)
            if self.held_out.images
            else None
        )

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
        """Of everything the set holds: sources, options, pixels, windows."""
        return self.manifest.content_hash()


class ShareSampler(Sampler[list[tuple[int, ...]]]):
    """This process's share of every batch of an epoch from step `start` on: lists of (epoch, index).

    With `bands`, of (epoch, index, band), the bands in turn.

    Batch n of the epoch is order[n·B : (n + 1)·B] for any number of processes, each of which takes its slice: the
    processes together see what one would.  Windows that do not fill a batch are left to other epochs.
    """

    def __init__(
        self, length: int, batch: int, seed: int, epoch: int, start: int, processes: Processes, bands: int = 0
    ) -> None:
        self._order, self._bands = epoch_order(length, seed, epoch), bands
        self._batch, self._epoch, self._start, self._processes = batch, epoch, start, processes
        self.steps = length // batch

    def __iter__(self) -> Iterator[list[tuple[int, ...]]]:
        share = self._batch // self._processes.size
        for step in range(self._start, self.steps):
            first = step * self._batch + self._processes.rank * share
            mine = self._order[first : first + share]
            if self._bands:
                yield [(self._epoch, index, place % self._bands) for place, index in enumerate(mine)]
            else:
                yield [(self._epoch, index) for index in mine]

    def __len__(self) -> int:
        return self.steps - self._start


def batches(windows: WindowDataset, sampler: ShareSampler, workers: int, pin_memory: bool) -> DataLoader:
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


def check_shares(windows: WindowDataset, recipe: RecipeSection, processes: Processes, root: Path) -> None:
    """Refuse a batch that cannot be filled or shared out."""
    batch, bands = recipe.batch, len(windows.scale_bands)
    if bands and batch % (bands * processes.size * recipe.accumulate):
        raise InputError(
            f"`recipe.batch` (={batch}) must be divisible by the {bands} heads"
            + (f" × {processes.size} processes" if processes.size > 1 else "")
            + (f" × {recipe.accumulate} parts" if recipe.accumulate > 1 else "")
            + ", each of which is shown windows of its own (`recipe.first_head_scale`)"
        )
    if len(windows) < batch:
        raise InputError(
            f"{root}: {len(windows)} training windows do not fill a batch of {batch}; lower `recipe.batch`"
        )
    if batch % processes.size:
        raise InputError(f"`recipe.batch` (={batch}) must be divisible by the {processes.size} processes")


def image_names(windows: WindowDataset, numbers: list[int]) -> list[str]:
    """Of which images these windows are, for messages."""
    return sorted({windows.image_name(number) for number in numbers})
