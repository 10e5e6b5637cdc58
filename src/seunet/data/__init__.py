"""Prepared data sets: the manifest, windows with their augmentation, verification.  `formats/` reads the layouts people
have, `prepare/` turns them into the one prepared form.

May import: `models` and the rooms below.  Begin with `manifest.py`, which describes the prepared form.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.data.augment import FLIPS_AND_SHIFT, Augmentation, draw, epoch_order, octaves_outside, stain_table
    from seunet.data.holding_out import HeldOut, hold_out
    from seunet.data.joined_windows import JoinedWindows
    from seunet.data.manifest import SPLITS, ImageEntry, Manifest, read_manifest, summary_lines, write_manifest
    from seunet.data.optics import (
        Optics,
        OpticsShares,
        blurred,
        draw_optics,
        noisy,
        sharpened,
        shrunk_and_enlarged,
        through_jpeg,
        with_optics,
    )
    from seunet.data.rim import rim_of, with_rim
    from seunet.data.stain import STAIN_METHODS, TARGET, VahadaneTransform, normalise_stain
    from seunet.data.stain_mixing import Mixing, draw_mixing, restained
    from seunet.data.verification import verify
    from seunet.data.windows import EpochSampler, Window, WindowDataset
else:
    __getattr__, __dir__ = door(__name__)
