"""One step: the gradient of a batch in any number of parts, clipping, precision, memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from seunet.layers import ScaleNorm2d
from seunet.models import ScaleUNet, create_model
from seunet.storage import rows
from seunet.training.checkpoint import read_checkpoint
from seunet.training.config import RecipeSection
from seunet.training.optimizer import make_optimizer, one_cycle, set_pace
from seunet.training.trainer import Batch, Trainer, largest_that_fits, out_of_memory
from support.training import ALONE, tiny_config, train_alone


def small_model(frozen: bool) -> ScaleUNet:
    torch.manual_seed(3)
    model = create_model("seunet", widths=[10, 20]).double().train()
    for module in model.modules():
        if isinstance(module, ScaleNorm2d) and frozen:
            module.eval()
            nn.init.uniform_(module.norm.running_var, 0.5, 2)  # type: ignore[arg-type]
    return model


def batch_of(count: int) -> Batch:
    """Windows with 256, 224, 192, … labelled pixels; the last has none."""
    masks = torch.randint(0, 2, (count, 16, 16))
    for number in range(count):
        masks[number, : 2 * number] = 255
    masks[-1] = 255
    return Batch(torch.rand(count, 3, 16, 16, dtype=torch.float64), masks, torch.arange(count), torch.zeros(count))


def gradient_of(model: ScaleUNet, batch: Batch, accumulate: int) -> dict[str, Tensor]:
    trainer = Trainer(model, make_optimizer(model, 0.0), ALONE, RecipeSection(accumulate=accumulate))
    _, losses = trainer.gradient(batch)
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return found | {"head losses": losses.double()}


def test_the_gradient_is_that_of_the_models_loss() -> None:
    model, batch = small_model(frozen=False), batch_of(5)
    found = gradient_of(model, batch, 1)
    model.zero_grad()
    model.loss(model(batch.images), batch.masks).backward()
    assert len(found) == 1 + len(list(model.parameters()))
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("accumulate", [2, 3, 5, 9])
def test_with_frozen_norms_a_batch_in_parts_has_the_gradient_of_the_whole(accumulate: int) -> None:
    model, batch = small_model(frozen=True), batch_of(5)
    whole, parts = gradient_of(model, batch, 1), gradient_of(model, batch, accumulate)
    assert set(whole) == set(parts)
    for name, value in whole.items():
        limit = 1e-6 if name == "head losses" else 1e-10
        assert float((parts[name] - value).abs().max()) <= limit * float(value.abs().max()), name


def test_a_batch_without_a_labelled_pixel_has_a_gradient_of_zero() -> None:
    model, batch = small_model(frozen=False), batch_of(2)
    batch.masks.fill_(255)
    assert all(float(value.abs().max()) == 0 for value in gradient_of(model, batch, 1).values())


@pytest.mark.parametrize("limit", [None, 1e-4, 1e9])
def test_clipping_shortens_the_gradient_to_the_limit_and_does_not_turn_it(limit: float | None) -> None:
    model, batch = small_model(frozen=False), batch_of(4)
    trainer = Trainer(model, make_optimizer(model, 0.0), ALONE, RecipeSection(clip_norm=limit))
    trainer.gradient(batch)
    before = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    set_pace(trainer.optimizer, one_cycle(1, 10, 0.01))
    trainer.update()
    after = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    expected = before if limit is None else before * min(1.0, limit / float(before.norm()))
    torch.testing.assert_close(after, expected, rtol=1e-5, atol=1e-12)
    assert float(before.norm()) > 1e-3


def test_a_gradient_that_is_no_number_is_seen() -> None:
    model, batch = small_model(frozen=False), batch_of(2)
    trainer = Trainer(model, make_optimizer(model, 0.0), ALONE, RecipeSection())
    trainer.gradient(batch)
    assert trainer.finite_gradient()
    for value in (float("nan"), float("inf")):
        next(model.parameters()).grad.view(-1)[0] = value  # type: ignore[union-attr]
        assert not trainer.finite_gradient()


@pytest.mark.parametrize("name", ["seunet", "unet"])
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_runs_on_the_processor_with_single_precision_weights(
    precision: str, name: str, nuclei: Path, tmp_path: Path
) -> None:
    losses = {}
    for kind in ("float32", precision):
        config = tiny_config(nuclei, model__name=name, model__widths=[10, 20], recipe__precision=kind)
        train_alone(config, tmp_path / kind, 2)
        losses[kind] = [row["loss"] for row in rows(tmp_path / kind / "log.jsonl")]
        kept = read_checkpoint(tmp_path / kind / "last.safetensors")
        states = [value for key, value in kept.tensors.items() if not key.startswith("rng/")]
        assert {value.dtype for value in states} == {torch.float32, torch.int64}
        assert all(bool(value.isfinite().all()) for value in states)
    assert losses[precision] == pytest.approx(losses["float32"], rel=0.01)
    assert losses[precision] != losses["float32"]


def test_what_memory_errors_look_like() -> None:
    with pytest.raises(RuntimeError) as error:
        torch.empty(1 << 60)
    assert out_of_memory(error.value)
    assert out_of_memory(MemoryError())
    assert out_of_memory(torch.OutOfMemoryError())
    assert not out_of_memory(RuntimeError("shapes differ"))
    assert not out_of_memory(ValueError("cannot allocate memory"))


@pytest.mark.parametrize(
    ("windows", "room", "expected"), [(8, 7, 4), (8, 4, 4), (8, 3, 2), (8, 1, 1), (8, 0, 0), (5, 3, 3), (1, 0, 0)]
)
def test_the_largest_share_that_fits_is_found_by_halving(windows: int, room: int, expected: int) -> None:
    def attempt(count: int) -> None:
        if count > room:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    assert largest_that_fits(windows, attempt) == expected


def test_an_error_other_than_memory_is_not_swallowed_while_trying() -> None:
    def attempt(_count: int) -> None:
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        largest_that_fits(4, attempt)
