"""Report of an audit: its facts are the audit's, and every form shows them whole and escaped."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import raters as rt
from raters.errors import SettingError
from raters.fitting.storage import to_json
from raters.inference import Backend
from raters.reporting import facts
from raters.reporting.views import as_options
from tests import hand
from tests.refusals import raises_about

SIGNED = rt.ExtendedBTL(competence="signed")
HOSTILE = ('<b>&"x"', "a|b", "`c`", "d\n_e_", "{{ 7 * 7 }}")
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


def check_forms(report: rt.reporting.Report) -> None:
    """Every form is a view of the same facts; pages are well-formed, alone and readable aloud."""
    again = rt.reporting.Report(strict(report.to_json()))
    assert again.facts == report.facts
    html, markdown = report.to_html(), report.to_markdown()
    assert (again.to_html(), again.to_markdown()) == (html, markdown)
    assert again.to_text() == report.to_text()
    assert len(report.to_text(5).splitlines()) < 70
    page = Page(html)
    for tag, attrs in page.tags:
        assert tag not in ("script", "img", "link", "iframe", "object")
        for name in ("src", "href", "xlink:href"):
            assert (attrs.get(name) or "#").startswith("#")
        if tag == "svg" and "aria-hidden" not in attrs and "overflow" not in attrs:
            assert attrs["role"] == "img"
            assert attrs["aria-label"]
        if tag == "th":
            assert attrs["scope"] in ("row", "col")
    ids = [attrs["id"] for _, attrs in page.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for tag, attrs in page.tags if tag == "use"} <= set(ids)
    lines = markdown.splitlines()
    for place, line in enumerate(lines):
        if line.startswith(("|--", "|---")):
            below = place + 1
            while below < len(lines) and lines[below].startswith("|"):
                assert columns(lines[below]) == columns(line) == columns(lines[place - 1])
                below += 1
            assert below > place + 1
    assert "\n\n\n" not in markdown


def findings(report: rt.reporting.Report, section: str) -> dict:
    """Findings of a section by their codes."""
    every = report.facts["sections"][section]["findings"]
    return {finding.get("code"): finding for finding in every}


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


def test_the_facts_are_those_of_the_audit(audited):
    report, audit = rt.report(*audited), audited[2]
    page = report.facts
    assert page["schema_version"] == facts.SCHEMA_VERSION
    rows = {row["annotator"]: row for row in page["annotators"]}
    for place, name in enumerate(audit.table["annotator"].values):
        for column in audit.table.data_vars:
            value = audit.table[column].values[place]
            assert rows[name][column] == (
                pytest.approx(float(value)) if isinstance(value, float) else value
            )
    assert sorted(page["answer"]["flagged"]) == sorted(audit.flagged)
    assert page["how"]["rule"] == audit.rule
    assert sum(page["answer"]["counts"].values()) == len(rows) == 4
    items = page["sections"]["items"]["rows"]
    if audit.items is None:
        means = audited[1].posterior["reward"].mean(("chain", "draw")).values
        assert [row["item"] for row in items] == np.argsort(-means).tolist()
    else:
        probability = audit.items["probability"].values.tolist()
        assert [row["probability"] for row in items] == sorted(probability)
        assert sum(findings(report, "items")["classes"]["number"].values()) == len(items)
        matrices = page["sections"]["confusion"]["matrices"]
        by_name = {matrix["title"]: matrix["values"] for matrix in matrices}
        for place, name in enumerate(audit.table["annotator"].values):
            np.testing.assert_allclose(by_name[name], audit.confusion["mean"].values[place])
        alpha = page["agreement"]["statistics"][1]
        expected = rt.agreement(rt.Labels.from_result(audited[1]))["estimate"]
        assert alpha["statistic"] == "krippendorff_alpha"
        assert alpha["estimate"] == pytest.approx(expected["krippendorff_alpha"])


def test_expected_costs_and_mistakes_by_hand():
    costs = rt.Costs(keep_bad=2, drop_good=3, review=0.7)
    model, result, audit = judged(["guess", "good", "new"], costs=costs)
    # By hand instead of from draws: one to drop, one to review, one without enough votes.
    table = audit.table.assign(
        p_below=("annotator", [0.9, 0.4, 0.5]),
        verdict=("annotator", ["drop", "review", "too few judgements"]),
    )
    report = rt.report(model, result, dataclasses.replace(audit, table=table))
    answer = report.facts["answer"]
    assert answer["expected_wrong_drops"] == pytest.approx(0.1)
    assert answer["expected_bad_kept"] == 0
    assert answer["expected_cost"] == pytest.approx(0.1 * 3 + 0.7)
    assert answer["expected_cost_of_keeping_all"] == pytest.approx((0.9 + 0.4) * 2)
    assert (answer["judgements_of_flagged"], answer["judgements"]) == (8, 17)
    headline = "drop: 1 of 3 annotators (guess); review: 1 (good); too few judgements: 1"
    assert str(report).splitlines()[0] == headline


# ---------------------------------------------------------------- convergence


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
    return tree


MIXED = {"max_rhat": 1.005, "min_ess": 900.0}
NEAR = {"pareto_k": 0.3, "min_ess": 900.0}


@pytest.mark.parametrize(
    ("chains", "backend", "attrs", "code"),
    [
        (2, rt.NUTS(), MIXED, "mixed"),
        (2, rt.NUTS(), MIXED | {"max_rhat": 1.2}, "disagree"),
        (2, rt.NUTS(), MIXED | {"min_ess": 150.0}, "short"),
        (2, rt.NUTS(), MIXED | {"divergences": 3}, "diverged"),
        (2, rt.NUTS(), {"max_rhat": np.nan, "min_ess": 0.0}, "disagree"),
        (1, rt.NUTS(), MIXED, "one_chain"),
        (1, "nothing", MIXED, "unrecorded"),
        (1, rt.PGEM(), NEAR | {"converged": 1}, "near"),
        (1, rt.PGEM(), NEAR | {"converged": 0}, "moving"),
        (1, rt.PGEM(), {"pareto_k": 1.2, "converged": 1}, "far"),
        (1, rt.PGEM(), {"converged": 1}, "unchecked"),
        (1, rt.SVI(), {"pareto_k": np.nan}, "unchecked"),
        (1, rt.SVI(), NEAR | {"min_ess": 50.0}, "few"),
    ],
)
def test_convergence_is_a_code(chains, backend, attrs, code):
    model, result, audit = judged(["guess", "good", "new"])
    report = rt.report(model, recorded(model, result, chains, backend, **attrs), audit)
    fit, steps = report.facts["convergence"], [one["code"] for one in report.facts["next"]["steps"]]
    settled = code in ("mixed", "near")
    assert fit["code"] == code
    assert fit["settled"] is fit["relied_on"] is report.facts["answer"]["relied_on"] is settled
    assert ("Do not act on this report yet" in str(report)) is not settled
    assert (
        report.to_html().count("Not final") == report.to_text().count("Not final") == (not settled)
    )
    assert ("fit_again" in steps) is not settled
    assert ("check_exactly" in steps) == (code == "near")
    check_forms(report)


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
    fit = rt.report(model, result, audit).facts["convergence"]
    assert (fit["code"], fit["settled"], fit["open"]) == ("stands", True, [])
    assert [one["site"] for one in fit["poor"]] == ["reward_scale"]
    assert fit["poor"][0]["rhat"] > 1.01


def test_verdicts_that_may_change_are_named():
    """P(competence < .25) of the second is near 1/5, where keep turns to review, and its chains
    are short; those of the others are far from any limit."""
    rng = np.random.default_rng(1)
    competence = rng.normal([0.0, 0.6, 1.0], [0.05, 0.42, 0.05], (4, 300, 3))
    competence[:, :, 1] = np.sort(competence[:, :, 1].reshape(4, 30, 10), -1).reshape(4, 300)
    competence[:, :, 1] += 0.02 * np.arange(4)[:, None]
    model, result, audit = of_chains({"competence": competence}, wild=0.1)
    report = rt.report(model, result, audit)
    fit = report.facts["convergence"]
    assert (fit["settled"], fit["open"]) == (False, ["good"])
    assert "the verdicts of good may still change" in str(report)


# ---------------------------------------------------------------- forms


def test_every_form_shows_the_same_facts_whole_and_escaped(audited, tmp_path):
    report = rt.report(*audited, title="<em>Spring</em>")
    check_forms(report)
    page, markdown = Page(report.to_html()), report.to_markdown()
    assert page.text("title") == ["<em>Spring</em>"]
    assert "em" not in {tag for tag, _ in page.tags}
    for name in (*HOSTILE[:3], "d↵_e_"):
        assert name in page.text("bdi")
    for escaped in ('&lt;b&gt;&amp;"x"', "a\\|b", "\\`c\\`", "\u2068d↵\\_e\\_\u2069"):
        assert f"| {escaped} |" in markdown
    for name, text in (("a.html", report.to_html()), ("b.md", markdown), ("c.JSON", None)):
        report.save(tmp_path / name)
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert written == (report.to_json() if text is None else text)
    for name, write in report.files.items():
        write(tmp_path / name)
    assert {"annotators.csv", "items.csv", "competences.png"} <= set(report.files)
    assert len(pd.read_csv(tmp_path / "annotators.csv")) == 4
    assert (tmp_path / "competences.png").stat().st_size > 1000


def test_the_table_comes_before_what_explains_it(audited):
    html = rt.report(*audited).to_html()
    order = ['class="answer', 'id="verdicts"', 'id="section-items"', 'id="next"', 'id="limits"']
    places = [html.index(mark) for mark in order]
    assert places == sorted(places)
    assert html.count('<section aria-labelledby="section-') <= 3
    assert "<small>Competence is" not in html


def test_what_to_type_is_that_of_the_front_end(audited):
    page = rt.report(*audited)
    typed = rt.reporting.Report({**page.facts, "front": "command line", "result": "out/fit.nc"})
    assert "rt.suggest(" in page.to_text()
    for text in (typed.to_text(), typed.to_markdown(), typed.to_html()):
        assert "raters suggest out/fit.nc" in text
        assert re.search(r"\brt\.\w", text) is None
    said = {
        'rt.ExtendedBTL(competence="signed"),': "--model extended-btl --set competence=signed,",
        "rt.models.OneCoin() or rt.NUTS()": "--model one-coin or --backend nuts",
        "rt.PGGibbs(draws=9, chains=4)": "--backend gibbs --set draws=9 --set chains=4",
        "rt.check says": "raters audit --with check says",
        "rt.Candidates.of(data)": "rt.Candidates.of(data)",
    }
    assert {python: as_options(python) for python in said} == said


def test_notebooks_show_a_line_and_the_first_rows(audited):
    model, result, audit = audited
    data = model.data_type.from_result(result)
    both = rt.judgements.Together.of({"one": data.rows([0]), "other": data.rows([1, 2])})
    for thing in (audit, data, data.unanswered(), both, rt.check(model, result)):
        assert len(repr(thing).splitlines()) == 1
        page = Page(f"<div>{thing._repr_html_()}</div>")
        assert 1 < [tag for tag, _ in page.tags].count("tr") <= 9
        assert "b" not in {tag for tag, _ in page.tags}


# ---------------------------------------------------------------- mistakes


def test_what_does_not_belong_together_is_refused(tmp_path):
    names = ["guess", "good", "new"]
    model, result, audit = judged(names)
    wider = dataclasses.replace(model, reward_scale=2.0)
    for wrong in (None, audit.table, judged(names[:2])[2], rt.audit(wider, result)):
        with raises_about(SettingError, "audit"):
            rt.report(model, result, wrong)
    with raises_about(SettingError, "result"):
        rt.report(model, result.isel(draw=[0]), audit)
    for name in ("report.pdf", "report"):
        with raises_about(SettingError, "path"):
            rt.report(model, result, audit).save(tmp_path / name)
    with pytest.raises(SettingError):
        rt.report(model, result, audit).save(tmp_path / "none" / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:20 draws are too few:raters.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:no vote contradicts:raters.errors.DataWarning")
def test_what_changes_without_those_flagged():
    model, result, audit = judged(["guess", "good", "new"])
    data = model.data_type.from_result(result)
    dropped = rt.auditing.drop(model, data, audit, rt.PGEM(draws=20), seed=0, progress=False)
    report = rt.report(model, result, audit, dropped=dropped)
    without = findings(report, "without_flagged")
    assert without["without"]["judgements_left"] == 9
    assert {move["annotator"] for move in without["without"]["moves"]} == {"good", "new"}
    assert without["changed"]["of"] == 3
    assert -1 <= without["changed"]["kendall_tau"] <= 1
    for given, done in ((None, False), (dropped, True)):
        steps = rt.report(model, result, audit, dropped=given).facts["next"]["steps"]
        assert [one["done"] for one in steps if one["code"] == "drop"] == [done]
    check_forms(report)
