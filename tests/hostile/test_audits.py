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
from raters.model import Fit
from tests import hand
from tests.hostile.table import (
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
LABELS = hand.labels((1, "x", "p"), (1, "y", "q"), (2, "x", "q"), (2, "y", "q"))
AUDITED = {"model": MODEL, "result": RESULT}
NO_RESULT = (*NO_OBJECT, VOTES, AUDIT, xr.DataTree(), xr.Dataset())
REPORTED = {"model": MODEL, "result": RESULT, "audit": AUDIT}
REPORT = rt.report(**REPORTED)
DROP = {"model": MODEL, "data": VOTES, "audit": AUDIT, "seed": 0, "progress": False}

AUDITS = [
    *rows(rt.audit, AUDITED, SettingError, model=(*NO_OBJECT, rt.BTL)),
    *rows(rt.audit, AUDITED, SettingError, about="result", model=(rt.models.Pooled(),)),
    *rows(rt.audit, AUDITED, DataError, result=NO_RESULT),
    *rows(rt.audit, AUDITED, SettingError, level=NO_SHARE),
    *rows(
        rt.audit,
        AUDITED,
        SettingError,
        threshold=("x", [0.5], float("nan"), float("inf"), True, THING),
        margin=(0, -1, None, "x", float("inf"), float("nan")),
    ),
    *rows(rt.audit, AUDITED, SettingError, min_judgements=(*NO_COUNT, -1)),
    *rows(rt.auditing.drop, DROP, SettingError, audit=(None, 3, RESULT, {}, rt.auditing.Audit)),
    *rows(rt.auditing.drop, DROP, SettingError, backend=("em", rt.PGEM, 3)),
    *rows(rt.log_likelihood, AUDITED, SettingError, by=("items", 3, [], "")),
    *rows(rt.predict, AUDITED, SettingError, questions=(3, "x", {}, [])),
    *rows(rt.report, REPORTED, SettingError, audit=(None, 3, RESULT, rt.auditing.Audit)),
    *rows(rt.reporting.Report, {}, SettingError, facts=(None, 3, {}, {"schema_version": 3})),
    *rows(
        rt.reporting.Report,
        {},
        SettingError,
        facts=(
            {name: REPORT.facts[name] for name in REPORT.facts if name != "annotators"},
            {"schema_version": REPORT.facts["schema_version"]},
        ),
    ),
    *rows(REPORT.save, {}, SettingError, path=(None, 3, [], "page", "page.pdf")),
    *rows(rt.agreement, {"data": LABELS}, SettingError, metric=NO_TEXT[1:], by_class=NO_FLAG),
]

FIGURES = [
    *rows(fg.competences, {}, SettingError, audit=(None, 3, RESULT, rt.auditing.Audit)),
    *rows(fg.ranks, {}, SettingError, result=NO_RESULT),
]

CONTRACT = [
    *rows(checking.uniformity, {}, SettingError, ranks=(None, 3, xr.Dataset())),
    *rows(
        checking.sbc,
        {"model": MODEL, "questions": VOTES, "backend": rt.PGEM(), "seed": 0},
        SettingError,
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
        model=(None, rt.BTL),
        chains=(0, "x", 10**30),
        sweeps=(0, None),
        seed=NO_SEED[:4],
    ),
    *rows(
        testing.check_model,
        {"model": MODEL, "data": VOTES},
        SettingError,
        model=(None, "BTL", rt.BTL),
        data=(None, {}, LABELS),
        seed=(-1, "x"),
    ),
    *rows(
        testing.check_backend,
        {"backend": rt.PGEM(), "model": MODEL, "data": VOTES},
        SettingError,
        backend=(None, rt.PGEM, "em"),
        data=(None, 3),
    ),
]

KIND = rt.kinds.kind_named("comparisons")
KINDS = [
    *rows(rt.kinds.register, {}, SettingError, kind=(*NO_OBJECT, rt.kinds.Kind)),
    *rows(
        lambda **changes: dataclasses.replace(KIND, **changes),
        {},
        SettingError,
        data=(None, 3, dict),
        readers=(3, (), [3], "from_frame"),
        models=(None, rt.BTL),
    ),
]


@pytest.mark.parametrize(TABLE, [*AUDITS, *FIGURES, *CONTRACT, *KINDS])
def test_audits(function, arguments, kind, parameter):
    check_refused(function, arguments, kind, parameter)


def test_labels_of_nan_are_no_traceback_after_a_fit():
    """A fit that diverged ends with warnings, and not with an error about an assignment."""
    nan = np.full((1, 5, 2, 2, 2), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = rt.DawidSkene().warnings(LABELS, Fit({"confusion": nan}, np.full((2, 2), np.nan)))
    assert said == ()
