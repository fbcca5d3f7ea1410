"""Choices in checks, tables, figures, and on the command line."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import raters as rt
import raters.figures
from raters.auditing.choices import coefficients
from raters.checking.discrepancies import Draw, Layout
from raters.cli import app
from raters.errors import DataError, SettingError
from raters.families.choices import discrepancies, sections
from raters.fitting.replicates import answer_counts, replicated
from raters.fitting.result import program_of
from raters.kinds import AuditContext
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


def test_choosers_with_habits_are_found(fitted) -> None:
    assert "habits" in failed(fitted(habits=True)[1])


def weeks(inertia: float, seed: int = 0) -> pd.DataFrame:
    """A table of 8 choices by 60 choosers with tastes of their own, to whom what they chose last is
    worth more. Trips are named in no order of time."""
    rng = np.random.default_rng(seed)
    rows = []
    names = rng.permutation(480)
    for who in range(60):
        taste, last = np.array([1 + rng.normal(), -1.0]), -1
        for week in range(8):
            x = rng.normal(size=(3, 2))
            was = np.arange(3) == last
            last = int((x @ taste + inertia * was + rng.gumbel(size=3)).argmax())
            trip = names[8 * who + week]
            rows += [
                (trip, f"p{who}", week, mode, *x[code], float(was[code]), int(code == last))
                for code, mode in enumerate(["bus", "car", "tram"])
            ]
    return pd.DataFrame(rows, columns=["trip", "who", "week", "mode", "x", "y", "last", "taken"])


@pytest.mark.parametrize(
    ("inertia", "features", "fails"),
    [(2.0, ["x", "y"], True), (0.0, ["x", "y"], False), (2.0, ["x", "y", "last"], False)],
)
def test_inertia_is_found_in_time(inertia, features, fails, fit_quietly) -> None:
    table = weeks(inertia)
    choices = rt.Choices.from_frame(table, **ROLES, features=features)
    model = rt.MixedLogit(random=("x", "y"), error_components=(("bus",), ("car",)))
    result = fit_quietly(model, choices, rt.PGEM(draws=100))
    when = choices.to_frame()["set"].map(table.groupby("trip")["week"].first())
    found = rt.check(model, result, replicates=400, time=when)
    assert found.failed == (["repeats"] if fails else [])
    # Other checks do not see it, and without times nothing does.
    without = rt.check(model, result, replicates=400)
    assert not without.failed
    assert without.not_measured["repeats"] == "no times were given"
    if fails:
        for text in ("inertia", "the spreads of tastes may be nothing else", "'last'"):
            assert text in found.sentences[0]
        with raises_about(DataError, "time"):
            rt.check(model, result, time=table["week"].sample(frac=1, random_state=0))
        # The order of the sets counts, and not the unit of time.
        other = rt.check(model, result, replicates=400, time=10.0 * when - 70)
        assert other.table["observed"].sel(discrepancy="repeats") == found.table["observed"].sel(
            discrepancy="repeats"
        )


def measured_repeats(table: dict, time: dict, **options) -> float | str:
    """Share of repeats in a table, given the time of each trip, or why there is none."""
    choices = rt.Choices.from_frame(table, **ROLES, aggregate=False, **options)
    when = choices.to_frame()["set"].map(time).to_numpy(float)
    measure = discrepancies.REPEATS.prepare(Layout(rt.program.Program(MODEL, choices), when))
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


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (
            rt.MixedLogit(random=("x",)),
            "rt.MixedLogit(random=('x',), error_components=(('car',), ('tram',)))",
        ),
        (
            rt.MixedLogit(error_components=(("bus", "car"), ("car",))),
            "rt.MixedLogit(error_components=(('bus', 'car'), ('car',), ('tram',)))",
        ),
        (rt.MultinomialLogit(), "rt.MixedLogit(error_components=(('car',), ('tram',)))"),
    ],
)
def test_habits_are_mended_by_another_model(model, line) -> None:
    table = weeks(0.0)
    codes = table.groupby("trip").cumcount()
    # The bus is taken least.
    table["taken"] = (codes == 1 + table["trip"] % 2).astype(int)
    choices = rt.Choices.from_frame(table, **ROLES, features=["x", "y"])
    text = discrepancies.HABITS.mend(rt.program.Program(model, choices), True)
    assert text.startswith(f"{line} lets the constants of single alternatives differ")
    assert eval(line, {"rt": rt}).why_not(choices) is None
    together = "correlated=True lets their tastes go together"
    assert (together in text) == (
        model == rt.MixedLogit(error_components=(("bus", "car"), ("car",)))
    )
    if isinstance(model, rt.MixedLogit):
        assert text.endswith("rt.check(..., time=...) says whether it is inertia")
        more = eval(line, {"rt": rt})
        again = discrepancies.HABITS.mend(rt.program.Program(more, choices), True)
        assert "rt.MixedLogit" not in again


def test_replicated_choices_have_the_probabilities_of_the_model() -> None:
    """|z| < 4.5 for the share of each of 7 rows: 5e-5 of false alarms in all."""
    choices = trips(6)
    counts = np.repeat(1000.0, choices.num_rows)
    many = rt.Choices.from_frame(
        choices.to_frame().assign(chosen=lambda table: table["chosen"] * 1000),
        set="set",
        alternative="alternative",
        chosen="chosen",
        annotator="annotator",
        counted=True,
    )
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.2, 1.0, many.num_rows)
    share = weight / np.bincount(many.group, weight)[many.group]
    drawn = replicated(many, np.stack([1 - share, share]), rng)[1]
    total = np.bincount(many.group, drawn)
    np.testing.assert_array_equal(total, 1000)
    z = (drawn - counts * share) / np.sqrt(counts * share * (1 - share))
    assert np.abs(z).max() < 4.5


def test_tables_of_coefficients_and_shares(fitted, tmp_path) -> None:
    _, result = fitted()
    context = AuditContext(program_of(MODEL, result), result, None, 0.9)
    terms, shares = sections.terms(context), sections.shares(context)
    rows = {row["term"]: row for row in terms.tables[0].rows}
    assert set(rows) == {"car", "red", "blue"}
    assert abs(sum(row["value"] for row in rows.values())) < 1e-4
    assert "…" in rows["car"]["interval"]
    assert shares.facts["num_menus"] == 3
    for section in (terms, shares):
        for name, write in section.files.items():
            write(tmp_path / name)
    table = pd.read_csv(tmp_path / "shares.csv")
    assert table.groupby("menu")["observed"].sum().round(9).eq(1).all()
    assert (tmp_path / "shares.png").stat().st_size > 1000
    with raises_about(SettingError, "shares"):
        rt.figures.choice_shares(table)


def test_correlations_are_in_the_table_in_place_of_their_factor(fit_quietly) -> None:
    """The mean of each pair is that of the correlations of the result; a short run tells it."""
    choices, _ = rt.datasets.choice_crowd(30, 4, num_features=3, spread=1.0, seed=0)
    model = rt.MixedLogit(correlated=True)
    result = fit_quietly(model, choices, rt.PGGibbs(draws=20, warmup=10, chains=2))
    table = coefficients(program_of(model, result), result, 0.9).to_dataframe()
    own = table[table["parameter"] == "correlation"]
    assert "correlation_factor" not in set(table["parameter"])
    mean = result.posterior["correlation"].mean(("chain", "draw")).values
    pairs = {
        f"feature {low} × feature {high}": mean[low, high] for low, high in ((0, 1), (0, 2), (1, 2))
    }
    assert own["value"].to_dict() == pytest.approx(pairs, abs=1e-6)


def test_signs_are_those_of_coefficients_and_not_of_spreads(fit_quietly) -> None:
    choices, _ = rt.datasets.choice_crowd(30, 4, num_features=3, spread=1.0, seed=0)
    result = fit_quietly(rt.MixedLogit(), choices, rt.PGGibbs(draws=20, warmup=10, chains=2))
    context = AuditContext(program_of(rt.MixedLogit(), result), result, None, 0.9)
    signed = {
        table.key: "p_positive" in [column.name for column in table.columns]
        for table in sections.terms(context).tables
    }
    assert signed == {"coefficient": True, "constant": True, "coefficient_spread": False}
    assert "the shape of tastes" in sections.checks(context).sentence


def test_nobody_is_judged_by_what_they_choose(fitted, tmp_path) -> None:
    choices, result = fitted()
    with pytest.raises(SettingError, match="Nobody is right or wrong in what they choose"):
        rt.audit(MODEL, result)
    posterior = rt.acquisition.Posterior.of(MODEL, result, draws=10)
    truth = {name: value[0, 0] for name, value in result["posterior"].data_vars.items()}
    for ask in (
        lambda: rt.Candidates.of(choices),
        lambda: rt.Candidates.pairs(choices),
        lambda: rt.suggest(MODEL, result, choices),
        lambda: rt.Policy(target="everything").choose(posterior, choices, 2, seed=0),
        lambda: rt.Campaign(tmp_path / "campaign", MODEL, choices),
        lambda: rt.acquisition.simulate_campaign(MODEL, truth, choices, {"ours": rt.Policy()}),
    ):
        with pytest.raises(SettingError, match="which sets to offer next"):
            ask()
    with pytest.raises(DataError, match="this is a Choices"):
        rt.agreement(choices)


def test_a_report_without_judges_has_the_sections_of_choices(fitted) -> None:
    _, result = fitted(buses_alike=True)
    report = rt.report(MODEL, result, title="Buses")
    facts = json.loads(report.to_json())
    assert list(facts["sections"]) == ["coefficients", "shares", "checks"]
    assert "menus" in facts["sections"]["checks"]["failed"]
    assert facts["answer"]["stands_on"].startswith("Nobody is right or wrong")
    again = rt.reporting.Report(facts)
    page, short = again.to_html(), again.to_markdown()
    for text in (
        "What else is offered changes",
        "rt.models.NestedLogit",
        "Shares by what was offered",
    ):
        assert text in page
        assert text in short.replace("\\", "")
    for absent in ("Verdicts", "Agreement", "verdict"):
        assert absent not in page.split("</style>")[1]
        assert absent not in short
    assert "Compare models" in page
    assert "Buses" in str(report.to_html())
    assert "no feature of them" in str(report)


def test_a_report_has_no_audit_only_where_nobody_is_judged(fit_quietly) -> None:
    votes = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=60, seed=0).votes
    short = rt.PGGibbs(draws=60, warmup=20, chains=1)
    model, judging = rt.BTL(), rt.ExtendedBTL()
    report = rt.report(model, fit_quietly(model, votes, short), command="raters audit votes.csv")
    assert "BTL treats all annotators alike" in report.facts["answer"]["stands_on"]
    assert list(report.facts["sections"]) == ["items"]
    assert rt.reporting.Report(json.loads(report.to_json())).to_markdown() == report.to_markdown()
    fitted = fit_quietly(judging, votes, short)
    with pytest.raises(SettingError, match="audit"):
        rt.report(judging, fitted)
    with pytest.raises(SettingError, match="dropped= is a fit without those flagged"):
        rt.report(model, fit_quietly(model, votes, short), dropped=fitted)


@pytest.mark.slow
def test_the_command_line_reads_long_and_wide_tables(tmp_path, capsys) -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.uniform(1, 9, (60, 3)).round(1), columns=["car", "bus", "tram"])
    wide.insert(0, "took", rng.choice(["car", "bus", "tram"], 60))
    wide["tram_runs"] = np.where(wide["took"] == "tram", 1, rng.integers(0, 2, 60))
    wide["age"] = rng.integers(20, 70, 60)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    long = wide.reset_index(names="trip").melt(
        ["trip", "took", "tram_runs", "age"], var_name="mode", value_name="price"
    )
    long = long[(long["mode"] != "tram") | (long["tram_runs"] == 1)]
    long.assign(taken=(long["mode"] == long["took"]).astype(int)).to_csv(
        tmp_path / "long.csv", index=False
    )
    quick = ["--backend", "nuts", "--draws", "50", "--warmup", "50", "--chains", "2", "--quiet"]
    quick += ["--chooser", "age", "--interactions"]
    roles = {
        "long": "--set trip --alternative mode --chosen taken --feature price",
        "wide": "--choice took --alternatives bus,car,tram --available tram=tram_runs"
        " --feature price=bus,car,tram",
    }
    facts = {}
    for name, options in roles.items():
        out = tmp_path / name
        command = [
            "audit",
            str(tmp_path / f"{name}.csv"),
            *options.split(),
            *quick,
            "--out",
            str(out),
            "--report",
            str(tmp_path / f"{name}.html"),
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert app.main(command) == 0, capsys.readouterr().err
        facts[name] = json.loads((out / "summary.json").read_text())["sections"]
        assert (out / "coefficients.csv").exists()
        assert "interaction" in (tmp_path / f"{name}.html").read_text()
    assert "Nobody is right or wrong in what they choose" in capsys.readouterr().out
    for term in ("coefficient", "constant", "interaction"):
        one, other = (facts[name]["coefficients"][term] for name in ("long", "wide"))
        assert one == pytest.approx(other)
