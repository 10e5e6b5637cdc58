"""BCSS as published: RGB regions, masks of 22 codes, `gtruth_codes.tsv`."""

from __future__ import annotations

import re
from pathlib import Path

from seunet.data.formats.finding import check_source, files_by_stem, find_folder, pair, wrong_level
from seunet.data.manifest import ClassEntry
from seunet.data.prepare.one_image import IGNORE_CODE
from seunet.data.prepare.plan import Found, Plan, PrepareSettings, make_plan, move_share
from seunet.errors import InputError
from seunet.images.resolution import check_mpp
from seunet.storage.files import read_table, whole_number

RGB = ("rgbs_colorNormalized", "rgb", "rgbs", "images")
MASKS = ("masks", "mask")
EXPECTED = "the folders “rgbs_colorNormalized” (or “rgb”) and “masks”"
NAME = re.compile(r"(TCGA-([A-Z0-9]{2})-[A-Z0-9]{4})-[A-Z0-9]+_xmin\d+_ymin\d+_MPP-(\d+(?:\.\d+)?)")
TEST_INSTITUTIONS = ("OL", "LL", "E2", "EW", "GM", "S3")
"""TCGA tissue source sites; the public split."""

CLASSES = [
    ClassEntry(code=0, name="other", color=(128, 128, 128)),
    ClassEntry(code=1, name="tumour", color=(220, 40, 60)),
    ClassEntry(code=2, name="stroma", color=(80, 170, 90)),
    ClassEntry(code=3, name="inflammatory", color=(60, 90, 220)),
    ClassEntry(code=4, name="necrosis", color=(250, 200, 60)),
]
GROUPS = {
    "tumour": ("tumor", "angioinvasion", "dcis"),
    "stroma": ("stroma",),
    "inflammatory": ("lymphocytic_infiltrate", "plasma_cells", "other_immune_infiltrate"),
    "necrosis": ("necrosis_or_debris",),
    "ignore": ("outside_roi",),
}
"""Published label → class; every other published label is “other”."""

PUBLISHED = {
    "outside_roi": 0,
    "tumor": 1,
    "stroma": 2,
    "lymphocytic_infiltrate": 3,
    "necrosis_or_debris": 4,
    "glandular_secretions": 5,
    "blood": 6,
    "exclude": 7,
    "metaplasia_NOS": 8,
    "fat": 9,
    "plasma_cells": 10,
    "other_immune_infiltrate": 11,
    "mucoid_material": 12,
    "normal_acinus_or_duct": 13,
    "lymphatics": 14,
    "undetermined": 15,
    "nerve": 16,
    "skin_adnexa": 17,
    "blood_vessel": 18,
    "angioinvasion": 19,
    "dcis": 20,
    "other": 21,
}


def code_map(codes: dict[str, int]) -> dict[str, int]:
    """Source code → class code, for a table of published labels."""
    class_codes = {entry.name: entry.code for entry in CLASSES} | {"ignore": IGNORE_CODE}
    groups = {label: group for group, labels in GROUPS.items() for label in labels}
    return {str(code): class_codes[groups.get(label, "other")] for label, code in codes.items()}


def plan_bcss(
    source: Path, dest: Path, settings: PrepareSettings, test_institutions: tuple[str, ...] = TEST_INSTITUTIONS
) -> Plan:
    """Jobs for every region with its mask below `source`."""
    check_source(source)
    rgb_folder, mask_folder = find_folder(source, RGB), find_folder(source, MASKS)
    if rgb_folder is None or mask_folder is None:
        raise wrong_level(source, EXPECTED, (*RGB, *MASKS))
    codes, decisions = _published_codes(source)
    images, image_faults = files_by_stem(rgb_folder)
    masks, mask_faults = files_by_stem(mask_folder, (".png",))
    names, faults = pair(images, masks, rgb_folder.name, mask_folder.name)
    found: list[Found] = []
    for name in names:
        try:
            found.append(_found(name, images[name], masks[name], test_institutions))
        except InputError as error:
            faults.append(error)
    found = move_share(found, settings.validation, settings.seed, "validation")
    sites = sorted({item.patient.split("-")[1] for item in found if item.split == "test"})
    decisions += [
        f"test institutions: {', '.join(test_institutions)} (found: {', '.join(sites) or 'none'})",
        "codes to classes: " + "; ".join(f"{group} = {', '.join(labels)}" for group, labels in GROUPS.items()),
        f"windows with less than {settings.min_annotated:.0%} annotated (not “ignore”) area are left out",
    ]
    return make_plan(
        "bcss",
        "codes",
        CLASSES,
        settings,
        found,
        dest,
        code_map=code_map(codes),
        decisions=decisions,
        faults=image_faults + mask_faults + faults,
        options={"test_institutions": list(test_institutions), "code_map": code_map(codes)},
    )


def _found(name: str, image: Path, mask: Path, test_institutions: tuple[str, ...]) -> Found:
    parts = NAME.fullmatch(name)
    if parts is None:
        raise InputError(f"{image.name}: name is not TCGA-…_xmin…_ymin…_MPP-…; restore the published name")
    patient, site, mpp = parts.groups()
    split = "test" if site in test_institutions else "train"
    return Found(name, image, mask, split, patient, check_mpp(float(mpp), f"{image.name} MPP"), "file name")


def _published_codes(source: Path) -> tuple[dict[str, int], list[str]]:
    """The set's own code list if it came along; it must agree with the published one in what it names."""
    for path in (source / "gtruth_codes.tsv", source / "meta" / "gtruth_codes.tsv"):
        if path.is_file():
            rows = read_table(path, ("label", "GT_code"))
            codes = {row["label"]: whole_number(row["GT_code"], f"{path.name} {row['label']}", 0, 254) for row in rows}
            for label in (label for labels in GROUPS.values() for label in labels):
                if label not in codes:
                    raise InputError(f"{path.name}: label {label!r} is missing; restore the published table")
            if len(set(codes.values())) != len(rows):
                raise InputError(f"{path.name}: a code or label occurs twice; restore the published table")
            return codes, [f"{len(codes)} codes read from {path.name}"]
    return dict(PUBLISHED), [f"no gtruth_codes.tsv in the source: the published {len(PUBLISHED)} codes used"]
