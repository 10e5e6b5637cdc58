"""Files → RGB: one protocol for an image with levels, the readers behind it (Pillow, TIFF, OpenSlide), the resolution a
file states and whether it is believed, the overview and where there is tissue.

May import: `maths`, `storage` and the foundations.  Begin with `image.py` (the protocol), then `open.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.images.image import ArrayImage, Bounds, Image, Level, Mpp, RgbArray
    from seunet.images.open import open_image
    from seunet.images.overview import find_tissue, thumbnail
    from seunet.images.pillow_codec import decode_rgb, encode_png, read_image
    from seunet.images.sandboxed import ReadingProcess, open_guarded
    from seunet.images.to_rgb import rgb_pixels
else:
    __getattr__, __dir__ = door(__name__)
