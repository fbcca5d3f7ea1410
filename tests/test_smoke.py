"""Every name at the top is there, and each back-end and verb runs once: what other versions of the
dependencies are tried with."""

from __future__ import annotations

import warnings

import pytest

import raters as rt

BACKENDS = (
    rt.PGGibbs(draws=40, warmup=20, chains=2),
    rt.PGEM(draws=40),
    rt.NUTS(draws=40, warmup=60, chains=2),
    rt.SVI(steps=500, draws=40),
    rt.HMC(draws=40, warmup=60, chains=2),
)


@pytest.mark.slow
def test_every_name_back_end_and_verb(tiny, tmp_path):
    for name in rt.__all__:
        assert getattr(rt, name) is not None
    model = rt.ExtendedBTL()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for backend in BACKENDS:
            result = rt.fit(model, tiny, backend, seed=0, progress=False)
            assert result["posterior"]["reward"].notnull().all()
    audit = rt.audit(model, result, reference="crowd")
    assert audit.table.sizes["annotator"] == tiny.num_annotators
    batch = rt.suggest(model, result, rt.Candidates.pairs(tiny), batch_size=3)
    assert batch.sizes["suggestion"] == 3
    assert rt.predict(model, result).notnull().all()
    rt.report(model, result, audit).save(tmp_path / "page.html")
    assert "ExtendedBTL" in (tmp_path / "page.html").read_text()
    labels = rt.datasets.label_crowd(12, 4, 4, 3, seed=0).labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(rt.DawidSkene(), labels, BACKENDS[0], seed=0, progress=False)
    result.to_netcdf(tmp_path / "result.nc")
    assert rt.fitting.result.model_of(result) == rt.DawidSkene()
