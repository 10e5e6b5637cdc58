"""MoNuSeg as published: TIFF images and ImageScope outlines of nuclei, a training and a test archive."""

from __future__ import annotations

from pathlib import Path

from seunet.data.formats.finding import check_source, files_by_stem, find_folder, pair, wrong_level
from seunet.data.manifest import ClassEntry
from seunet.data.prepare.one_image import CORRECTED
from seunet.data.prepare.plan import Found, Plan, PrepareSettings, make_plan, move_share
from seunet.errors import SeunetError

TRAIN = ("MoNuSeg 2018 Training Data", "MoNuSegTrainingData")
TEST = ("MoNuSegTestData", "MoNuSeg Test Data")
EXPECTED = f"the folders “{TRAIN[0]}” and “{TEST[0]}”"
CLASSES = [
    ClassEntry(code=0, name="background", color=(0, 0, 0)),
    ClassEntry(code=1, name="nucleus", color=(255, 214, 64)),
]
NOMINAL_MPP = 0.25
CORRECTED_MPP = {"TCGA-HE-7128": 0.5, "TCGA-HE-7129": 0.5, "TCGA-HE-7130": 0.5}
"""Patients whose images are published as 40 × like all others and are not: their nuclei are 12 px across in the median,
those of the other training images 22 px, and their first annotation files are reported to state 0.5005 µm per pixel."""
PATIENT_CHARACTERS = 12
"""TCGA-18-5592-01Z-00-DX1 → TCGA-18-5592."""


def plan_monuseg(source: Path, dest: Path, settings: PrepareSettings) -> Plan:
    """Jobs for every image of the archives found below `source`."""
    check_source(source)
    folders = {"train": find_folder(source, TRAIN), "test": find_folder(source, TEST)}
    if not any(folders.values()):
        raise wrong_level(source, EXPECTED, (*TRAIN, *TEST))
    decisions = ["a pixel is nucleus if its centre (x = column, y = row) is inside or on an outline"]
    faults: list[SeunetError] = []
    found: list[Found] = []
    for split, folder in folders.items():
        if folder is None:
            decisions.append(f"no {split} archive in the source")
            continue
        pairs, bad = _pairs(folder, split)
        found += pairs
        faults += bad
    found = move_share(found, settings.validation, settings.seed, "validation")
    return make_plan("monuseg", "outlines", CLASSES, settings, found, dest, decisions=decisions, faults=faults)


def _pairs(folder: Path, split: str) -> tuple[list[Found], list[SeunetError]]:
    """The training archive keeps images and XML in two folders, the test archive in one."""
    image_folder = find_folder(folder, ["Tissue Images"]) or folder
    xml_folder = find_folder(folder, ["Annotations"]) or folder
    images, image_faults = files_by_stem(image_folder)
    outlines, xml_faults = files_by_stem(xml_folder, (".xml",))
    names, faults = pair(images, outlines, image_folder.name, xml_folder.name)
    found = [Found(name, images[name], outlines[name], split, name[:PATIENT_CHARACTERS], *_mpp(name)) for name in names]
    return found, image_faults + xml_faults + faults


def _mpp(name: str) -> tuple[float, str]:
    """µm per pixel and where it is from; what the annotation file states goes before the nominal one alone."""
    patient = name[:PATIENT_CHARACTERS]
    return (CORRECTED_MPP[patient], CORRECTED) if patient in CORRECTED_MPP else (NOMINAL_MPP, "nominal (40×)")
