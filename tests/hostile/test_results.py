"""Results that were altered, in memory or in their file."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import raters as rt
from raters.cli.files import read_result
from raters.errors import DataError, RatersError, SettingError
from tests import hand
from tests.refusals import raises_about

VOTES = hand.votes(("a", "b", "x"), ("b", "c", "x"), ("a", "c", "y"), ("c", "a", "y"))
MODEL = rt.ExtendedBTL(competence="signed", reward_scale=1.0, competence_spread=1.0)
POOL = rt.Candidates.pairs(items=["a", "b", "c"], annotators=["x", "y"])
RANDOM = rt.Policy(score=rt.acquisition.Random())
LABELS = hand.labels((1, "x", "p"), (1, "y", "q"), (2, "x", "q"), (2, "y", "q"))


def of_votes() -> xr.DataTree:
    rng = np.random.default_rng(0)
    result = hand.result(
        VOTES, reward=rng.normal(size=(40, 3)), competence=rng.normal(1, 0.3, size=(40, 2))
    )
    return with_model(result, MODEL)


def of_labels() -> xr.DataTree:
    """Two draws of Pooled by hand, with the probabilities of classes."""
    axes = ("chain", "draw")
    coords = {"chain": [0], "draw": [0, 1], "true_class": ["p", "q"], "label": ["p", "q"]}
    posterior = xr.Dataset(
        {
            "confusion": ((*axes, "true_class", "label"), np.full((1, 2, 2, 2), 0.5)),
            "prevalence": ((*axes, "true_class"), np.full((1, 2, 2), 0.5)),
        },
        coords,
    )
    classes = {"responsibility": (("item", "true_class"), np.full((2, 2), 0.5))}
    groups = {name: xr.Dataset(columns) for name, columns in LABELS.groups().items()}
    tree = xr.DataTree.from_dict(
        {"posterior": posterior, "classes": xr.Dataset(classes, {"item": [1, 2]})} | groups
    )
    tree.attrs.update(LABELS.flags() | {"data": "raters.judgements.labels:Labels"})
    return with_model(tree, rt.models.Pooled())


def with_model(result: xr.DataTree, model: rt.Model) -> xr.DataTree:
    result.attrs["model"] = rt.fitting.storage.to_json(model)
    return result


def votes_verbs(result):
    """Each verb that reads a result of votes, as a function of nothing."""
    return {
        "audit": lambda: rt.audit(MODEL, result, reference="crowd"),
        "predict": lambda: rt.predict(MODEL, result),
        "log_likelihood": lambda: rt.log_likelihood(MODEL, result),
        "suggest": lambda: rt.suggest(MODEL, result, POOL, policy=RANDOM),
        "start": lambda: rt.fit(MODEL, VOTES, rt.PGEM(), seed=0, start=result, progress=False),
    }


def labels_verbs(result):
    model = rt.models.Pooled()
    return {
        "predict": lambda: rt.predict(model, result),
        "log_likelihood": lambda: rt.log_likelihood(model, result),
        "start": lambda: rt.fit(model, LABELS, rt.PGEM(), seed=0, start=result, progress=False),
    }


def changed(group, **variables):
    """A change of variables of a group; None leaves one out."""

    def change(result):
        table = result[group].to_dataset()
        for name, make in variables.items():
            own = table[name]
            table = table.drop_vars(name)
            if make is not None:
                table = table.assign({name: make(own)})
        result[group] = xr.DataTree(table)

    return change


def attribute(name, value=None):
    def change(result):
        del result.attrs[name]
        if value is not None:
            result.attrs[name] = value

    return change


def group(name, table=None):
    def change(result):
        del result[name]
        if table is not None:
            result[name] = xr.DataTree(table)

    return change


def at_posterior(make):
    def change(result):
        result["posterior"] = xr.DataTree(make(result["posterior"].to_dataset()))

    return change


def at_classes(make):
    def change(result):
        result["classes"] = xr.DataTree(make(result["classes"].to_dataset()))

    return change


def as_text(own):
    return own.astype(str)


def renamed(own):
    return own.rename({own.dims[-1]: "zz"})


DRAWS = {
    "text": changed("posterior", reward=as_text),
    "another axis": changed("posterior", reward=renamed),
    "no site": changed("posterior", competence=None),
    "no chain": at_posterior(lambda table: table.drop_vars("chain")),
    "no draws": at_posterior(lambda table: table.isel(draw=slice(0, 0))),
    "other names": at_posterior(lambda table: table.assign_coords(item=["a", "b", "zz"])),
    "no posterior": group("posterior"),
}
DATA = {
    "no outcomes": group("observed_data"),
    "text as outcome": changed("observed_data", outcome=as_text),
    "outcome of NaN": changed("observed_data", outcome=lambda own: own * np.nan),
    "no codes": changed("constant_data", first_code=None),
    "codes of nobody": changed("constant_data", annotator_code=lambda own: own + 9),
    "no data": group("constant_data"),
    "items of JSON": attribute("items", "{"),
    "one item twice": attribute("items", '["a", "a", "b"]'),
    "no items": attribute("items"),
    "no annotators": attribute("annotators"),
    "no container": attribute("data"),
    "another container": attribute("data", "os:system"),
    "another model": attribute("model", rt.fitting.storage.to_json(rt.BTL())),
}


@pytest.mark.parametrize("change", [*DRAWS.values(), *DATA.values()], ids=[*DRAWS, *DATA])
def test_altered_results_of_votes(change):
    result = of_votes()
    change(result)
    for name, verb in votes_verbs(result).items():
        with pytest.raises(RatersError) as caught:
            verb()
        message = str(caught.value)
        assert caught.value.expected or "altered" in message, (name, message)
        assert len(message) <= 600, name


LABEL_CHANGES = {
    "no classes": group("classes"),
    "classes as text": changed("classes", responsibility=as_text),
    "classes of other items": at_classes(lambda table: table.assign_coords(item=[2, 1])),
    "classes of NaN": changed("classes", responsibility=lambda own: own * np.nan),
    "classes above 1": changed("classes", responsibility=lambda own: own * 9),
    "no item codes": changed("constant_data", item_code=None),
    "no items": attribute("items"),
    "no label": changed("observed_data", label_code=None),
    "no class": changed("posterior", prevalence=None),
    "names of others": at_posterior(lambda table: table.assign_coords(label=["q", "p"])),
}


@pytest.mark.parametrize("change", LABEL_CHANGES.values(), ids=LABEL_CHANGES)
def test_altered_results_of_labels(change):
    result = of_labels()
    change(result)
    for name, verb in labels_verbs(result).items():
        if name == "start" and change in list(LABEL_CHANGES.values())[:5]:
            continue  # Nothing starts from probabilities of classes.
        with pytest.raises(RatersError) as caught:
            verb()
        assert len(str(caught.value)) <= 600, name


UNIT = rt.ExtendedBTL(competence="unit", reward_scale=1.0, competence_spread=1.0)
INTACT = {"signed": (MODEL, of_votes()), "unit": (UNIT, with_model(of_votes(), UNIT))}
VALUES = {
    "one of NaN": ("signed", "reward", lambda own: own.where(own < own.max()), "1 of 120"),
    "infinite": ("signed", "competence", lambda own: own * np.inf, "80 of 80"),
    "below the support": ("unit", "competence", lambda own: own * 0 - 5, "80 of 80"),
    "above the support": ("unit", "competence", lambda own: own * 0 + 1.01, "80 of 80"),
}


@pytest.mark.parametrize(("which", "site", "make", "words"), VALUES.values(), ids=VALUES)
def test_values_that_no_fit_can_have(which, site, make, words, monkeypatch):
    model, result = INTACT[which][0], INTACT[which][1].copy(deep=True)
    result["posterior"]["competence"].values[:] = np.clip(result["posterior"]["competence"], 0, 1)
    audit = rt.audit(model, result, reference="crowd")
    changed("posterior", **{site: make})(result)
    monkeypatch.setattr(f"{__name__}.MODEL", model)
    verbs = votes_verbs(result) | {
        "report": lambda: rt.report(model, result, audit),
        "suggest by score": lambda: rt.suggest(model, result, POOL),
        "posterior": lambda: rt.acquisition.Posterior.of(model, result),
    }
    for name, verb in verbs.items():
        parameter = "start" if name == "start" else "result"
        with raises_about(DataError, parameter) as caught:
            verb()
        assert f"{words} values of {site!r}" in str(caught.value), name


def test_one_draw_is_enough_to_predict_and_for_nothing_else():
    result = of_votes().isel(chain=[0], draw=[0])
    assert rt.predict(MODEL, result).sizes["draw"] == 1
    assert rt.log_likelihood(MODEL, result)["log_likelihood"].sizes["draw"] == 1
    audit = rt.audit(MODEL, of_votes(), reference="crowd")
    assert "competence" in audit.table
    for verb in (
        lambda: rt.audit(MODEL, result, reference="crowd"),
        lambda: rt.suggest(MODEL, result, POOL),
        lambda: rt.acquisition.Posterior.of(MODEL, result),
    ):
        with raises_about(SettingError, "result") as caught:
            verb()
        assert "has 1 draw" in str(caught.value)


@pytest.mark.parametrize(
    "settings", [{}, {"policy": RANDOM, "stop": rt.acquisition.ExpectedTau(0.9)}]
)
def test_campaigns_need_draws(settings, tmp_path):
    with raises_about(SettingError, "backend"):
        rt.Campaign(tmp_path / "a.db", MODEL, POOL, backend=rt.PGEM(draws=0), **settings)
    assert not list(tmp_path.iterdir())


class Broken(rt.PGGibbs):
    """Draws of NaN, as of a fit that fails."""

    def run(self, program, key, **options):
        draws = super().run(program, key, **options)
        values = {name: value * np.nan for name, value in draws.values.items()}
        return draws._replace(values=values)


def test_a_fit_that_fails_warns_and_returns_what_verbs_refuse():
    with pytest.warns(rt.errors.ConvergenceWarning):
        result = rt.fit(MODEL, VOTES, Broken(draws=20, warmup=5, chains=2), seed=0, progress=False)
    assert result["posterior"]["reward"].isnull().all()
    with raises_about(DataError, "result"):
        rt.predict(MODEL, result)


def test_what_was_not_altered_is_read():
    assert rt.predict(MODEL, of_votes()).sizes["comparison"] == VOTES.num_comparisons
    assert rt.predict(rt.models.Pooled(), of_labels()).dims[-2:] == ("item", "true_class")


MODELS = (
    "",
    "{",
    '["a", "b"]',
    "NaN",
    '{"class": 3, "fields": {}}',
    '{"class": "os:system", "fields": {}}',
    '{"class": "raters.models.comparisons.btl:BTL"}',
    '{"class": "raters.models.comparisons.btl:BTL", "fields": []}',
    '{"class": "raters.models.comparisons.btl:BTL", "fields": {"nope": 1}}',
    '{"class": "raters.models.comparisons.btl:BTL", "fields": {"reward_scale": -1}}',
    '{"class": "raters.inference.svi:SVI", "fields": {}}',
    "[" * 100_000,
)


@pytest.mark.parametrize("text", MODELS, ids=lambda text: text[:60])
def test_models_that_a_result_cannot_have(text):
    result = of_votes()
    result.attrs["model"] = text
    with pytest.raises(RatersError, match=r"cannot rebuild the model|does not say") as caught:
        rt.fitting.result.model_of(result)
    assert len(str(caught.value)) <= 600


# ---------------------------------------------------------------- files


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Bytes of a stored result."""
    file = tmp_path_factory.mktemp("stored") / "r.nc"
    of_votes().to_netcdf(file)
    return file.read_bytes()


CONTENTS = {
    "all but the end": lambda whole: whole[:-100],
    "netCDF 3": lambda whole: b"CDF\x01junk",
    "JSON": lambda whole: json.dumps({"posterior": []}).encode(),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_files_that_are_no_result(content, stored, tmp_path):
    file = tmp_path / "r.nc"
    file.write_bytes(content(stored))
    with pytest.raises(RatersError, match="give what raters fit wrote") as caught:
        read_result(file)
    assert len(str(caught.value)) <= 600
