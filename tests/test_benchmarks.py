"""Benchmarks: every printed command can be pasted, the index is that of the code, and nothing leans on tests."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import seunet
from benchmarks.declare import DATA, NOTHING, declarations
from benchmarks.measure.model.surroundings import around_the_mean, reflected

ROOT = Path(__file__).resolve().parents[1]
PRINTED_IN = [
    path
    for pattern in ("*.md", "Makefile", "docs/**/*.md", "configs/*.yaml", "benchmarks/README.md", "src/**/*.md")
    for path in sorted(ROOT.glob(pattern))
]
COMMAND = re.compile(r"python -m (benchmarks[\w.]*)([^`\n|#&]*)")
KEPT_BY_HAND = "results/trials/"


def _parse(module: str, arguments: str) -> None:
    found = declarations().get(module)
    assert found is not None, f"{module} is no benchmark"
    parser = found.parser() if hasattr(found, "parser") else found.BENCHMARK.parser(None)
    parser.parse_args(shlex.split(arguments))


@pytest.mark.parametrize("path", PRINTED_IN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_printed_command_is_complete(path: Path) -> None:
    for module, arguments in COMMAND.findall(path.read_text()):
        try:
            _parse(module, arguments)
        except SystemExit:
            pytest.fail(f"cannot be pasted: python -m {module}{arguments}")


def test_a_command_without_its_arguments_is_noticed() -> None:
    with pytest.raises(SystemExit):
        _parse("benchmarks.measure.scale.fit", "")
    with pytest.raises(AssertionError, match="no benchmark"):
        _parse("benchmarks.speed", "")


@pytest.mark.parametrize("name", declarations())
def test_a_declared_command_runs_its_own_module_and_needs_what_is_explained(name: str) -> None:
    benchmark = declarations()[name].BENCHMARK
    assert benchmark.program == f"python -m {name}"
    _parse(name, benchmark.arguments)
    assert all(need in DATA or need == NOTHING or (ROOT / need).is_file() for need in benchmark.needs)


def test_every_raw_result_has_a_command_that_makes_it() -> None:
    made = [module.BENCHMARK for module in declarations().values()]
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "results").rglob("*")) if path.is_file()]
    unclaimed = [path for path in files if not any(each.makes(path) for each in made)]
    assert [path for path in unclaimed if not path.startswith(KEPT_BY_HAND)] == []


def test_the_index_is_that_of_the_code() -> None:
    command = [sys.executable, "-m", "benchmarks.index", "--check"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, f"benchmarks/README.md is stale: run python -m benchmarks.index\n{ran.stderr}"


def test_benchmarks_and_support_do_not_import_tests() -> None:
    for folder in ("benchmarks", "support"):
        for path in (ROOT / folder).rglob("*.py"):
            assert re.search(r"^\s*(from|import) tests\b", path.read_text(), re.MULTILINE) is None, path


def test_what_surrounds_an_image_is_what_the_trial_says() -> None:
    model = seunet.create_model("seunet", widths=[10, 20, 40]).eval()
    image, even, colour = torch.rand(1, 3, 40, 24), torch.full((1, 3, 40, 24), 0.4), torch.tensor([0.7, 0.5, 0.6])
    with torch.no_grad():
        less = model(image - colour[:, None, None])
        with around_the_mean(colour):
            assert torch.equal(model(image), less)
        with reflected():
            mirrored = model(even)
        padded = model(even)
    assert torch.equal(mirrored, mirrored[..., :1, :1].expand_as(mirrored))  # what is even has no edge
    assert not torch.allclose(padded, padded[..., 20:21, 12:13].expand_as(padded))
    with reflected():
        model.train()(image).sum().backward()
    assert all(parameter.grad is not None for name, parameter in model.named_parameters() if "eta" not in name)
