"""Any lab's own data: `images/`, `masks/`, a class map, and a rule for which images are one patient's."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from seunet.data.formats.finding import check_source, files_by_stem, find_folder, pair, wrong_level
from seunet.data.manifest import SPLITS, ClassEntry
from seunet.data.prepare.one_image import IGNORE_CODE, MAX_CODE
from seunet.data.prepare.plan import Found, Plan, PrepareSettings, make_plan, move_share
from seunet.errors import InputError, SeunetError, check_known
from seunet.images.resolution import check_mpp
from seunet.limits import MAX_CLASSES
from seunet.storage.files import number_in, read_table, whole_number

EXPECTED = "the folders “images” and “masks”"
INSTANCE_FOLDER = "labels_inst"
"""In place of “masks”: what published sets call their instance maps."""
COLOURS = [
    (128, 128, 128),
    (220, 40, 60),
    (80, 170, 90),
    (60, 90, 220),
    (250, 200, 60),
    (150, 80, 200),
    (60, 190, 200),
    (240, 130, 40),
]
KINDS = ("binary", "classes", "instances")
JOB_KINDS = {"classes": "codes"}
BINARY_CODES = {"0": 0, "1": 1, "255": 1}


@dataclass(frozen=True)
class FolderRules:
    """How to read masks, and how to know patients and splits."""

    kind: str = "classes"
    class_map: Path | None = None
    instance_class: str = "nucleus"
    patient_pattern: str | None = None
    table: Path | None = None
    test: float = 0.0


def plan_folder(source: Path, dest: Path, settings: PrepareSettings, rules: FolderRules) -> Plan:
    """Jobs for every image with its mask below `source`."""
    check_source(source)
    check_known("kind of mask", rules.kind, KINDS)
    image_folder = find_folder(source, ["images"])
    mask_folder = find_folder(source, ["masks"]) or find_folder(source, [INSTANCE_FOLDER])
    if image_folder is None or mask_folder is None:
        raise wrong_level(source, EXPECTED, ("images", "masks"))
    if mask_folder.name.casefold() == INSTANCE_FOLDER:
        rules = replace(rules, kind="instances")
    classes, codes, decisions = classes_of(rules)
    images, image_faults = files_by_stem(image_folder)
    masks, mask_faults = files_by_stem(mask_folder, (".png", ".tif", ".tiff"))
    names, faults = pair(images, masks, "images", mask_folder.name)
    faults += image_faults + mask_faults
    found, table_faults = _described(names, images, masks, rules, decisions)
    found = move_share(found, rules.test, settings.seed, "test")
    found = move_share(found, settings.validation, settings.seed + 1, "validation")
    return make_plan(
        "folder",
        JOB_KINDS.get(rules.kind, rules.kind),
        classes,
        settings,
        found,
        dest,
        code_map=codes,
        decisions=decisions,
        faults=faults + table_faults,
        options={
            "kind": rules.kind,
            "code_map": codes,
            "test": rules.test,
            "patient_pattern": rules.patient_pattern,
        },
    )


def classes_of(rules: FolderRules) -> tuple[list[ClassEntry], dict[str, int], list[str]]:
    """The class table, source code → class code, and what was decided."""
    two = _entries(["background", rules.instance_class])
    if rules.kind == "instances":
        return two, {}, [f"instance masks: 0 is background, every other number one {rules.instance_class}"]
    if rules.kind == "binary":
        return two, BINARY_CODES, [f"binary masks: 0 is background, 1 and 255 are {rules.instance_class}"]
    if rules.class_map is None:
        raise InputError(
            "class masks need --class-map: a CSV with the columns code,class (class “ignore” is special); for masks of "
            "0 and 255 pass --binary, for numbered objects --kind instances"
        )
    path = rules.class_map
    names: list[str] = []
    codes: dict[str, int] = {}
    for row in read_table(path, ("code", "class")):
        code = str(whole_number(row["code"], f"{path.name} code", 0, MAX_CODE))
        name = row["class"]
        if code in codes:
            raise InputError(f"{path.name}: code {code} occurs twice; keep one line for it")
        if not name:
            raise InputError(f"{path.name}: code {code} has no class; name it or write ignore")
        if name != "ignore" and name not in names:
            names.append(name)
        codes[code] = IGNORE_CODE if name == "ignore" else names.index(name)
    if len(names) < 2 or len(names) > min(IGNORE_CODE, MAX_CLASSES):
        raise InputError(f"{path.name}: {len(names)} classes; a segmentation needs 2 to {IGNORE_CODE}")
    ignored = [code for code, to in codes.items() if to == IGNORE_CODE]
    return _entries(names), codes, [f"codes ignored: {', '.join(ignored) or 'none'}"]


def _entries(names: list[str]) -> list[ClassEntry]:
    return [ClassEntry(code=code, name=name, color=COLOURS[code % len(COLOURS)]) for code, name in enumerate(names)]


def _described(
    names: list[str],
    images: dict[str, Path],
    masks: dict[str, Path],
    rules: FolderRules,
    decisions: list[str],
) -> tuple[list[Found], list[SeunetError]]:
    """Patient, split and mpp of each image: from the table, else the pattern, else one patient per image."""
    faults: list[SeunetError] = []
    rows = _table_rows(rules.table)
    pattern = _pattern(rules.patient_pattern)
    if pattern is None and not any(row.get("patient") for row in rows.values()):
        decisions.append("no patient pattern or table: each image counts as a patient of its own")
    found = []
    for name in names:
        try:
            if rules.table is not None and name not in rows:
                raise InputError(f"{images[name].name}: not in {rules.table.name}; add a row for it")
            row = rows.get(name, {})
            patient = row.get("patient") or (_patient(pattern, name) if pattern else name)
            split = row.get("split") or "train"
            text = row.get("mpp")
            mpp = check_mpp(number_in(text, f"{name}: mpp"), f"{name} mpp") if text else None
            found.append(Found(name, images[name], masks[name], split, patient, mpp, "table" if mpp else "unknown"))
        except InputError as error:
            faults.append(error)
    for name in sorted(rows.keys() - images.keys()):
        faults.append(InputError(f"{rules.table.name if rules.table else ''}: {name} has no image; remove the row"))
    return found, faults


def _table_rows(path: Path | None) -> dict[str, dict[str, str]]:
    """Image name (with or without suffix) → its row."""
    if path is None:
        return {}
    rows: dict[str, dict[str, str]] = {}
    for row in read_table(path, ("image",), ("patient", "split", "mpp")):
        name = Path(row["image"]).stem
        if row.get("split"):
            check_known(f"split in {path.name} ({row['image']})", row["split"], SPLITS)
        if name in rows:
            raise InputError(f"{path.name}: {row['image']} occurs twice; keep one row for it")
        rows[name] = row
    return rows


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise InputError(f"--patient-pattern {text!r}: {error}; write a regular expression with one group") from error
    if pattern.groups != 1:
        raise InputError(f"--patient-pattern {text!r}: has {pattern.groups} groups; put the patient in one ( )")
    return pattern


def _patient(pattern: re.Pattern[str], name: str) -> str:
    match = pattern.search(name)
    if match is None or not match.group(1):
        raise InputError(f"{name}: --patient-pattern {pattern.pattern!r} does not match; widen it or use --table")
    return match.group(1)
