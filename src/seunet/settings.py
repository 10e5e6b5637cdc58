"""Typed settings from YAML: every key is known or refused, and `a.b=value` changes one of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from seunet.errors import InputError, unknown_name
from seunet.limits import MAX_CONFIG_BYTES
from seunet.storage.files import read_limited

Settings = TypeVar("Settings", bound=BaseModel)


class Section(BaseModel):
    """Settings that stay as they are and have no keys but their own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **values: Any) -> None:
        """Of settings made in a program, what is wrong is said in one line as well."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InputError(str(first_fault(error))) from None

    # A section inside another is not made by it, so that a fault keeps its whole name.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


def shipped_configs() -> dict[str, Path]:
    """The configs of the package by name: beside its modules in a wheel, beside `src` in a checkout."""
    package = Path(__file__).parent
    folders = (package / "configs", package.parents[1] / "configs")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}


def config_file(name_or_path: Path) -> Path:
    """The file at a path, or the config of the package of that name; a file of the user's goes before."""
    if name_or_path.is_file():
        return name_or_path
    shipped = shipped_configs()
    name = name_or_path.stem if name_or_path.suffix == ".yaml" else str(name_or_path)
    return shipped.get(name, name_or_path) if name_or_path.parent in (Path(), Path("configs")) else name_or_path


def read_settings(kind: type[Settings], path: Path, overrides: Sequence[str] = ()) -> Settings:
    """The settings of a YAML file with `a.b=value` overrides applied, or one line that names what is wrong."""
    tree = _read_yaml(config_file(path))
    for override in overrides:
        _apply(tree, override)
    return checked_settings(kind, tree, str(path))


def checked_settings(kind: type[Settings], tree: Mapping[str, Any], where: str) -> Settings:
    """The typed settings of a plain tree."""
    _refuse_unknown(kind, tree, where)
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{where}: {first_fault(error)}") from None


class Fault(NamedTuple):
    """What is wrong with a value; as text one line: `recipe.batch` (=0): Input should be greater than or equal to 1."""

    name: str
    given: str
    message: str

    def __str__(self) -> str:
        return f"`{self.name}`{self.given}: {self.message}" if self.name else self.message


def first_fault(error: ValidationError, inside: str = "") -> Fault:
    """The first of what pydantic found, which lies in the section `inside`."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in (inside, *first["loc"]) if part != "")
    given = repr(first["input"])
    given = "" if first["type"] == "missing" else f" (={given if len(given) <= 80 else f'{given[:79]}…'})"
    return Fault(name, given, first["msg"].removeprefix("Value error, "))


def to_yaml(settings: BaseModel) -> str:
    """The whole settings, defaults included, as a file that `read_settings` reads."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class _PlainYaml(yaml.SafeLoader):
    """YAML itself takes the last of two equal keys in silence, and ten lines of aliases can stand for a billion."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                break  # refused by YAML itself
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is there twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not for configs; write the value again", mark)
        return super().compose_node(parent, index)


def _read_yaml(path: Path) -> dict[str, Any]:
    data = read_limited(
        path,
        MAX_CONFIG_BYTES,
        ("give a config file, or a name that `seunet configs list` shows", "this is no config"),
        where=str(path),
    )
    tree = _parse(data, str(path))
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise InputError(f"{path}: must be a mapping of names to values, e.g. `seed: 0`")
    return tree


def _parse(text: str | bytes, where: str) -> Any:
    try:
        return yaml.load(text, _PlainYaml)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not text"
        raise InputError(f"{where}{line}: not YAML ({problem})") from None


def _apply(tree: dict[str, Any], override: str) -> None:
    """Set one value: `recipe.batch=8`."""
    name, equals, text = override.partition("=")
    if not equals or not name:
        raise InputError(f"--set {override!r}: must be NAME=VALUE, e.g. --set recipe.batch=8")
    *parents, last = name.split(".")
    place = tree
    for parent in parents:
        inner = place.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise InputError(f"--set {override!r}: {parent!r} is a value, not a section")
        place = inner
    place[last] = _parse(text, f"--set {override!r}")


def _refuse_unknown(section: type[BaseModel], tree: Any, where: str, prefix: str = "") -> None:
    if not isinstance(tree, Mapping):
        return  # pydantic says what was expected there
    for key, value in tree.items():
        field = section.model_fields.get(key)
        if field is None and section.model_config.get("extra") == "forbid":
            error = unknown_name("key", key, section.model_fields)
            raise InputError(f"{where}: {f'in `{prefix[:-1]}`: ' if prefix else ''}{error}")
        inner = field.annotation if field is not None else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            _refuse_unknown(inner, value, where, f"{prefix}{key}.")
