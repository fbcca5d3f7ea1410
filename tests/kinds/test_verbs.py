"""Three kinds of judgement that no file of the package knows have every verb: persons who answer
items, choosers who take one of a set, and readers who mark the sentences of a text."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import arviz as az
import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.acquisition import formats, simulate_campaign
from raters.cli import app
from raters.errors import ConvergenceWarning, DataError, SettingError
from raters.testing import check_model
from tests.kinds import choices, marks, replies


class Case(NamedTuple):
    """A kind of judgement outside the package, and how to use it."""

    kind: rt.kinds.Kind
    table: dict[str, Any]
    columns: dict[str, str]
    judged: str
    backend: rt.Backend
    quick: rt.Backend
    truth: dict[str, np.ndarray]
    flags: tuple[str, ...]

    @property
    def data(self) -> rt.judgements.Judgements:
        return self.kind.readers[0].read(self.table, **self.columns)

    @property
    def named(self) -> list[str]:
        """The kind and its columns, as one types them."""
        name = type(self.kind.default).__module__ + ":" + self.kind.name.upper()
        roles = [word for role, column in self.columns.items() for word in (f"--{role}", column)]
        return ["--kind", name, *roles]


CASES = {
    "replies": Case(
        replies.REPLIES,
        replies.table(),
        {"person": "who", "item": "question", "correct": "right"},
        "ability",
        rt.PGGibbs(draws=500, warmup=50, chains=2),
        rt.PGGibbs(draws=50, warmup=20, chains=1),
        {"ability": np.linspace(-2, 2, 30), "discrimination": np.ones(8), "intercept": np.zeros(8)},
        ("--backend", "em", "--set", "draws=100"),
    ),
    "choices": Case(
        choices.PICKS,
        choices.table(),
        {"chooser": "who", "offered": "menu", "chosen": "took"},
        "consistency",
        rt.NUTS(draws=150, warmup=80, chains=2),
        rt.NUTS(draws=40, warmup=40, chains=1),
        {"utility": np.array([1.5, 0.8, 0, -0.8, -1.5]), "consistency": np.array([0.5, 1, 1.5, 2])},
        ("--backend", "nuts", "--set", "draws=60", "--set", "warmup=80", "--set", "chains=2"),
    ),
    "marks": Case(
        marks.MARKS,
        marks.table(),
        {"text": "page", "reader": "who", "place": "sentence", "good": "good", "count": "times"},
        "mildness",
        rt.PGGibbs(draws=500, warmup=50, chains=2),
        rt.PGGibbs(draws=50, warmup=20, chains=1),
        {"quality": np.linspace(-1, 1, 8), "mildness": np.linspace(-1, 1, 5), "slope": -0.5},
        ("--backend", "em", "--set", "draws=100"),
    ),
}


# One of them in the fast lane.
_PARAMS = [pytest.param(name, marks=[pytest.mark.slow] * (name != "replies")) for name in CASES]


@pytest.fixture(scope="module", params=_PARAMS)
def case(request) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def model(case) -> rt.Model:
    return case.kind.default


@pytest.fixture(scope="module")
def result(case, model, fit_quietly):
    return fit_quietly(model, case.data, case.backend)


def pool_of(case: Case) -> rt.judgements.Judgements:
    """Everything that can be asked, again where all of it was answered."""
    again = {} if case.kind.data.again else {"again": True}
    return rt.Candidates.of(case.data, **again)


# ---------------------------------------------------------------- fits and predictions


def test_the_contract(case, model):
    check_model(model, case.data)


def test_a_prediction_is_a_distribution_over_the_answers(case, model, result):
    probability = rt.predict(model, result)
    assert probability.dims == ("chain", "draw", "answer", case.data.row)
    np.testing.assert_allclose(probability.sum("answer"), 1, atol=1e-5)
    pointwise = rt.log_likelihood(model, result, by=case.data.judge).log_likelihood[
        case.data.observed
    ]
    assert pointwise.sizes[case.data.judge] == len(case.data.judges)
    again = rt.simulate(model, case.data.unanswered(), seed=0)
    assert again.data.num_judgements == case.data.num_judgements


def test_a_result_is_read_again(case, model, result, tmp_path):
    result.to_netcdf(tmp_path / "result.nc")
    stored = az.from_netcdf(tmp_path / "result.nc")
    assert rt.fitting.result.model_of(stored) == model
    assert rt.audit(model, stored, reference="crowd").table.equals(
        rt.audit(model, result, reference="crowd").table
    )
    assert rt.fitting.describe(model, case.data)


# ---------------------------------------------------------------- checks


def test_a_model_is_checked(case, model, result):
    found = rt.check(model, result, replicates=500, time=np.arange(case.data.num_rows))
    names = set(found.table["discrepancy"].values) | set(found.not_measured)
    assert names == {"agreement", "judge_pairs", "competence", "judge_answers", "drift"}
    assert {"competence", "judge_answers"} <= set(found.table["discrepancy"].values)
    assert np.isfinite(found.table["observed"]).all()
    assert case.data.judge in " ".join(found.table["title"].values)
    rt.figures.checks(found)


def test_groups_for_arviz(case, model, result):
    word = case.kind.words.one
    tree = rt.fitting.with_groups(model, result, by=word, draws=100)
    (name,) = tree["observed_data"].data_vars
    outcomes = tree["posterior_predictive"][name]
    assert outcomes.shape[2:] == tree["observed_data"][name].shape == (case.data.num_judgements,)
    assert set(np.unique(outcomes)) <= set(case.data.answers().tolist())
    for group in ("log_likelihood", "log_prior", "prior"):
        assert all(np.isfinite(values).all() for values in tree[group].data_vars.values())


# ---------------------------------------------------------------- audits and reports


def test_the_audit_judges_by_the_threshold_of_the_kind(case, model, result, monkeypatch):
    audit = rt.audit(model, result, reference="crowd")
    judged = result.posterior[audit.judged].stack(sample=("chain", "draw"))
    below = (judged < case.kind.threshold).mean("sample")
    np.testing.assert_allclose(audit.table["p_below"], below, atol=1e-6)
    assert f"fewer than 5 {case.kind.words.many}" in audit.rule
    assert rt.audit(model, result, threshold=100.0, reference="crowd").flagged
    rt.figures.competences(audit)
    bare = rt.kinds.Kind(
        **{name: value for name, value in vars(case.kind).items() if name != "threshold"}
    )
    monkeypatch.setitem(rt.kinds._KINDS, case.kind.name, bare)
    with pytest.raises(SettingError) as caught:
        rt.audit(model, result, reference="crowd")
    assert caught.value.parameter == "threshold"


def test_without_those_flagged(case, model, result):
    means = rt.audit(model, result, reference="crowd").table[case.judged]
    costs = rt.Costs(review=100.0)
    audit = rt.audit(model, result, threshold=float(means.median()), costs=costs, reference="crowd")
    left = len(case.data.judges) - len(audit.flagged)
    assert 0 < left < len(case.data.judges)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fewer = rt.auditing.drop(model, case.data, audit, case.backend, seed=0, progress=False)
    assert fewer.posterior.sizes[case.data.judge] == left
    report = rt.report(model, result, audit, dropped=fewer)
    part = report.facts["sections"]["without_flagged"]["findings"][0]
    assert 0 < part["judgements_left"] < case.data.num_judgements
    assert {move[case.data.judge] for move in part["moves"]}.isdisjoint(audit.flagged)
    assert "Without those flagged" in report.to_markdown()


def test_the_report_says_what_can_be_said(case, model, result):
    report = rt.report(model, result, rt.audit(model, result, reference="crowd"))
    facts = json.loads(report.to_json())
    assert facts["kind"] == case.kind.name
    assert facts["words"]["many"] == case.kind.words.many
    for text in (report.to_markdown(), report.to_html()):
        assert case.kind.words.many in text
        assert case.data.judge in text
        assert " votes" not in text
        assert "annotator" not in text


# ---------------------------------------------------------------- questions and campaigns


@pytest.mark.parametrize("target", [None, "everything", "competence", "predictive"])
def test_suggestions(case, model, result, target):
    table = rt.suggest(model, result, pool_of(case), target=target, batch_size=4)
    assert len(table["score"]) == 4
    assert (table["score"] > 0).all()
    assert set(table["by"].values) <= set(case.data.judges)


@pytest.mark.parametrize("target", ["ranking", "truth", "best", "top_k"])
def test_a_target_without_meaning_is_refused(case, model, result, target):
    with pytest.raises(SettingError):
        rt.suggest(model, result, pool_of(case), target=target)


def test_a_campaign_is_reopened_from_its_file(case, model, tmp_path):
    path, data = tmp_path / "campaign.db", case.data
    again = {} if case.kind.data.again else {"again": True}
    pool = pool_of(case)
    campaign = rt.Campaign(path, model, pool, data=data, backend=case.quick, **again)
    asked = campaign.ask(3)
    question = asked["id"].values[0]
    with pytest.raises(DataError) as caught:
        campaign.tell(question, "perhaps")
    assert (caught.value.parameter, caught.value.value) == ("answers", "perhaps")
    own = possible(asked)
    assert len(campaign.tell({name: answers[0] for name, answers in own.items()}).new) == 3
    reopened = rt.Campaign.open(path)
    assert reopened.model == model
    assert reopened.data.num_judgements == data.num_judgements + 3
    assert reopened.status(probability=False).answered == 3


def possible(questions) -> dict[str, list[str]]:
    """Possible answers to each question."""
    if "answers" in questions:
        return dict(
            zip(questions["id"].values, map(list, questions["answers"].values), strict=True)
        )
    return dict.fromkeys(questions["id"].values, questions.attrs["answers"])


def test_questions_for_other_tools(case, model, tmp_path):
    campaign = rt.Campaign(
        tmp_path / "a.db",
        model,
        pool_of(case),
        backend=case.quick,
        policy=rt.Policy(score=rt.acquisition.Random()),
        again=True,
    )
    questions = campaign.ask(3)
    tasks = formats.to_label_studio(questions)
    every = {answer for own in possible(questions).values() for answer in own}
    settings = formats.argilla_settings(questions)["questions"][0]["settings"]
    assert {option["value"] for option in settings["options"]} == every
    export = [
        task
        | {
            "annotations": [
                {
                    "completed_by": 1,
                    "result": [{"type": "choices", "value": {"choices": [answers[-1]]}}],
                }
            ]
        }
        for task, answers in zip(tasks, possible(questions).values(), strict=True)
    ]
    assert len(campaign.tell(formats.from_label_studio(export).answers).new) == 3


def test_simulated_campaigns(case, model):
    curves = simulate_campaign(
        model,
        case.truth,
        pool_of(case),
        rt.Policy(target="everything"),
        backend=case.quick,
        batch_size=6,
        batches=2,
        progress=False,
    )
    assert curves["answers"][0].values.tolist() == [6, 12]


# ---------------------------------------------------------------- command line


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command, in this process."""
    code = app.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def file(case, tmp_path) -> Path:
    """The judgements as a table."""
    path = tmp_path / "table.csv"
    pd.DataFrame(case.table).to_csv(path, index=False)
    return path


def test_the_command_line_audits_and_suggests(case, file, capsys):
    out, report = file.parent / "out", file.parent / "report.html"
    arguments = (file, *case.named, *case.flags, "--out", out, "--report", report)
    code, printed, err = run(capsys, "audit", *arguments)
    assert code == 0, err
    nothing = "has answered every question"
    assert ("NEXT QUESTIONS" if case.kind.data.again else nothing) in printed
    written = {path.name for path in out.iterdir()}
    assert {"result.nc", "summary.json", "competences.png"} <= written
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["annotators"]) == len(case.data.judges)
    assert summary["asked"]["threshold"] == case.kind.threshold
    assert summary["settings"]["backend"] == case.flags[1]
    assert case.kind.words.many in report.read_text()
    again = () if case.kind.data.again else ("--again",)
    asked = (*case.named[:2], "--batch-size", 2, *again)
    code, printed, err = run(capsys, "suggest", out / "result.nc", *asked)
    assert code == 0, err
    table = printed.splitlines()
    assert len(table) == 3  # with a head
    for line in table[1:]:
        assert {str(name) for name in case.data.judges} & set(line.split()), line
    code, _, err = run(capsys, "suggest", out / "result.nc", "--kind", "labels")
    assert (code, err.startswith("raters: --kind labels is not the kind of")) == (2, True)


def test_a_campaign_on_the_command_line(case, file, capsys, monkeypatch):
    journal, kind = file.parent / "a.db", case.named[:2]
    again = () if case.kind.data.again else ("--again",)
    start = ("campaign", "start", file, *case.named, *again, *case.flags)
    code, _, err = run(capsys, *start, "--out", journal)
    assert code == 0
    assert f"raters campaign ask {journal} --kind {kind[1]}" in err
    assert run(capsys, "campaign", "ask", journal, *kind, "--number", 3)[0] == 0
    questions = rt.Campaign.open(journal).outstanding()
    first, second, _ = possible(questions).values()
    typed = iter(["perhaps", first[0], second[-1].upper(), "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    code, printed, err = run(capsys, "campaign", "tell", journal, *kind)
    assert (code, printed.count("noted")) == (0, 2)
    assert "is no answer to question" in err
    tasks = file.parent / "tasks.json"
    export = ("campaign", "export", journal, *kind, "--to", "label-studio")
    assert run(capsys, *export, "--out", tasks)[0] == 0
    assert len(json.loads(tasks.read_text())) == 1
    assert "unknown: --ties" in run(capsys, *export, "--ties", "--out", tasks)[2]
    table = file.parent / "all.csv"
    run(capsys, "campaign", "export", journal, *kind, "--to", "judgements", "--out", table)
    assert pd.read_csv(table)["count"].sum() >= case.data.num_judgements
    code, printed, _ = run(capsys, "campaign", "status", journal, *kind, "--quick")
    assert (code, re.search(r"answered +2\n", printed) is not None) == (0, True)


def test_an_audit_of_a_kind_without_a_calibration_rests_on_its_model(case, model, result):
    audit = rt.audit(model, result, threshold=100.0)
    assert audit.flagged
    assert "judged by what their model says" in str(audit)
    with pytest.raises(SettingError, match="no calibration"):
        rt.audit(model, result, {"a": 1})
