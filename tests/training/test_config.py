"""A config is read whole and checked, or refused in one line that names what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seunet.data import Augmentation
from seunet.errors import InputError
from seunet.limits import MAX_CONFIG_BYTES
from seunet.models import model_config
from seunet.settings import to_yaml
from seunet.training.config import learning_fields, read_config
from support.cli import seunet

CONFIGS = Path(__file__).parents[2] / "configs"
REMEDY = "give a config file, or a name that `seunet configs list` shows"
SHIPPED = sorted(path for path in CONFIGS.glob("*.yaml") if not path.name.startswith("reproduce"))


def written(path: Path, text: str = "data: {root: prepared}\n") -> Path:
    path.write_text(text)
    return path


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(InputError) as error:
        read_config(path, overrides)
    return str(error.value)


def test_there_are_shipped_configs() -> None:
    assert SHIPPED


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_shipped_config_loads_and_its_model_is_known(path: Path) -> None:
    config = read_config(path)
    model_config(config.model.name, config.model.preset, **config.model.options)
    assert isinstance(config.data.augmentation, Augmentation)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_printed_config_is_the_config(path: Path, tmp_path: Path) -> None:
    overrides = ["recipe.batch=7", "model.order=2", "data.hold_out=[a, b]"]
    ran = seunet("train", path, "--print-config", *(part for value in overrides for part in ("--set", value)))
    assert (ran.code, ran.err) == (0, "")
    again = read_config(written(tmp_path / "printed.yaml", ran.out))
    assert again == read_config(path, overrides)
    assert to_yaml(again) == ran.out
    assert set(yaml.safe_load(ran.out)) == {
        *("model", "data", "recipe", "validation", "finish", "seed", "start", "machine")
    }


def test_the_defaults_are_the_papers(tmp_path: Path) -> None:
    config = read_config(written(tmp_path / "c.yaml"))
    assert (config.model.name, config.model.preset, config.seed) == ("seunet", "paper", 0)
    assert (config.recipe.epochs, config.recipe.batch, config.recipe.learning_rate) == (70, 20, 0.015)
    assert (config.recipe.weight_decay, config.validation.fusion) == (1e-4, "p_ens")
    assert config.data.augmentation.scale_range is None


def test_overrides_are_yaml_at_dotted_names_and_the_last_one_wins(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml")
    config = read_config(
        path,
        [
            "recipe.batch=8",
            "recipe.batch=9",
            "recipe.learning_rate=1e-3",
            "recipe.clip_norm=null",
            "model.widths=[10, 20]",
            "data.augmentation.crop_px=64",
            "data.hold_out=[a, b=c]",
            "machine.tensorboard=false",
        ],
    )
    assert (config.recipe.batch, config.recipe.learning_rate, config.recipe.clip_norm) == (9, 1e-3, None)
    assert config.model.options == {"widths": [10, 20]}
    assert config.data.augmentation.crop_px == 64
    assert config.data.hold_out == ("a", "b=c")
    assert config.machine.tensorboard is False


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("batch", "--set 'batch': must be NAME=VALUE, e.g. --set recipe.batch=8"),
        ("=8", "--set '=8': must be NAME=VALUE, e.g. --set recipe.batch=8"),
        ("data.root.deep=1", "--set 'data.root.deep=1': 'root' is a value, not a section"),
        ("seed=[1", "--set 'seed=[1' line 1: not YAML (expected ',' or ']', but got '<stream end>')"),
    ],
)
def test_malformed_overrides_are_refused(override: str, text: str, tmp_path: Path) -> None:
    assert refusal(written(tmp_path / "c.yaml"), override) == text


@pytest.mark.parametrize(
    ("override", "text"),
    [
        (
            "sede=1",
            "c.yaml: unknown key 'sede'; did you mean 'seed'? (known: data, finish, machine, model, recipe, seed",
        ),
        ("recipe.epoch=1", "c.yaml: in `recipe`: unknown key 'epoch'; did you mean 'epochs'? (known: accumulate, av"),
        ("data.augmentation.crop=1", "c.yaml: in `data.augmentation`: unknown key 'crop'; did you mean 'crop_px'? ("),
        ("machine.devise=cpu", "c.yaml: in `machine`: unknown key 'devise'; did you mean 'device'? (known: checkpoint"),
        (
            "validation.zzz=1",
            "c.yaml: in `validation`: unknown key 'zzz' (known: batch, every_epochs, fusion, mean_of_last, times)",
        ),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(override: str, text: str, tmp_path: Path) -> None:
    assert text in refusal(written(tmp_path / "c.yaml"), override)


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("recipe.batch=0", "`recipe.batch` (=0): Input should be greater than or equal to 1"),
        ("recipe.batch=many", "`recipe.batch` (='many'): Input should be a valid integer"),
        ("recipe.learning_rate=.nan", "`recipe.learning_rate` (=nan): Input should be"),
        (
            "recipe.precision=float8",
            "`recipe.precision` (='float8'): Input should be 'float32', 'bfloat16' or 'float16'",
        ),
        ("recipe=fast", "`recipe` (='fast'): Input should be a valid dictionary"),
        ("data=null", "`data` (=None): Input should be a valid dictionary"),
        ("seed=-1", "`seed` (=-1): Input should be greater than or equal to 0"),
        ("data.hold_out_every=1", "`data.hold_out_every` (=1): Input should be greater than or equal to 2"),
        ("validation.fusion=p_dst", "`validation.fusion` (='p_dst'): Input should be 'mean', 'p_dist' or 'p_ens'"),
        ("machine.workers=1000", "`machine.workers` (=1000): Input should be less than or equal to 256"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_name_and_itself(override: str, text: str, tmp_path: Path) -> None:
    line = refusal(written(tmp_path / "c.yaml"), override)
    assert line.startswith(f"{tmp_path / 'c.yaml'}: ")
    assert text in line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed: 1\n", "c.yaml: `data`: Field required"),
        ("- a\n- b\n", "c.yaml: must be a mapping of names to values, e.g. `seed: 0`"),
        ("", "c.yaml: must be a mapping of names to values, e.g. `seed: 0`"),
        ("1: 2\n", "c.yaml: must be a mapping of names to values, e.g. `seed: 0`"),
        ("seed: 1\ndata: {root: a}\nseed: 2\n", "c.yaml line 3: not YAML (key 'seed' is there twice)"),
        ("data: {root: a, root: b}\n", "c.yaml line 1: not YAML (key 'root' is there twice)"),
        ("seed: [1\n", "c.yaml line 2: not YAML (expected ',' or ']', but got '<stream end>')"),
        ("a: \x00\n", "c.yaml: not YAML (not text)"),
        ("seed: !!python/object/apply:os.getpid []\n", "c.yaml line 1: not YAML (could not determine a constructor"),
        ("? [a]\n: 1\n", "c.yaml line 1: not YAML (found unhashable key)"),
        ("[" * 3_000, "c.yaml"),
        ("a: &a [1]\nb: *a\n", "c.yaml line 2: not YAML (aliases are not for configs; write the value again)"),
    ],
)
def test_a_file_that_is_no_config_is_one_line(text: str, line: str, tmp_path: Path) -> None:
    found = refusal(written(tmp_path / "c.yaml", text))
    assert line in found
    assert "\n" not in found


def test_bytes_that_are_no_text_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe\x00\xd8")
    assert refusal(tmp_path / "c.yaml") == f"{tmp_path / 'c.yaml'}: not YAML (not text)"


def test_a_file_too_large_for_a_config_is_not_parsed(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", "#" * (MAX_CONFIG_BYTES + 1))
    assert refusal(path) == f"{path}: larger than 1,000,000 bytes; this is no config"


def test_a_missing_file_and_a_folder_are_said_to_be_unreadable(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    assert refusal(missing) == f"{missing}: cannot be read (No such file or directory); {REMEDY}"
    assert refusal(tmp_path) == f"{tmp_path}: cannot be read (Is a directory); {REMEDY}"


def test_what_decides_learning_is_everything_but_the_machine_and_the_place_of_the_data(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml")
    base = learning_fields(read_config(path))
    elsewhere = read_config(path, ["machine.workers=4", "data.root=other", "machine.checkpoint_seconds=1"])
    assert learning_fields(elsewhere) == base
    changes: dict[str, Any] = {
        "seed": 1,
        "recipe.batch": 8,
        "model.order": 2,
        "data.augmentation.crop_px": 16,
        "validation.fusion": "mean",
    }
    for name, value in changes.items():
        changed = learning_fields(read_config(path, [f"{name}={value}"]))
        assert {key for key in {*base, *changed} if base.get(key) != changed.get(key)} == {name}
