"""The configs of the package are there wherever it is installed, by name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from seunet.settings import config_file, shipped_configs
from seunet.training import read_config
from support.cli import seunet

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_wheel_holds_the_configs_where_they_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["force-include"] == {"configs": "seunet/configs"}
    installed = tmp_path / "site-packages" / "seunet"
    (installed / "configs").mkdir(parents=True)
    (installed / "configs" / "mine.yaml").write_text("data: {root: prepared}\n")
    monkeypatch.setattr("seunet.settings.__file__", str(installed / "settings.py"))
    assert shipped_configs() == {"mine": installed / "configs" / "mine.yaml"}


def test_every_config_is_listed_with_what_it_is_for() -> None:
    ran = seunet("configs", "list")
    assert (ran.code, ran.err) == (0, "")
    listed = dict(line.split(maxsplit=1) for line in ran.out.splitlines())
    assert list(listed) == sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
    assert listed["nuclei-fine-tune"].startswith("`nuclei` on images of your own")


@pytest.mark.parametrize("name", ["nuclei-fine-tune", "nuclei-fine-tune.yaml", "configs/nuclei-fine-tune.yaml"])
def test_a_config_is_found_by_its_name_and_at_its_old_path_from_anywhere(name: str) -> None:
    ran = seunet("train", name, "--print-config", "--data", "prepared/lab")
    assert (ran.code, ran.err) == (0, "")
    assert "start: nuclei\n" in ran.out
    assert "root: prepared/lab\n" in ran.out
    assert config_file(Path("elsewhere") / name) == Path("elsewhere") / name


def test_a_file_of_the_users_goes_before_a_config_of_the_package() -> None:
    Path("nuclei").write_text("data: {root: mine}\n")
    assert read_config(Path("nuclei")).data.root == Path("mine")


def test_a_config_is_copied_to_be_changed_and_replaces_nothing_unasked() -> None:
    ran = seunet("configs", "copy", "nuclei-fine-tune", "lab.yaml")
    assert (ran.code, ran.out) == (0, "lab.yaml\n")
    assert Path("lab.yaml").read_bytes() == (ROOT / "configs" / "nuclei-fine-tune.yaml").read_bytes()
    assert seunet("configs", "copy", "nuclei").out == "nuclei.yaml\n"
    ran = seunet("configs", "copy", "nuclei")
    assert (ran.code, ran.err) == (2, "seunet: nuclei.yaml: is there already; pass --overwrite or another DEST\n")
    assert seunet("configs", "copy", "nuclei", "--overwrite").code == 0
    ran = seunet("configs", "copy", "nuclej")
    assert ran.code == 2
    assert ran.err.startswith("seunet: unknown config 'nuclej'; did you mean 'nuclei'? (known: bcss-paper, ")


def test_a_name_that_is_no_config_is_one_line_with_the_remedy() -> None:
    ran = seunet("train", "nucleus", "-o", "run")
    text = (
        "nucleus: cannot be read (No such file or directory); give a config file, or a name that `seunet configs list`"
    )
    assert ran.code == 2
    assert text in ran.err
