"""Bad settings of audits, agreement, figures, calibration and the contract."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import xarray as xr

import raters as rt
import raters.figures as fg
from raters import checking, testing
from raters.errors import DataError, SettingError
from tests import hand
from tests.hostile.table import (
    HALF,
    NO_COUNT,
    NO_FLAG,
    NO_OBJECT,
    NO_SEED,
    NO_SHARE,
    NO_TEXT,
    TABLE,
    THING,
    check_refused,
    rows,
)

VOTES = hand.votes(("a", "b", "x"), ("b", "c", "x"), ("a", "c", "y"), ("c", "a", "y"))
MODEL = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=1.0)
RNG = np.random.default_rng(0)
RESULT = hand.result(
    VOTES, reward=RNG.normal(size=(40, 3)), competence=RNG.normal(1, 0.3, size=(40, 2))
)
AUDIT = rt.audit(MODEL, RESULT, min_judgements=1, reference="crowd")
LABELS = rt.Labels.from_frame(
    {"i": [1, 1, 2, 2], "k": [*"xyxy"], "l": [*"pqqq"]}, item="i", annotator="k", label="l"
)
RANKS = xr.Dataset({"reward": ("replicate", np.arange(20) % 10)}, attrs={"draws": 9})
AUDITED = {"model": MODEL, "result": RESULT}
NO_RESULT = (*NO_OBJECT, VOTES, AUDIT, xr.DataTree(), xr.Dataset())
REPORTED = {"model": MODEL, "result": RESULT, "audit": AUDIT}
REPORT = rt.report(**REPORTED)
DROP = {"model": MODEL, "data": VOTES, "audit": AUDIT, "seed": 0, "progress": False}

AUDITS = [
    *rows(rt.audit, AUDITED, SettingError, "must be a model", model=(*NO_OBJECT, rt.BTL)),
    *rows(
        rt.audit,
        AUDITED,
        SettingError,
        "choose a model",
        about="result",
        model=(rt.models.Pooled(),),
    ),
    *rows(rt.audit, AUDITED, DataError, "pass a result", result=NO_RESULT),
    *rows(rt.audit, AUDITED, SettingError, "between 0 and 1|a number", level=NO_SHARE),
    *rows(
        rt.audit,
        AUDITED,
        SettingError,
        "number",
        threshold=("x", [0.5], float("nan"), float("inf"), True, THING),
        margin=(0, -1, None, "x", float("inf"), float("nan")),
    ),
    *rows(rt.audit, AUDITED, SettingError, "whole number", min_judgements=(*NO_COUNT, -1)),
    *rows(rt.audit, AUDITED, SettingError, "Costs", costs=(3, {}, "x", rt.Costs)),
    *rows(
        rt.auditing.drop,
        DROP,
        SettingError,
        "must be an audit",
        audit=(None, 3, RESULT, {}, rt.auditing.Audit),
    ),
    *rows(rt.auditing.drop, DROP, SettingError, "must be a back-end", backend=("em", rt.PGEM, 3)),
    *rows(rt.auditing.drop, DROP, SettingError, "whole number from 0", seed=NO_SEED),
    *rows(
        rt.auditing.drop, DROP, SettingError, "read a table first|choose a model", data=(3, LABELS)
    ),
    *rows(rt.auditing.drop, DROP, SettingError, "true or false", progress=NO_FLAG),
    *rows(rt.log_likelihood, AUDITED, SettingError, "text|choose one of", by=("items", 3, [], "")),
    *rows(rt.predict, AUDITED, SettingError, "read a table first", questions=(3, "x", {}, [])),
    *rows(rt.predict, AUDITED, DataError, "pass a result", result=NO_RESULT[:4]),
    *rows(rt.report, REPORTED, SettingError, "text", title=NO_TEXT[1:], questions_note=NO_TEXT),
    *rows(
        rt.report, REPORTED, SettingError, "table|dataset|columns", questions=(3, [], xr.Dataset())
    ),
    *rows(
        rt.report,
        REPORTED,
        SettingError,
        "must be an audit",
        audit=(None, 3, RESULT, rt.auditing.Audit),
    ),
    *rows(rt.report, REPORTED, DataError, "pass a result", result=NO_RESULT),
    *rows(
        rt.reporting.Report,
        {},
        SettingError,
        "rt.report",
        facts=(None, 3, {}, {"schema_version": 3}),
    ),
    *rows(
        rt.reporting.Report,
        {},
        SettingError,
        "as they were made",
        facts=(
            {name: REPORT.facts[name] for name in REPORT.facts if name != "annotators"},
            {"schema_version": REPORT.facts["schema_version"]},
        ),
    ),
    *rows(
        REPORT.save, {}, SettingError, "path|text|end it in", path=(None, 3, [], "page", "page.pdf")
    ),
    *rows(REPORT.as_text, {}, SettingError, "path|text|end it in", path=(None, 3, [], "", HALF)),
    *rows(rt.fitting.result.model_of, {}, DataError, "pass a result", result=NO_RESULT),
    *rows(rt.agreement, {"data": LABELS}, SettingError, "number|between", level=NO_SHARE),
    *rows(
        rt.agreement,
        {"data": LABELS},
        SettingError,
        "choose one of|text|true or false",
        metric=NO_TEXT[1:],
        by_class=NO_FLAG,
    ),
]

FIGURES = [
    *rows(
        fg.competences,
        {},
        SettingError,
        "must be an audit",
        audit=(None, 3, RESULT, rt.auditing.Audit),
    ),
    *rows(fg.confusions, {}, SettingError, "must be an audit", audit=(None, {}, RESULT)),
    *rows(fg.ranks, {}, SettingError, "it must be a result", result=NO_RESULT),
    *rows(fg.profiles, {"result": RESULT}, SettingError, "fit", about="result", result=(RESULT,)),
    *rows(
        fg.learning_curves,
        {"curves": xr.Dataset()},
        SettingError,
        "text|dataset",
        name=(None, 3, []),
        curves=(None, 3, {}),
    ),
]

CONTRACT = [
    *rows(
        checking.calibration.rank_bands,
        {"draws": 9, "replicates": 9},
        SettingError,
        "number",
        draws=NO_COUNT,
    ),
    *rows(
        checking.calibration.rank_bands,
        {"draws": 9, "replicates": 9},
        SettingError,
        "whole number|between",
        replicates=(0, -1, None),
        level=NO_SHARE[:5],
    ),
    *rows(checking.uniformity, {}, SettingError, "dataset|sbc", ranks=(None, 3, xr.Dataset())),
    *rows(checking.plot_ranks, {}, SettingError, "dataset|sbc", ranks=(None, {}, xr.Dataset())),
    *rows(
        checking.sbc,
        {"model": MODEL, "questions": VOTES, "backend": rt.PGEM(), "seed": 0},
        SettingError,
        "must be a model|must be a back-end|read a table|whole number",
        model=(None, rt.BTL),
        questions=(None, {}),
        backend=(None, "em", rt.PGEM),
        seed=(-1, None),
        replicates=(0, 1, "x"),
        draws=(0, None),
    ),
    *rows(
        checking.geweke,
        {"model": MODEL, "questions": VOTES, "seed": 0},
        SettingError,
        "must be a model|whole number",
        model=(None, rt.BTL),
        chains=(0, "x", 10**30),
        sweeps=(0, None),
        seed=NO_SEED[:4],
    ),
    *rows(
        testing.check_model,
        {"model": MODEL, "data": VOTES},
        SettingError,
        "must be a model|read a table|choose a model|whole number",
        model=(None, "BTL", rt.BTL),
        data=(None, {}, LABELS),
        seed=(-1, "x"),
    ),
    *rows(
        testing.check_backend,
        {"backend": rt.PGEM(), "model": MODEL, "data": VOTES},
        SettingError,
        "must be a back-end|read a table",
        backend=(None, rt.PGEM, "em"),
        data=(None, 3),
    ),
    *rows(
        testing.check_result,
        {"result": RESULT, "model": MODEL, "data": VOTES},
        SettingError,
        "a result|a model|read a table",
        result=(None, {}, 3),
        model=(3,),
        data=(None,),
    ),
]

KIND = rt.kinds.kind_named("comparisons")
KINDS = [
    *rows(rt.kinds.register, {}, SettingError, "rt.kinds.Kind", kind=(*NO_OBJECT, rt.kinds.Kind)),
    *rows(
        lambda **changes: dataclasses.replace(KIND, **changes),
        {},
        SettingError,
        "it must be|give a tuple",
        data=(None, 3, dict),
        readers=(None, 3, (), [3]),
        words=(None, "vote", ("vote", "votes")),
        sections=(None, 3),
        needs=(None, 3, [1]),
        models=(None, rt.BTL),
        name=(3, None, b"x"),
    ),
    *rows(
        rt.kinds.Reader,
        {"read": rt.Comparisons.from_frame},
        SettingError,
        "a function",
        read=(None, 3, "from_frame"),
    ),
]


@pytest.mark.parametrize(TABLE, [*AUDITS, *FIGURES, *CONTRACT, *KINDS])
def test_audits(function, arguments, kind, parameter, remedy):
    check_refused(function, arguments, kind, parameter, remedy)


def test_labels_of_nan_are_no_traceback_after_a_fit():
    """A fit that diverged ends with warnings, and not with an error about an assignment."""
    nan = np.full((1, 5, 2, 2, 2), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = rt.DawidSkene().fit_warnings({"confusion": nan}, np.full((2, 2), np.nan), LABELS)
    assert said == ()
