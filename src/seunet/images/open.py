"""Open an image or slide, whatever its format: the content decides how, not the name."""

from __future__ import annotations

from pathlib import Path

from seunet.errors import InputError
from seunet.images.image import Image, first_bytes

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
BMP = b"BM"
RIFF, WEBP = b"RIFF", b"WEBP"
TIFF = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
GENERIC = (None, "generic-tiff")
"""What OpenSlide has no reader of its own for; of OME pyramids it sees one level, tifffile all."""


def open_image(path: Path, user_mpp: float | None = None) -> Image:
    """The image in a file (`Image`); an InputError in one line if there is none that can be read.

    PNG, JPEG, BMP and WebP are decoded here; TIFF is read in parts by tifffile; what OpenSlide knows as a scanner's
    format, by it.
    Opening foreign files in this process is for tests and quick looks: `sandboxed.open_guarded` survives any file.
    """
    if (path / "zarr.json").is_file():
        from seunet.images.zarr_image import open_probabilities

        return open_probabilities(path)
    start = first_bytes(path)
    if not start:
        raise InputError(f"{path.name}: is empty; copy or export it again")
    if start.startswith((PNG, BMP)) or (start.startswith(RIFF) and start[8:12] == WEBP):
        from seunet.images.pillow_image import open_picture

        return open_picture(path, user_mpp)
    from seunet.images.openslide_image import detect_vendor, open_slide

    vendor = detect_vendor(path)
    if vendor == "aperio":
        from seunet.images.tiff_image import open_aperio

        return open_aperio(path, user_mpp) or open_slide(path, user_mpp)
    if vendor not in GENERIC:
        return open_slide(path, user_mpp)
    if start.startswith(TIFF):
        from seunet.images.tiff_image import open_tiff

        return open_tiff(path, user_mpp)
    if start.startswith(JPEG):
        from seunet.images.pillow_image import open_picture

        return open_picture(path, user_mpp)
    if start.startswith(b"PK\x03\x04"):
        raise InputError(f"{path.name}: is a zip archive; extract it first")
    known = "PNG, JPEG, BMP, WebP, TIFF or a scanner's file"
    raise InputError(f"{path.name}: not an image or slide of a known format; give {known}")
