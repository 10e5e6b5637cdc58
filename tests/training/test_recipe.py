"""The optimiser and its schedule against torch's own."""

from __future__ import annotations

import math

import pytest
import torch

from seunet.models import create_model
from seunet.training.config import checked_config
from seunet.training.loop import epochs_of
from seunet.training.optimizer import make_optimizer, one_cycle, set_pace, without_decay


@pytest.mark.parametrize("total", [1, 2, 3, 4, 5, 7, 10, 33, 100, 1001])
def test_one_cycle_is_torchs_rate_and_momentum_at_every_step(total: int) -> None:
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    oracle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.015, total_steps=total)
    for step in range(total):
        group = optimizer.param_groups[0]
        pace = one_cycle(step, total, 0.015)
        assert pace.learning_rate == pytest.approx(group["lr"], rel=1e-9), step
        assert pace.momentum == pytest.approx(group["betas"][0], rel=1e-9), step
        optimizer.step()
        if step < total - 1:
            oracle.step()


def test_one_cycle_rises_from_a_25th_to_the_peak_and_falls_to_nearly_nothing() -> None:
    rates = [one_cycle(step, 1000, 0.02).learning_rate for step in range(1000)]
    assert rates[0] == pytest.approx(0.02 / 25)
    assert rates[299] == max(rates) == pytest.approx(0.02)
    assert rates[-1] == pytest.approx(0.02 / 25 / 1e4)
    assert all(math.isfinite(rate) and rate > 0 for rate in rates)


@pytest.mark.parametrize("name", ["seunet", "unet", "njet"])
def test_sigma_and_eta_are_not_decayed_and_everything_else_is(name: str) -> None:
    model = create_model(name, widths=[10, 20])
    optimizer = make_optimizer(model, 1e-4)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    decay = {names[id(p)]: group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert set(decay) == set(names.values())
    for parameter, value in decay.items():
        free = parameter == "eta" or parameter.endswith("sigma_position")
        assert value == (0.0 if free else 1e-4), parameter
        assert without_decay(parameter) == free
    free_ones = [parameter for parameter, value in decay.items() if value == 0]
    assert len(free_ones) == {"seunet": 7, "unet": 0, "njet": 6}[name]


def test_without_a_gradient_decay_moves_the_weights_but_neither_sigma_nor_eta() -> None:
    model = create_model("seunet", widths=[10, 20])
    torch.nn.init.uniform_(model.eta, 0.1, 0.9)  # type: ignore[arg-type]
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = make_optimizer(model, 0.5)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    set_pace(optimizer, one_cycle(3, 10, 0.1))
    optimizer.step()
    for name, parameter in model.named_parameters():
        same = torch.equal(parameter, before[name])
        assert same == (without_decay(name) or not bool(before[name].any())), name


def test_the_pace_reaches_every_group() -> None:
    optimizer = make_optimizer(create_model("seunet", widths=[5, 10]), 1e-4)
    pace = one_cycle(4, 10, 0.1)
    set_pace(optimizer, pace)
    assert len(optimizer.param_groups) == 2
    for group in optimizer.param_groups:
        assert group["lr"] == pace.learning_rate
        assert group["betas"] == (pace.momentum, 0.999)


@pytest.mark.parametrize(
    ("steps", "times", "expected"),
    [(None, None, (70, 1)), (12, None, (3, 1)), (13, 2, (3, 1)), (400, 8, (100, 12)), (1, 8, (1, 1))],
)
def test_so_many_steps_are_so_manyepochs_of_of_any_set_with_validations_spread_over_them(
    steps: int | None, times: int | None, expected: tuple[int, int]
) -> None:
    tree = {"data": {"root": "set"}, "recipe": {"steps": steps}, "validation": {"times": times}}
    assert epochs_of(checked_config(tree, "the test"), steps_per_epoch=4) == expected
