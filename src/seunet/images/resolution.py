"""How many µm a pixel is: what a file says of it, whether that is believed, and what the user says.

The power of the objective alone is never turned into µm per pixel: cameras differ, and such guesses were wrong by
factors of two (docs/decisions/0041-what-is-believed-of-a-slide.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seunet.errors import InputError
from seunet.images.image import Mpp, MppSource
from seunet.limits import MPP_RANGE

CONFLICT = 0.05
"""Two statements that differ by more contradict each other."""

OBLONG, ABSURDLY_OBLONG = 0.01, 0.20
"""How much the sides of a pixel may differ before it is said, and before it is not believed."""

MICRONS = {"inch": 25_400.0, "cm": 10_000.0}
DEFAULT_DPI = (1, 72, 96, 100, 150, 200, 300, 600, 1200)
"""What programs write that know nothing of the microscope."""

UNITS = {"m": 1e6, "dm": 1e5, "cm": 1e4, "mm": 1e3, "µm": 1.0, "μm": 1.0, "um": 1.0, "micron": 1.0, "nm": 1e-3}
UNITS |= {"microns": 1.0, "\\u00B5m": 1.0, "Å": 1e-4, "pm": 1e-6, "inch": 25_400.0, "in": 25_400.0}


class Stated(NamedTuple):
    """What one place in a file says: µm per pixel along x and y."""

    x: float
    y: float
    source: MppSource
    where: str

    @property
    def mpp(self) -> Mpp:
        return Mpp(self.x, self.y, self.source)


def settled(stated: Sequence[Stated], user_mpp: float | None, power: str | None) -> tuple[Mpp | None, list[str]]:
    """The mpp to go by, and a line for whatever contradicts it or was not believed.

    The user comes first, then the statements in their order.  `power` is the objective's, as written.
    """
    believed = [one for one in stated if doubt(one) is None]
    if user_mpp is not None:
        check_mpp(user_mpp, "--mpp", "give the µm of one pixel of the full-size image, e.g. 0.25")
        chosen = Mpp(user_mpp, user_mpp, "user")
        return chosen, [_contradiction(one, chosen, "the user's") for one in believed[:1] if conflicts(one.mpp, chosen)]
    if not believed:
        lines = [line for one in stated if (line := doubt(one)) is not None]
        if power:
            lines.append(f"no µm per pixel; the objective's power {power} is not turned into one: pass --mpp if known")
        return None, lines
    first, *others = believed
    lines = [_contradiction(one, first.mpp, first.where) for one in others if conflicts(one.mpp, first.mpp)]
    if _oblongness(first) > OBLONG:
        lines.append(f"{first.where}: pixels of {first.x:.4g}×{first.y:.4g} µm are not square; taken as they are")
    return first.mpp, lines


def doubt(stated: Stated) -> str | None:
    """Why a statement is not believed; None if it is."""
    low, high = MPP_RANGE
    for value in (stated.x, stated.y):
        if not low <= value <= high:
            why = f"is outside {low:g}–{high:g}{_default_dpi(value)}"
            return f"{stated.where}: {value:.4g} µm per pixel {why}; not believed: pass --mpp if it is known"
    if _oblongness(stated) > ABSURDLY_OBLONG:
        return f"{stated.where}: pixels of {stated.x:.4g}×{stated.y:.4g} µm are too oblong; not believed: pass --mpp"
    return None


def conflicts(one: Mpp, other: Mpp) -> bool:
    """Whether two values are further apart than measuring and rounding can explain."""
    return max(one.mean, other.mean) > (1 + CONFLICT) * min(one.mean, other.mean)


def number(text: object) -> float:
    """A number as written; NaN, which nobody believes, if it is none."""
    try:
        return float(str(text).strip())
    except ValueError:
        return float("nan")


def _oblongness(stated: Stated) -> float:
    return max(stated.x, stated.y) / min(stated.x, stated.y) - 1


def _contradiction(stated: Stated, chosen: Mpp, whose: str) -> str:
    said, used = f"{stated.mpp.mean:.4g}", f"{chosen.mean:.4g}"
    return f"{stated.where}: {said} µm per pixel, but {whose} {used} is used; check which is true"


def _default_dpi(mpp: float) -> str:
    near = [dpi for dpi in DEFAULT_DPI if mpp > 0 and abs(MICRONS["inch"] / mpp / dpi - 1) < 0.005]
    return f" ({near[0]} dpi, a default of screens and printers)" if near else ""


def check_mpp(mpp: float, where: str, remedy: str = "pass --mpp with the right value") -> float:
    """`mpp` if a light microscope can have taken it."""
    low, high = MPP_RANGE
    if not low <= mpp <= high:
        raise InputError(f"{where}: {mpp:g} µm per pixel is outside {low:g}–{high:g}; {remedy}")
    return mpp
