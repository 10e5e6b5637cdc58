"""Broken and hostile files: a deterministic stream of them from a seed."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
import tifffile
from PIL import Image

from support.datasets import disc, he_pixels, imagescope_xml

TOKENS = [
    b"nan",
    b"inf",
    b"-1e308",
    b"1e999",
    b"",
    b"0x10",
    b"1_0",
    b"\xff\xfe",
    b"\x00",
    b"<",
    b"&amp;",
    b"&x;",
    b"]]>",
    b'"',
    b"99999999999",
    "١٢".encode(),
    b"<Region>",
    b"</Region>",
    b"<Vertex/>",
    b"<!DOCTYPE a>",
]


VALUES = [
    b"nan",
    b"inf",
    b"-inf",
    b"1e308",
    b"1e999",
    b"",
    b"-0",
    b"0x10",
    b"1_0",
    b"12,5",
    b"9" * 400,
    b" 7 ",
]


def mutate(data: bytes, random: np.random.Generator) -> bytes:
    """One to four small damages: flipped, deleted, repeated or overwritten bytes, foreign tokens, a cut."""
    out = bytearray(data)
    for _ in range(int(random.integers(1, 5))):
        at = int(random.integers(0, len(out) or 1))
        length = int(random.integers(1, 40))
        kind = int(random.integers(0, 8))
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << int(random.integers(0, 8))
        elif kind == 1:
            del out[at : at + length]
        elif kind == 2:
            out[at:at] = out[at : at + length]
        elif kind == 3:
            out[at : at + length] = bytes(length)
        elif kind == 4:
            token = TOKENS[int(random.integers(0, len(TOKENS)))]
            out[at : at + len(token)] = token
        elif kind == 5:
            out[at : at + length] = random.integers(0, 256, length, dtype=np.uint8).tobytes()
        elif kind == 6 and random.random() < 0.2:
            del out[at:]
        elif out:
            head = int(random.integers(0, min(len(out), 64)))  # headers are where the damage is worst
            out[head] = int(random.integers(0, 256))
    return bytes(out)


def change_values(data: bytes, random: np.random.Generator) -> bytes:
    """Some attribute values become other numbers or nonsense, or a stretch between two values is doubled."""
    parts = data.split(b'"')
    for _ in range(int(random.integers(1, 4))):
        at = 2 * int(random.integers(0, len(parts) // 2)) + 1
        choice = int(random.integers(0, 3))
        if choice == 0:
            parts[at] = VALUES[int(random.integers(0, len(VALUES)))]
        elif choice == 1:
            parts[at] = f"{random.uniform(-8, 72):.3f}".encode()
        else:
            parts[at + 1 : at + 1] = parts[at - 1 : at + 1]
    return b'"'.join(parts)


def xml_mutants(count: int, seed: int) -> Iterator[bytes]:
    """Damaged ImageScope files of a 64 × 64 image: bytes and values by turns."""
    random = np.random.default_rng(seed)
    base = imagescope_xml([disc(12, 14, 6), disc(40, 20, 7), disc(30, 45, 5)]).encode()
    for number in range(count):
        yield (change_values if number % 2 else mutate)(base, random)


def hostile_xml() -> dict[str, bytes]:
    """Attacks and excesses by name."""
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    return {
        "laughs": f'<!DOCTYPE x [<!ENTITY a0 "lol">{entities}]><Annotations>&a9;</Annotations>'.encode(),
        "external entity": b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hosts">]><Annotations>&e;</Annotations>',
        "external DTD": b'<!DOCTYPE x SYSTEM "http://localhost/x.dtd"><Annotations/>',
        "200,000 nested tags": b"<Annotations>" + b"<a>" * 200_000,
        "200,000 nested regions": b"<Annotations><Annotation><Regions>" + b"<Region>" * 200_000,
        "a value of 20 MB": b'<Annotations MicronsPerPixel="' + b"1" * 20_000_000 + b'"/>',
        "a name of 20 MB": b"<Annotations><" + b"a" * 20_000_000 + b"/></Annotations>",
        "20 MB of text": b"<Annotations>" + b"x" * 20_000_000 + b"</Annotations>",
        "200,000 attributes": b"<Annotations " + b" ".join(b'a%d="1"' % n for n in range(200_000)) + b"></Annotations>",
        "two million vertices": b"<Annotations><Annotation><Regions><Region><Vertices>"
        + b'<Vertex X="1" Y="1"/>' * 2_000_000,
        "unknown encoding": b'<?xml version="1.0" encoding="klingon"?><Annotations/>',
        "HTML": b"<!DOCTYPE html><html><body>Sign in</body></html>",
        "nothing": b"",
        "zeros": bytes(1000),
    }


def image_seeds() -> dict[str, bytes]:
    """One small valid file of each kind that is read."""
    rgb = Image.fromarray(he_pixels(32, 0))
    kinds: dict[str, tuple[Image.Image, str, dict[str, object]]] = {
        "png": (rgb, "PNG", {}),
        "png palette": (rgb.quantize(16), "PNG", {}),
        "png rgba": (rgb.convert("RGBA"), "PNG", {}),
        "png grey": (rgb.convert("L"), "PNG", {}),
        "jpeg": (rgb, "JPEG", {}),
        "jpeg progressive": (rgb, "JPEG", {"progressive": True}),
        "tiff raw": (rgb, "TIFF", {}),
        "tiff deflate": (rgb, "TIFF", {"compression": "tiff_adobe_deflate"}),
        "tiff lzw": (rgb, "TIFF", {"compression": "tiff_lzw"}),
        "tiff jpeg": (rgb, "TIFF", {"compression": "jpeg"}),
        "tiff packbits": (rgb, "TIFF", {"compression": "packbits"}),
    }
    out = {}
    for name, (image, kind, options) in kinds.items():
        buffer = io.BytesIO()
        image.save(buffer, format=kind, **options)
        out[name] = buffer.getvalue()
    for name, compression in (("tiff tiled", None), ("tiff tiled deflate", "zlib")):
        buffer = io.BytesIO()
        tifffile.imwrite(buffer, he_pixels(32, 0), photometric="rgb", tile=(16, 16), compression=compression)
        out[name] = buffer.getvalue()
    return out


def image_mutants(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """(kind, damaged file)."""
    random = np.random.default_rng(seed)
    seeds = list(image_seeds().items())
    for number in range(count):
        name, data = seeds[number % len(seeds)]
        yield name, mutate(data, random)


def png_bomb(width: int, height: int) -> bytes:
    """A PNG of a few hundred bytes that claims width × height pixels."""
    return raw_png(width, height, 8, bytes(1000))


def raw_png(width: int, height: int, bits: int, rows: bytes) -> bytes:
    """An RGB PNG with this header over these rows, whatever their length."""
    header = struct.pack(">IIBBBBB", width, height, bits, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def tiff_bomb(width: int, height: int) -> bytes:
    """A TIFF of a few hundred bytes that claims width × height pixels."""
    entries = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, 8),
        (277, 3, 1, 1),
        (278, 4, 1, height),
        (279, 4, 1, 100),
    ]
    body = struct.pack("<H", len(entries))
    for tag, kind, count, value in entries:
        body += struct.pack("<HHII", tag, kind, count, value)
    return b"II*\x00" + struct.pack("<I", 8) + body + bytes(200)
