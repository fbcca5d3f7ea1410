"""Report of an audit: its facts are the audit's, and every form shows them whole and escaped."""

from __future__ import annotations

import dataclasses
import errno
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import raters as rt
from raters.auditing.pairwise import pairwise
from raters.auditing.settling import Settling
from raters.errors import SettingError
from raters.fitting.storage import to_json
from raters.inference import Backend
from raters.reporting import page as report_page
from raters.reporting import render, sentences, steps
from tests import hand
from tests.refusals import raises_about

SIGNED = rt.ExtendedBTL(competence="signed")
HOSTILE = ('<b>&"x"', "a|b", "`c`", "d\n_e_", "{{ 7 * 7 }}")
# What GitHub would make a mention, a reference, a link or a formula of.
LIVELY = (
    "@someone",
    "#12",
    "gh-12",
    "me@here.org",
    "https://a.org",
    "http://a.org",
    "www.a.org",
    "$x$ and $y$",
)
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; fails when a tag is left open or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.words.append((self.open[-1], data))

    def text(self, tag: str) -> list[str]:
        """Text right inside tags of this kind."""
        return [words.strip() for inside, words in self.words if inside == tag]


def strict(text: str):
    def no_constants(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=no_constants)


def columns(line: str) -> int:
    """Cells of a row of a Markdown table."""
    return line.replace("\\|", "").count("|") - 1


def judged(names, **settings) -> tuple[rt.Model, xr.DataTree, rt.auditing.Audit]:
    """An audit by hand of these annotators: the first guesses, the last has one vote, the others
    are good."""
    rows = [("a", "b", name) for name in names[:-1] for _ in range(8)] + [("b", "c", names[-1])]
    votes = hand.votes(*rows, annotators=names)
    draws = np.random.default_rng(0).normal(1.0, 0.1, (40, len(names)))
    draws[:, 0] -= 1
    result = hand.result(votes, enough=True, reward=[[1.0, 0.0, -1.0]] * 40, competence=draws)
    model = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=0.5)
    return model, result, rt.audit(model, result, **settings, reference="crowd")


@pytest.fixture(scope="module")
def of_votes(tiny, fit_quietly) -> tuple[rt.Model, xr.DataTree, rt.auditing.Audit]:
    votes = dataclasses.replace(tiny, annotators=HOSTILE[:4])
    result = fit_quietly(SIGNED, votes, rt.PGEM(draws=200))
    return SIGNED, result, rt.audit(SIGNED, result, reference="crowd")


@pytest.fixture(scope="module")
def of_labels(labelled, fit_quietly) -> tuple[rt.Model, xr.DataTree, rt.auditing.Audit]:
    labels = dataclasses.replace(labelled, annotators=HOSTILE[:4])
    result = fit_quietly(rt.DawidSkene(), labels, rt.PGEM(draws=200))
    return rt.DawidSkene(), result, rt.audit(rt.DawidSkene(), result, reference="crowd")


@pytest.fixture(scope="module", params=["of_votes", "of_labels"])
def audited(request) -> tuple[rt.Model, xr.DataTree, rt.auditing.Audit]:
    return request.getfixturevalue(request.param)


# ---------------------------------------------------------------- facts


def test_the_first_screen_says_what_it_stands_on_and_what_would_change_it(of_labels):
    model, result, _ = of_labels
    audit = rt.audit(model, result)
    wanted = Settling(2, 7, 1.5, pd.DataFrame({"item": np.arange(7)}))
    report = rt.report(model, result, dataclasses.replace(audit, settling=wanted))
    answer = report.facts["answer"]
    assert answer["stands_on"] == audit.anchor.sentence
    assert answer["would_change"] == (
        "Finding out the truth of 7 questions drawn at random is expected to settle 1.5 of the 2"
        " verdicts that are open: see “What to do next”."
    )
    first = report.to_html().partition('id="verdicts"')[0]
    assert first.index(answer["stands_on"]) < first.index('class="answer')
    assert answer["would_change"] in first
    assert str(report).splitlines()[0] == answer["stands_on"]
    assert str(report).splitlines()[-1] == answer["would_change"]
    few = wanted._replace(settled=0.5)
    report = rt.report(model, result, dataclasses.replace(audit, settling=few))
    assert "truth of all 7 open questions that those in question answered" in str(report)


def test_the_first_screen_says_how_many_labels_are_wrong(of_labels):
    model, result, _ = of_labels
    audit = rt.audit(model, result)
    page = rt.report(model, result, audit)
    (headline,) = page.facts["answer"]["headlines"]
    low, high = audit.wrong_interval
    assert f"are expected to be wrong (90% interval {low:,.0f} to {high:,.0f}" in headline
    assert headline in str(page)
    assert headline in page.to_markdown().partition("### Verdicts")[0]
    assert headline in page.to_html().partition('id="verdicts"')[0]
    assert page.facts["sections"]["items"]["sentence"].startswith(headline)


@pytest.mark.slow
def test_the_facts_are_those_of_the_audit(audited):
    facts = rt.report(*audited).facts
    audit = audited[2]
    assert facts["schema_version"] == 5
    rows = {row["annotator"]: row for row in facts["annotators"]}
    assert len(rows) == 4
    for place, name in enumerate(audit.table["annotator"].values):
        for column in audit.table.data_vars:
            value = audit.table[column].values[place]
            assert rows[name][column] == (
                pytest.approx(float(value)) if isinstance(value, float) else value
            )
    assert facts["answer"]["flagged"] == [
        row["annotator"] for row in facts["annotators"] if row["verdict"] == "drop"
    ]
    assert sorted(facts["answer"]["flagged"]) == sorted(audit.flagged)
    assert facts["how"]["rule"] == audit.rule
    assert sum(facts["answer"]["counts"].values()) == 4
    if audit.items is not None:
        items = facts["sections"]["items"]
        assert items["expected_wrong"] == pytest.approx(audit.expected_wrong)
        assert [row["probability"] for row in items["tables"][0]["rows"]] == sorted(
            audit.items["probability"].values.tolist()
        )
        assert sum(items["counts"].values()) == audit.items.sizes["item"]
        matrices = facts["sections"]["confusion"]["matrices"]
        by_name = {matrix["title"]: matrix["values"] for matrix in matrices}
        for place, name in enumerate(audit.table["annotator"].values):
            np.testing.assert_allclose(by_name[name], audit.confusion["mean"].values[place])
        alpha = facts["agreement"]["statistics"][1]
        assert alpha["name"] == "Krippendorff's alpha"
        expected = rt.agreement(rt.Labels.from_result(audited[1]))["estimate"]["krippendorff_alpha"]
        assert alpha["estimate"] == pytest.approx(expected)
    else:
        means = audited[1].posterior["reward"].mean(("chain", "draw")).values
        ranking = facts["sections"]["items"]["tables"][0]
        assert [row["item"] for row in ranking["rows"]] == np.argsort(-means).tolist()


def test_expected_costs_and_mistakes_by_hand():
    model, result, audit = judged(
        ["guess", "good", "new"],
        threshold=0.25,
        costs=rt.Costs(keep_bad=2, drop_good=3, review=0.7),
    )
    # By hand instead of from draws: one to drop, one to review, one without enough votes.
    table = audit.table.assign(
        p_below=("annotator", [0.9, 0.4, 0.5]),
        verdict=("annotator", ["drop", "review", "too few judgements"]),
    )
    answer = rt.report(model, result, dataclasses.replace(audit, table=table)).facts["answer"]
    assert answer["expected_wrong_drops"] == pytest.approx(0.1)
    assert answer["expected_bad_kept"] == 0
    assert answer["expected_cost"] == pytest.approx(0.1 * 3 + 0.7)
    assert answer["expected_cost_of_keeping_all"] == pytest.approx((0.9 + 0.4) * 2)
    assert "and keeping everybody who was judged 2.6." in " ".join(answer["sure"])
    assert (answer["judgements_of_flagged"], answer["judgements"]) == (8, 17)
    assert (
        answer["sentence"]
        == "1 of 3 annotators should go (guess); 1 should be looked at; 0 can stay. 1 has too few"
        " votes to be judged."
    )


def test_the_answer_in_words():
    model, result, audit = judged(["guess", "good", "fine", "new"])
    assert (
        rt.report(model, result, audit).facts["answer"]["sentence"]
        == "1 of 4 annotators should go (guess); 2 can stay. 1 has too few votes to be judged."
    )
    nobody = rt.report(
        model, result, rt.audit(model, result, min_judgements=99, reference="crowd")
    ).facts["answer"]["sentence"]
    assert nobody == "Nobody can be judged: none of 4 annotators has 99 votes or more."
    everybody = rt.report(
        model, result, rt.audit(model, result, threshold=-2, min_judgements=0, reference="crowd")
    ).facts["answer"]["sentence"]
    assert everybody == "All 4 annotators can stay."


@pytest.mark.parametrize(
    ("values", "votes", "settings", "sentence"),
    [
        (1.0, 9, {}, "The only annotator can stay."),
        (0.0, 9, {}, "The only annotator (me) should go."),
        (1.0, 3, {}, "The only annotator cannot be judged: there are fewer than 5 votes."),
    ],
)
def test_a_single_annotator(values, votes, settings, sentence):
    model = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=0.5)
    result = hand.result(
        hand.votes(*[("a", "b", "me")] * votes),
        enough=True,
        reward=[[1.0, -1.0]] * 40,
        competence=np.random.default_rng(0).normal(values, 0.1, (40, 1)),
    )
    report = rt.report(model, result, rt.audit(model, result, **settings, reference="crowd"))
    assert report.facts["title"] == "Audit of 1 annotator"
    assert report.facts["answer"]["sentence"] == sentence
    assert report.facts["sections"]["items"]["sentence"].startswith(
        "a is first (with probability 100% the best of all, by this model), and b last. The two"
    )
    assert (
        report.facts["agreement"]["sentence"]
        == "There is a single annotator with answers, so there is no agreement to show."
    )
    for text in (report.to_html(), report.to_markdown()):
        assert "1 annotators" not in text


def test_one_is_not_many():
    model, result, audit = judged(["guess", "good", "new"])
    sure = rt.report(model, result, audit).facts["answer"]["sure"]
    assert "The one who can stay is good enough with probability 100%." in sure
    nobody = rt.audit(model, result, min_judgements=2, reference="crowd")
    reasons = [row["reason"] for row in rt.report(model, result, nobody).facts["annotators"]]
    assert reasons[-1] == "1 vote, and 2 are needed"
    assert sentences.counted(1, "class", "classes") == "1 class"
    assert sentences.counted(1200, "class", "classes") == "1,200 classes"


def test_agreement_of_two_annotators_by_hand():
    votes = hand.votes(
        ("a", "b", "x"), ("a", "b", "y"), ("c", "b", "x"), ("b", "c", "y"),
        ("a", "c", "x"), ("a", "c", "z"), ("a", "c", "z"), ("c", "a", "z"),
        annotators=["x", "y", "z"],
    )  # fmt: skip
    matrix = pairwise(votes, np.array([2, 0, 1]))
    # x and y: equal on ab, unequal on bc. x and z: z says a over c in two of three votes. y and z:
    # nothing in common.
    assert matrix.common.tolist() == [[0, 1, 0], [1, 0, 2], [0, 2, 0]]
    expected = [[np.nan, 2 / 3, np.nan], [2 / 3, np.nan, 0.5], [np.nan, 0.5, np.nan]]
    np.testing.assert_allclose(matrix.share, expected)
    table = {"i": [1, 2, 3, 1, 2, 3, 3], "who": list("xxxyyyy"), "says": [0, 1, 2, 0, 2, 2, 1]}
    labels = rt.Labels.from_frame(table, item="i", annotator="who", label="says")
    np.testing.assert_allclose(pairwise(labels, np.array([0, 1])).share[0, 1], (1 + 0 + 0.5) / 3)


def test_what_chance_gives(audited):
    agreement = rt.report(*audited).facts["agreement"]
    assert agreement["mean"] == pytest.approx(np.nanmean(np.array(agreement["share"], float)))
    expected = 0.5
    if audited[2].items is not None:
        labels = rt.Labels.from_result(audited[1])
        given = [labels.weight[labels.label == code].sum() for code in range(labels.num_classes)]
        expected = sum((number / sum(given)) ** 2 for number in given)
    assert agreement["by_chance"] == pytest.approx(expected)


def test_two_who_guess_among_five_classes_agree_as_by_chance():
    rng = np.random.default_rng(0)
    table = {
        "item": np.tile(np.arange(4000), 2),
        "who": np.repeat(["x", "y"], 4000),
        "says": rng.integers(5, size=8000),
    }
    labels = rt.Labels.from_frame(table, item="item", annotator="who", label="says")
    by_chance = report_page.by_chance(labels)
    assert by_chance == pytest.approx(0.2, abs=0.002)
    # Four standard errors: a false alarm in 16,000.
    assert pairwise(labels, np.array([0, 1])).share[0, 1] == pytest.approx(
        by_chance, abs=4 * np.sqrt(0.16 / 4000)
    )


def test_cells_have_no_colour_at_chance():
    assert render.shade(0.2, 0.2) == ("high", "0.00")
    assert render.shade(1.0, 0.2) == ("high", "0.80")
    assert render.shade(0.6, 0.2) == ("high", "0.40")
    assert render.shade(0.1, 0.2) == ("low", "0.40")
    assert render.shade(1.0, 1.0) == ("high", "0.00")


def test_what_an_adversary_is_depends_on_the_kind(of_votes, of_labels):
    assert (
        "P(adversary) is the probability that competence is below 0, which"
        in rt.report(*of_votes).to_html()
    )
    assert "wrong so reliably that they carry information;" in rt.report(*of_labels).to_html()


def test_a_tie_is_half_an_answer():
    table = {"a": ["p", "p"], "b": ["q", "q"], "who": ["x", "y"], "wins": ["tie", "a"]}
    votes = rt.Comparisons.from_frame(
        table, first="a", second="b", outcome="wins", annotator="who", ties="half"
    )
    assert pairwise(votes, np.array([0, 1])).share[0, 1] == 0.5


def recorded(
    model, result: xr.DataTree, chains: int, backend: Backend | str, **attrs
) -> xr.DataTree:
    """The result with so many equal chains, as a fit by this back-end records it."""
    text = backend if isinstance(backend, str) else to_json(backend)
    parts = {name: result[name].to_dataset() for name in result.children}
    posterior = parts["posterior"]
    parts["posterior"] = xr.concat(
        [posterior.assign_coords(chain=[chain]) for chain in range(chains)], "chain"
    )
    tree = xr.DataTree.from_dict(parts)
    tree.attrs.update(
        result.attrs | attrs | {"backend": text, "seed": 0, "seconds": 1.0, "model": to_json(model)}
    )
    tree.attrs |= {f"{name}_version": "1" for name in ("raters", "numpyro", "jax")}
    return tree


MIXED = {"max_rhat": 1.005, "min_ess": 900.0}
NEAR = {"pareto_k": 0.3, "min_ess": 900.0}


@pytest.mark.parametrize(
    ("chains", "attrs", "settled", "words"),
    [
        (2, MIXED, True, "The 2 chains agree"),
        (2, MIXED | {"max_rhat": 1.2}, False, "The 2 chains have not agreed yet"),
        (2, MIXED | {"min_ess": 150.0}, False, "too short"),
        (2, MIXED | {"divergences": 3}, False, "3 transitions diverged"),
        (2, MIXED | {"divergences": 1}, False, "1 transition diverged"),
        (2, {"max_rhat": np.nan, "min_ess": 0.0}, False, "have not agreed yet"),
        (
            1,
            MIXED,
            False,
            "There is a single chain, and nothing to compare it with: run several to see",
        ),
        (
            1,
            MIXED | {"min_ess": 50.0},
            False,
            "There is a single chain, and it is too short to tell much: run several, and longer",
        ),
        (
            1,
            {"max_rhat": np.nan, "min_ess": 0.0},
            False,
            "There is a single chain, and it is too short",
        ),
    ],
)
def test_convergence_in_plain_words(chains, attrs, settled, words):
    model, result, audit = judged(["guess", "good", "new"])
    report = rt.report(model, recorded(model, result, chains, rt.NUTS(draws=40), **attrs), audit)
    assert (
        report.facts["convergence"]["settled"]
        is report.facts["convergence"]["relied_on"]
        is settled
    )
    assert report.facts["answer"]["relied_on"] is settled
    assert words in report.facts["convergence"]["sentence"]
    assert words in report.to_html()
    assert ("Do not act on this page yet" in str(report)) is not settled
    assert ("rt.fit" in str(report.facts["next"]["steps"])) is not settled


def test_what_a_longer_run_does_not_mend(monkeypatch):
    warning = "types are not separated: more votes would tell them apart"
    monkeypatch.setattr(rt.ExtendedBTL, "fit_warnings", lambda *_: (warning,))
    model, result, audit = judged(["guess", "good", "new"])
    mixed = rt.report(
        model, recorded(model, result, 2, rt.NUTS(), max_rhat=1.0, min_ess=900.0), audit
    )
    facts = mixed.facts["convergence"]
    assert (facts["settled"], facts["relied_on"], "line" in facts) == (True, False, False)
    assert mixed.facts["answer"]["relied_on"] is False
    assert mixed.facts["answer"]["not_final"][0] == f"Not final: {warning}."
    assert mixed.facts["next"]["steps"][0] == {"what": f"T{warning[1:]}.", "line": None}
    assert "If they then still should go" in mixed.facts["next"]["steps"][1]["what"]
    shown = [fields.get("class", "") for tag, fields in Page(mixed.to_html()).tags if tag == "p"]
    assert shown[:2] == ["stands-on", "answer unsettled"]
    both = rt.report(
        model, recorded(model, result, 2, rt.NUTS(), max_rhat=1.2, min_ess=900.0), audit
    )
    assert "has not settled" in both.facts["answer"]["not_final"][0]
    assert "rt.NUTS(" in both.facts["next"]["steps"][0]["line"]


@pytest.mark.parametrize(
    ("backend", "attrs", "better"),
    [
        (
            rt.PGGibbs(500, warmup=50, chains=2, thin=3),
            {"max_rhat": 1.2},
            rt.PGGibbs(2000, warmup=50, chains=4, thin=3),
        ),
        (rt.PGGibbs(draws=100, chains=6), {"min_ess": 20.0}, rt.PGGibbs(draws=1000, chains=6)),
        (
            rt.NUTS(2000, max_tree_depth=8),
            {"divergences": 3},
            rt.NUTS(2000, max_tree_depth=8, target_accept=0.99),
        ),
        (rt.NUTS(target_accept=0.99), {"divergences": 3}, rt.NUTS(target_accept=0.999)),
        (rt.NUTS(), {"divergences": 3, "max_rhat": 1.2}, rt.NUTS(4000, target_accept=0.99)),
        (rt.NUTS(dense_mass=True), {"max_rhat": 1.2}, rt.NUTS(4000, dense_mass=True)),
    ],
)
def test_a_better_fit_keeps_the_other_settings(backend, attrs, better):
    model, result, audit = judged(["guess", "good", "new"])
    facts = rt.report(model, recorded(model, result, 2, backend, **MIXED | attrs), audit).facts
    assert facts["convergence"]["line"] == f"result = rt.fit(model, votes, rt.{better!r}, seed=0)"
    assert facts["next"]["steps"][0]["line"] == facts["convergence"]["line"]
    assert eval(facts["next"]["steps"][0]["line"].split("votes, ")[1].split(", seed")[0]) == better


@pytest.mark.parametrize(
    ("backend", "attrs", "typed", "better"),
    [
        (
            rt.NUTS(chains=2),
            {"max_rhat": 1.2},
            "--backend nuts --chains 2",
            "--backend nuts --draws 4000 --chains 4",
        ),
        (
            rt.PGGibbs(warmup=9),
            {"max_rhat": 1.2},
            "--draws=1000 --warmup 9",
            "--warmup 9 --draws 4000",
        ),
        (
            rt.NUTS(warmup=50),
            {"divergences": 2},
            "--backend nuts --warmup 50 --seed 3",
            "--backend nuts --warmup 50 --seed 3 --target-accept 0.99",
        ),
        (rt.PGEM(draws=50), {"converged": 0}, "--backend em --draws 50", ""),
        (
            rt.PGEM(starts=3, accelerate=False),
            {"converged": 0},
            "--backend em --starts 3 --no-accelerate --max-sweeps=50 --drop",
            "--drop",
        ),
    ],
)
def test_a_better_fit_as_a_command(backend, attrs, typed, better):
    model, result, audit = judged(["guess", "good", "new"])
    tree = recorded(model, result, 2, backend, **MIXED | attrs)
    line = rt.report(model, tree, audit, command=f"raters audit v.csv {typed}").facts[
        "convergence"
    ]["line"]
    assert line == f"raters audit v.csv {better}".strip()


def test_a_check_is_by_a_sampler_that_can_do_it(monkeypatch):
    model, result, audit = judged(["guess", "good", "new"])
    approximate = recorded(model, result, 1, rt.PGEM(draws=40), converged=1, **NEAR)
    command = "raters audit v.csv --backend em --draws 40"

    def checks(command=""):
        facts = rt.report(model, approximate, audit, command=command).facts
        return [step["line"] for step in facts["next"]["steps"] if "exact sampler" in step["what"]]

    assert checks() == ["result = rt.fit(model, votes, rt.PGGibbs(), seed=0)"]
    assert checks(command) == ["raters audit v.csv"]
    monkeypatch.setattr(rt.PGGibbs, "why_not", lambda *_: "not this model")
    assert checks() == ["result = rt.fit(model, votes, rt.NUTS(), seed=0)"]
    assert checks(command) == ["raters audit v.csv --backend nuts"]
    assert "without = rt.auditing.drop(model, votes, audit, rt.NUTS(), seed=0)" in str(
        rt.report(model, result, audit).facts["next"]
    )
    astray = recorded(model, result, 2, rt.NUTS(warmup=50), **MIXED, divergences=2)
    line = rt.report(
        model, astray, audit, command="raters audit v.csv --backend nuts --warmup 50"
    ).facts["convergence"]["line"]
    assert line == "raters audit v.csv --backend nuts --warmup 50 --target-accept 0.99"
    monkeypatch.setattr(rt.NUTS, "why_not", lambda *_: "nor this one")
    assert checks() == checks(command) == []


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"pareto_k": 1.2}, "far from the posterior by their own check (Pareto k̂ 1.20)"),
        (
            {"pareto_k": 0.3},
            "Pareto k̂ 0.30, with weights that are worth less than a tenth as many draws)",
        ),
        ({"pareto_k": np.nan}, "have not been checked"),
        ({}, "have not been checked"),
        (NEAR | {"min_ess": 50.0}, "as much as 50 independent draws"),
    ],
)
@pytest.mark.parametrize("backend", [rt.PGEM(), rt.SVI()], ids=["em", "svi"])
def test_an_approximation_that_is_not_near_the_posterior(backend, attrs, words):
    model, result, audit = judged(["guess", "good", "new"])
    facts = rt.report(model, recorded(model, result, 1, backend, converged=1, **attrs), audit).facts
    assert not facts["convergence"]["settled"]
    assert words in facts["convergence"]["sentence"]
    assert facts["convergence"]["line"] == "result = rt.fit(model, votes, rt.PGGibbs(), seed=0)"


def of_chains(
    draws: dict[str, np.ndarray], wild: float
) -> tuple[rt.Model, xr.DataTree, rt.auditing.Audit]:
    """A fit by NUTS of four chains, whose learned scale disagrees by so much between chains."""
    names = ["guess", "good", "new"]
    rows = [("a", "b", name) for name in names for _ in range(8)] + [("b", "c", "new")]
    votes = hand.votes(*rows, annotators=names)
    model = rt.ExtendedBTL(competence="signed", competence_spread=0.5)
    rng = np.random.default_rng(0)
    sites = {
        "reward": rng.normal([1.0, 0.0, -1.0], 0.1, (4, 300, 3)),
        "competence": rng.normal([0.0, 1.0, 1.0], 0.05, (4, 300, 3)),
        "reward_scale": rng.lognormal(0, 0.1, (4, 300)) + wild * np.arange(4)[:, None],
    } | draws
    first = hand.result(votes, **{name: values[0] for name, values in sites.items()})
    tree = recorded(model, first, 4, rt.NUTS(draws=300), max_rhat=1.5, min_ess=5.0)
    for name, values in sites.items():
        tree["posterior"][name] = tree["posterior"][name].copy(data=values)
    return model, tree, rt.audit(model, tree, reference="crowd")


def test_what_nothing_hangs_on_unsettles_nothing():
    model, result, audit = of_chains({}, wild=0.1)
    report = rt.report(model, result, audit)
    fitted = report.facts["convergence"]
    assert (fitted["settled"], fitted["open"]) == (True, [])
    assert "reward_scale (R-hat 1." in fitted["sentence"]
    assert "each verdict is the same" in fitted["sentence"]
    assert "Not final" not in str(report)
    assert "draws=" not in str(report.facts["next"]["steps"])


def test_short_chains_that_agree_are_named_with_what_is_short():
    """Runs of six equal draws, in each half of a chain in another order: R-hat is below 1, and the
    scale has a sixth of the 1,200 draws, fewer than four chains want."""
    rng = np.random.default_rng(0)
    values = rng.lognormal(0, 0.1, 25)
    runs = np.array([[rng.permutation(values) for half in range(2)] for chain in range(4)])
    scale = np.repeat(runs.reshape(4, 50), 6, axis=1)
    model, result, audit = of_chains({"reward_scale": scale}, wild=0.0)
    result.attrs |= {"max_rhat": 1.0, "min_ess": 100.0}
    fitted = rt.report(model, result, audit).facts["convergence"]
    assert fitted["settled"]
    assert "not mixed as well as is wanted for reward_scale" in fitted["sentence"]


def test_verdicts_that_may_change_are_named():
    """P(competence < .25) of the second is near 1/5, where keep turns to review, and its chains
    are short; those of the others are far from any limit."""
    rng = np.random.default_rng(1)
    competence = rng.normal([0.0, 0.6, 1.0], [0.05, 0.42, 0.05], (4, 300, 3))
    competence[:, :, 1] = np.sort(competence[:, :, 1].reshape(4, 30, 10), -1).reshape(4, 300)
    competence[:, :, 1] += 0.02 * np.arange(4)[:, None]
    model, result, audit = of_chains({"competence": competence}, wild=0.1)
    report = rt.report(model, result, audit)
    fitted = report.facts["convergence"]
    assert (fitted["settled"], fitted["open"]) == (False, ["good"])
    assert "the verdicts of good may still change" in report.facts["answer"]["not_final"][0]
    assert "would hardly change the others" in report.facts["answer"]["not_final"][0]
    assert "acting on the verdicts of good" in report.facts["next"]["steps"][0]["what"]


def test_there_is_no_verdict_without_draws():
    """Two chains of one judge are in two worlds: 1,200 draws, and two effective ones."""
    competence = np.random.default_rng(0).normal([0.0, 1.0, 1.0], 0.05, (4, 300, 3))
    competence[2:, :, 1] -= 3
    model, result, audit = of_chains({"competence": competence}, wild=0.0)
    verdict = dict(zip(audit.table["annotator"].values, audit.table["verdict"].values, strict=True))
    assert verdict == {"guess": "drop", "good": "too few draws", "new": "keep"}
    report = rt.report(model, result, audit)
    assert report.facts["answer"]["sentence"].startswith("No verdict on 1 annotator: ")
    assert "draw more" in report.to_html()
    assert report.facts["convergence"]["open"] == ["good"]


def test_an_approximation_is_settled_when_its_bound_no_longer_rises():
    model, result, audit = judged(["guess", "good", "new"])
    noise = np.random.default_rng(0).normal(0, 1, 1000)
    for rise, settled in ((0.0, True), (0.1, False)):
        tree = recorded(model, result, 1, rt.SVI(steps=1000), **NEAR)
        tree["optimisation"] = xr.DataTree(
            xr.Dataset({"elbo": ("step", noise + rise * np.arange(1000))})
        )
        assert rt.report(model, tree, audit).facts["convergence"]["settled"] is settled


def test_the_next_step_is_a_command_where_there_was_one():
    model, result, audit = judged(["guess", "good", "new"])
    command = "raters audit 'my votes.csv' --draws 50 --drop --out there --backend em"
    lines = [
        step["line"]
        for step in rt.report(model, result, audit, command=command).facts["next"]["steps"]
    ]
    # The command dropped already, so that its better fit does too; there is nothing to repeat.
    assert lines == [
        "raters audit 'my votes.csv' --drop --out there",
        None,
        None,
        "raters suggest there/result.nc --target competence",
    ]
    steps = rt.report(model, result, audit, command=command.replace(" --drop", "")).facts["next"][
        "steps"
    ]
    # What follows the better fit goes on from it, and not back to the fit that was not good enough.
    assert [step["line"] for step in steps[:2]] == [
        "raters audit 'my votes.csv' --out there",
        "raters audit 'my votes.csv' --out there --drop",
    ]
    assert steps[-1]["what"].endswith("leave out what this would ask guess.")
    lines = [step["line"] for step in rt.report(model, result, audit).facts["next"]["steps"]]
    assert "without = rt.auditing.drop(model, votes, audit, seed=0)" in lines


def test_who_has_answered_everything_is_to_be_asked_something_new():
    complete = rt.datasets.label_crowd(
        num_items=5, num_annotators=3, labels_per_item=3, num_classes=2, seed=0
    ).labels
    text, line = steps.ask(complete, "raters audit labels.csv", [])
    assert "put new questions to them" in text
    assert line is None
    rows = complete.to_frame()
    fewer = rt.Labels.from_frame(
        rows[1:], item="item", annotator="annotator", label="label", items=complete.items
    )
    text, line = steps.ask(fewer, "raters audit labels.csv", [])
    assert text == "To be surer of the annotators, ask what tells most about them."
    assert line == "raters suggest raters-audit/result.nc --target competence"
    _, line = steps.ask(fewer, "raters audit labels.csv --kind=school:KIND --out o", [])
    assert line == "raters suggest o/result.nc --target competence --kind school:KIND"
    # Whoever stays has labelled everything; only somebody who should go has not.
    assert steps.ask(fewer, "raters audit labels.csv", [rows["annotator"].iloc[0]])[1] is None


@dataclasses.dataclass(frozen=True)
class Own(rt.ExtendedBTL):
    """A model of one's own, whose source is not said."""

    reference: ClassVar[str] = ""


@dataclasses.dataclass(frozen=True)
class Prose(rt.ExtendedBTL):
    """A model of one's own, whose source is no BibTeX."""

    reference: ClassVar[str] = "Me (2025)"


def test_what_is_cited():
    model, result, audit = judged(["guess", "good", "new"])
    tree = recorded(model, result, 2, rt.NUTS(draws=40), **MIXED)
    assert "\n\n".join(rt.report(model, tree, audit).facts["cite"]) == rt.cite(model, rt.NUTS())
    assert "\n\n".join(rt.report(model, result, audit).facts["cite"]) == rt.cite(model)
    settings = dataclasses.asdict(model)
    tree = recorded(Own(**settings), result, 2, "Mine(draws=40)", **MIXED)
    own = Own(**settings)
    assert rt.report(own, tree, rt.audit(own, tree)).facts["cite"] == []
    tree = recorded(Prose(**settings), result, 2, "Mine(draws=40)", **MIXED)
    with raises_about(SettingError, "reference"):
        rt.report(Prose(**settings), tree, rt.audit(Prose(**settings), tree))


def test_an_audit_of_another_fit_of_the_same_people_is_refused(tmp_path):
    names = ["guess", "good", "new"]
    model, result, audit = judged(names)
    rows = [("a", "b", name) for name in names] + [("b", "c", "new")]
    draws = np.ones((40, 3))
    of_others = hand.result(hand.votes(*rows, annotators=names), reward=draws, competence=draws)
    wider = dataclasses.replace(model, reward_scale=2.0)
    for other in (rt.audit(model, of_others), rt.audit(wider, result)):
        with raises_about(SettingError, "audit") as refusal:
            rt.report(model, result, other)
        assert "of another model, or of other judgements" in str(refusal.value)
    result.to_netcdf(tmp_path / "result.nc")
    with xr.open_datatree(tmp_path / "result.nc") as saved:
        assert rt.report(model, saved, audit).facts["annotators"]


def test_the_mode_alone_has_no_report():
    model, result, audit = judged(["guess", "good", "new"])
    with raises_about(SettingError, "result"):
        rt.report(model, result.isel(draw=[0]), audit)


@pytest.mark.slow
def test_mixtures_have_a_ranking_for_each_type(fit_quietly):
    votes, _ = rt.datasets.preference_types(
        num_items=4, num_annotators=12, votes_each=12, num_types=2, seed=0
    )
    model = rt.MixtureBTL(num_types=2, competence="unit")
    result = fit_quietly(model, votes, rt.PGEM(draws=50))
    report = rt.report(model, result, rt.audit(model, result, reference="crowd"))
    section = report.facts["sections"]["items"]
    assert [kind["type"] for kind in section["types"]] == [0, 1]
    means = result.posterior["reward"].mean(("chain", "draw")).transpose("type", "item").values
    for table, mean in zip(section["tables"], means, strict=True):
        assert [row["item"] for row in table["rows"]] == np.argsort(-mean).tolist()
    assert Page(report.to_html()).text("h3")[:2] == [
        f"Type {kind['type']}: {kind['share']:.0%} of annotators" for kind in section["types"]
    ]


# ---------------------------------------------------------------- forms


def test_every_form_is_a_view_of_the_same_facts(audited):
    report = rt.report(*audited)
    again = rt.reporting.Report(strict(report.to_json()))
    assert again.facts == report.facts
    assert again.to_html() == report.to_html()
    assert again.to_markdown() == report.to_markdown()


def test_the_page_is_whole_escaped_and_alone(audited):
    text = rt.report(*audited, title="<em>Spring</em>").to_html()
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert page.tags[0] == ("html", {"lang": "en"})
    assert page.text("title") == ["<em>Spring</em>"]
    for name in (*HOSTILE[:3], "d↵_e_"):
        assert name in page.text("bdi")
    assert "em" not in {tag for tag, _ in page.tags}
    for tag, attrs in page.tags:
        assert tag not in ("script", "img", "link", "iframe", "object")
        for name in ("src", "href", "xlink:href"):
            assert (attrs.get(name) or "#").startswith("#")
    assert "url(" not in text
    assert "@import" not in text


def test_pictures_and_tables_can_be_read_aloud(audited):
    page = Page(rt.report(*audited).to_html())
    for tag, attrs in page.tags:
        if tag == "svg" and "aria-hidden" not in attrs and "overflow" not in attrs:
            assert attrs["role"] == "img"
            assert attrs["aria-label"]
        if tag == "th":
            assert attrs["scope"] in ("row", "col")
    ids = [attrs["id"] for _, attrs in page.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    used = {attrs["href"][1:] for tag, attrs in page.tags if tag == "use"}
    assert used <= set(ids)


def test_markdown_tables_have_as_many_cells_as_headings(audited):
    text = rt.report(*audited).to_markdown()
    lines = text.splitlines()
    tables = [place for place, line in enumerate(lines) if line.startswith("|--")]
    assert len(tables) >= 2
    for place in tables:
        assert lines[place - 2] == ""
        below = place + 1
        while below < len(lines) and lines[below].startswith("|"):
            assert columns(lines[below]) == columns(lines[place]) == columns(lines[place - 1])
            below += 1
        assert below > place + 1
    for escaped in ('&lt;b&gt;&amp;"x"', "a\\|b", "\\`c\\`", "\u2068d↵\\_e\\_\u2069"):
        assert f"| {escaped} |" in text
    assert "\n\n\n" not in text


def test_code_in_markdown_keeps_its_backticks():
    assert render.in_backticks("a `b` c") == "``a `b` c``"
    assert render.in_backticks("`b`") == "`` `b` ``"


def test_a_template_in_a_name_is_a_name():
    model, result, audit = judged([HOSTILE[4], "good", "new"])
    report = rt.report(model, result, audit)
    assert "{{ 7 * 7 }}" in report.to_html()
    assert "\\{\\{ 7 \\* 7 \\}\\}" in report.to_markdown()


def test_names_are_no_mentions_links_or_formulas():
    model, result, audit = judged([*LIVELY, "new"])
    text = (
        rt.report(model, result, audit)
        .to_markdown()
        .partition("<details><summary>How this was computed")[0]
    )
    for active in ("@some", "@here", "#12", "gh-12", "://", "www."):
        assert active not in text
    assert "\\$x\\$ and \\$y\\$" in text
    assert "$x" not in text.replace("\\$", "")
    for name in LIVELY:
        assert f"| {name} |" in text.replace("\u2060", "").replace("\\", "")


def test_intervals_are_drawn_where_they_lie():
    scale = render.Scale(-1.0, 3.0)
    assert [scale.at(value) for value in (-1, 0, 1, 3, 9)] == [
        "0.0%",
        "25.0%",
        "50.0%",
        "100.0%",
        "100.0%",
    ]
    assert scale.wide(0, 1) == "25.0%"
    model, result, audit = judged(["guess", "good", "new"])
    page = Page(rt.report(model, result, audit).to_html())
    bars = [attrs for tag, attrs in page.tags if tag == "rect" and "rx" in attrs][:3]
    rows = rt.report(model, result, audit).facts["annotators"]
    drawn = render.scale_of(rows, "competence", 0.0, 1.0, 0.25)
    for attrs, row in zip(bars, rows, strict=True):
        assert attrs["x"] == drawn.at(row["competence_low"])
        assert attrs["width"] == drawn.wide(row["competence_low"], row["competence_high"])


def test_six_hundred_annotators_are_all_there_ten_of_them_at_once():
    names = [f"annotator {number:03} of the far too long names" for number in range(600)]
    model, result, audit = judged(names)
    table = audit.table
    verdict = np.array(["drop", "review", "keep"], dtype=object)[np.arange(600) % 3]
    audit = dataclasses.replace(audit, table=table.assign(verdict=("annotator", verdict)))
    report = rt.report(model, result, audit)
    page, short = report.to_html(), report.to_markdown()
    of_verdicts = page.partition('id="section-items"')[0]
    first, *folded = of_verdicts.split("<details>")
    rows = [row["annotator"] for row in report.facts["annotators"]]
    assert [sum(f">{name}<" in part for name in names) for part in (first, *folded)] == [
        10,
        190,
        200,
        200,
    ]
    assert all(f">{name}<" in first for name in rows[:10])
    assert Page(page).text("summary")[:3] == [
        "drop: the other 190 annotators",
        "review: 200 annotators",
        "keep: 200 annotators",
    ]
    assert "The first 10 of 600 annotators: those in question first" in first
    assert "the other 190" in short
    assert len(report.facts["agreement"]["annotators"]) == 30
    assert sorted(report.facts["agreement"]["verdicts"]) == ["drop"] * 20 + ["keep"] * 10
    assert "Shown are the 30 that matter most of 600" in page
    assert len(page) < 2_000_000
    assert len(short) < 65_536  # what a pull request takes


def test_questions_are_listed(of_votes):
    model, result, audit = of_votes
    votes = rt.Comparisons.from_result(result)
    asked = rt.suggest(model, result, rt.Candidates.pairs(votes), batch_size=3)
    report = rt.report(model, result, audit, questions=asked, questions_note="Three of many.")
    assert [row["first"] for row in report.facts["next"]["questions"]] == asked[
        "first"
    ].values.tolist()
    assert "|\n\nThree of many." in report.to_markdown()
    assert "The next questions" in report.to_html()
    with pytest.raises(SettingError) as refusal:
        rt.report(model, result, audit, questions="what next?")
    assert refusal.value.parameter == "questions"


# ---------------------------------------------------------------- mistakes


def test_what_does_not_belong_together_is_refused(of_votes):
    model, result, audit = of_votes
    others = judged(["guess", "good", "new"])[2]
    for wrong in (audit.table, others):
        with pytest.raises(SettingError) as refusal:
            rt.report(model, result, wrong)
        assert refusal.value.parameter == "audit"
    with raises_about(SettingError, "model"):
        rt.report(rt.BTL(), result, audit)
    for command in ("raters audit it's.csv", ["raters", "audit"]):
        with pytest.raises(SettingError) as refusal:
            rt.report(model, result, audit, command=command)
        assert refusal.value.parameter == "command"


def test_files_by_their_endings(of_votes, tmp_path):
    report = rt.report(*of_votes)
    for name, text in {
        "a.html": report.to_html(),
        "b.md": report.to_markdown(),
        "c.JSON": report.to_json(),
    }.items():
        report.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    for name in ("report.pdf", "report"):
        with pytest.raises(SettingError, match=r"such as report\.html"):
            report.save(tmp_path / name)
    with pytest.raises(SettingError, match="cannot be written: No such file"):
        report.save(tmp_path / "none" / "report.html")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.html", "b.md", "c.JSON"]


def test_a_command_keeps_the_number_of_questions():
    """`--batch-size` is how many questions to suggest; that of SVI has a name of its own."""
    model, result, audit = judged(["guess", "good", "new"])
    tree = recorded(model, result, 1, rt.SVI())
    rising = np.random.default_rng(0).normal(0, 1, 1000) + 0.1 * np.arange(1000)
    tree["optimisation"] = xr.DataTree(xr.Dataset({"elbo": ("step", rising)}))
    typed = "raters audit v.csv --backend svi --svi-batch-size 50 --steps 9 --batch-size 3"
    line = rt.report(model, tree, audit, command=typed).facts["convergence"]["line"]
    assert line == "raters audit v.csv --batch-size 3"


@pytest.mark.filterwarnings("ignore:20 draws are too few:raters.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:no vote contradicts:raters.errors.DataWarning")
def test_a_fit_without_those_flagged_is_not_advised_again(fit_quietly):
    model, result, audit = judged(["guess", "good", "new"])
    dropped = rt.auditing.drop(
        model, model.data_type.from_result(result), audit, rt.PGEM(draws=20), seed=0, progress=False
    )
    for given, again in ((None, True), (dropped, False)):
        relied = recorded(model, result, 2, rt.NUTS(), **MIXED)
        steps = rt.report(model, relied, audit, dropped=given).facts["next"]["steps"]
        step = next(step for step in steps if "no more questions" in step["what"])
        assert ("fit again without" in step["what"], step["line"] is not None) == (again, again)


def test_a_full_disk_leaves_an_older_report(tmp_path, monkeypatch):
    model, result, audit = judged(["guess", "good", "new"])
    report, path = rt.report(model, result, audit), tmp_path / "report.md"
    report.save(path)
    older, write = path.read_text(), Path.write_text

    def half(self, text, **options):
        write(self, text[:100], **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(SettingError, match=r"cannot be written: No space left"):
        report.save(path)
    assert path.read_text() == older
    assert list(tmp_path.iterdir()) == [path]
