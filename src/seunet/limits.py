"""Ceilings that keep a wrong number in a file or an argument from taking the machine down."""

from __future__ import annotations

from typing import Final

MAX_FILTER_RADIUS: Final = 512
"""Pixels; a filter of 1025 taps per side.  σ ≤ 256 at the paper's two standard deviations."""

MAX_ORDER: Final = 8
MAX_SCALES: Final = 64
MAX_CHANNELS: Final = 65_536
MAX_CLASSES: Final = 4_096
MAX_PARAMETERS: Final = 1_000_000_000
MAX_CONFIG_BYTES: Final = 1_000_000
MAX_MODEL_BYTES: Final = 8_000_000_000

MAX_IMAGE_PIXELS: Final = 1 << 28
"""268 million: a 16,384 × 16,384 image.  Larger ones are slides and are read in tiles."""

MAX_IMAGE_BYTES: Final = 2_000_000_000
MAX_XML_BYTES: Final = 64_000_000
MAX_XML_DEPTH: Final = 32
MAX_REGIONS: Final = 60_000
"""Instance maps are 16-bit."""

MAX_VERTICES: Final = 250_000
"""In one annotation file; the largest published one has 90,490."""

MAX_TABLE_BYTES: Final = 16_000_000
MAX_MANIFEST_BYTES: Final = 512_000_000
MAX_JOB_SECONDS: Final = 600.0
"""For one image and its annotation; the largest published one takes 20."""

MAX_JOB_BYTES: Final = 6_000_000_000
"""Address space of a process that decodes a file of unknown origin."""

MAX_SLIDE_PIXELS: Final = 1 << 37
"""137 billion: a slide of 370,000 × 370,000.  A header that claims more is broken."""

MAX_SEGMENT_BYTES: Final = 1 << 29
"""Of one tile or strip when decoded: what must be in memory to see one pixel of it."""

MAX_PAGES: Final = 64
"""Pages of a TIFF that are looked at for levels of a pyramid."""

MAX_READER_BYTES: Final = 4 << 30
"""Address space of the process that reads an image or slide for us."""

MAX_READ_SECONDS: Final = 120.0
"""For opening a slide or reading one region; 2048² pixels of JPEG 2000 take 3."""

MPP_RANGE: Final = (0.05, 20.0)
"""µm per pixel that a light microscope can give, from an oil lens to a macro view."""
