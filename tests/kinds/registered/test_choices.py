"""Choices in checks, tables and reports."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.checking.discrepancies import Draw, Layout
from raters.errors import DataError, SettingError
from raters.fitting.predict import answer_counts, replicated
from raters.fitting.result import program_of
from raters.kinds import AuditContext
from raters.kinds import choices as family
from tests.refusals import raises_about

MODEL = rt.MultinomialLogit(features=False)
NUTS = rt.NUTS(draws=200, warmup=200, chains=2)
ROLES = {"set": "trip", "alternative": "mode", "chosen": "taken", "annotator": "who"}


def trips(
    number: int, *, buses_alike: bool = False, habits: bool = False, seed: int = 0
) -> rt.Choices:
    """Choices of car, red bus and blue bus, of which one bus is missing in half of the sets."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(0, 1.5, (20, 3)) if habits else np.zeros((20, 3))
    rows = []
    for trip in range(number):
        who = trip % 20
        offered = [[0, 1], [0, 2], [0, 1, 2], [0, 1, 2]][rng.integers(4)]
        noise = rng.gumbel(size=3)
        if buses_alike:  # One error of both, and a coin between them.
            noise[1:] = noise[1] + rng.permutation([0.0, -1e-6])
        utility = taste[who] + noise
        taken = max(offered, key=lambda code: utility[code])
        names = ["car", "red", "blue"]
        rows += [(trip, who, names[code], int(code == taken)) for code in offered]
    table = pd.DataFrame(rows, columns=["trip", "who", "mode", "taken"])
    return rt.Choices.from_frame(table, **ROLES)


@pytest.fixture(scope="module")
def fitted(fit_quietly):
    """Choices, and the fit of each kind."""

    def fit(**options):
        choices = trips(1200, **options)
        return choices, fit_quietly(MODEL, choices, NUTS)

    return fit


def failed(result) -> list[str]:
    return rt.check(MODEL, result, replicates=800).failed


@pytest.mark.slow
def test_a_red_and_a_blue_bus_are_no_independent_alternatives(fitted) -> None:
    assert failed(fitted()[1]) == []
    choices, result = fitted(buses_alike=True)
    assert "menus" in failed(result)
    # A second bus takes from the first alone, and cars keep their half.
    shares = rt.auditing.choice_shares(MODEL, result).to_dataframe()
    car = shares[shares["alternative"] == "car"].set_index("menu")
    assert abs(car.loc["blue, car, red", "observed"] - 0.5) < 0.06
    assert car.loc["blue, car, red", "observed"] > car.loc["blue, car, red", "high"]
    assert choices.num_choices == 1200


def measured_repeats(table: dict, time: dict, **options) -> float | str:
    """Share of repeats in a table, given the time of each trip, or why there is none."""
    choices = rt.Choices.from_frame(table, **ROLES, aggregate=False, **options)
    when = choices.per_row(choices.to_frame()["set"].map(time).to_numpy(float))
    measure = family.repeats.prepare(Layout(rt.program.Program(MODEL, choices), when))
    counts = answer_counts(choices)
    return measure if isinstance(measure, str) else measure(Draw(counts, 0 * counts + 0.5, None))


def of_menus(chosen: dict[int, str], who: dict[int, str], times: int = 1) -> dict:
    """A table of trips: the modes that are offered, the one taken first."""
    rows = [
        (trip, mode, times * int(mode == menu[0]), who[trip])
        for trip, menu in chosen.items()
        for mode in menu
    ]
    names = ("trip", "mode", "taken", "who")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_repeats_by_hand() -> None:
    """Ann chooses b, b, a, a, c; what she chose last is missing in her third. Bob, whose first set
    offers what she chose last, repeats nothing; his trips lie between hers."""
    menus = {7: "ba", 3: "bac", 5: "ac", 1: "acb", 2: "cab", 4: "abc", 6: "ba"}
    who = dict.fromkeys(menus, "ann") | {4: "bob", 6: "bob"}
    time = {7: 0, 3: 2, 5: 4, 1: 6, 2: 8, 4: 1, 6: 3}
    # 7 → 3 yes, 3 → 5 not offered, 5 → 1 yes, 1 → 2 no; bob's 4 → 6 no.
    assert measured_repeats(of_menus(menus, who), time) == pytest.approx(2 / 4)
    # At one time nobody knows which was first: 5 and 1 fall out, and what follows them.
    assert measured_repeats(of_menus(menus, who), time | {1: 4}) == pytest.approx(1 / 2)
    never = measured_repeats(of_menus(menus, who), dict.fromkeys(menus, 0))
    assert "later offered again" in never
    counted = measured_repeats(of_menus(menus, who, times=2), time, counted=True)
    assert counted == never


def test_replicated_choices_have_the_probabilities_of_the_model() -> None:
    """|z| < 4.5 for the share of each of 7 alternatives: 5e-5 of false alarms in all."""
    choices = trips(6)
    table = choices.to_frame().assign(chosen=lambda table: table["chosen"] * 1000)
    roles = {name: name for name in ("set", "alternative", "chosen", "annotator")}
    many = rt.Choices.from_frame(table, **roles, counted=True)
    rng = np.random.default_rng(0)
    weight = np.where(many.there, rng.uniform(0.2, 1.0, many.offered.shape), 0.0)
    share = weight / weight.sum(1, keepdims=True)
    drawn = replicated(many, share.T, rng).T
    np.testing.assert_array_equal(drawn.sum(1), 1000)
    np.testing.assert_array_equal(drawn[~many.there], 0)
    z = (drawn - 1000 * share)[many.there] / np.sqrt(1000 * share * (1 - share))[many.there]
    assert np.abs(z).max() < 4.5


def test_tables_of_coefficients_and_shares(fitted) -> None:
    _, result = fitted()
    context = AuditContext(program_of(MODEL, result), result, None, 0.9)
    terms, shares = family.terms(context), family.shares(context)
    value = terms.table.set_index("term")["value"]
    assert set(value.index) == {"car", "red", "blue"}
    assert abs(value.sum()) < 1e-4
    assert shares.findings[0]["menus"] == 3
    assert shares.table.groupby("menu")["observed"].sum().round(9).eq(1).all()


def test_nobody_is_judged_by_what_they_choose(fitted, tmp_path) -> None:
    choices, result = fitted()
    with pytest.raises(SettingError):
        rt.audit(MODEL, result)
    posterior = rt.acquisition.Posterior.of(MODEL, result, draws=10)
    truth = {name: value[0, 0] for name, value in result["posterior"].data_vars.items()}
    for ask in (
        lambda: rt.Candidates.of(choices),
        lambda: rt.suggest(MODEL, result, choices),
        lambda: rt.Policy(target="everything").choose(posterior, choices, 2, seed=0),
        lambda: rt.Campaign(tmp_path / "campaign", MODEL, choices),
        lambda: rt.acquisition.simulate_campaign(MODEL, truth, choices, {"ours": rt.Policy()}),
    ):
        with pytest.raises(SettingError, match="which sets to offer next"):
            ask()
    with raises_about(SettingError, "votes"):
        rt.Candidates.pairs(choices)
    with raises_about(DataError, "data"):
        rt.agreement(choices)
