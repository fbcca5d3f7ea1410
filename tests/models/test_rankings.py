"""Models of rankings: warnings, limits, and what they have in common with models of votes."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import raters as rt
from raters.errors import BackendError, DataError, SettingError
from raters.program import pointwise_log_likelihood
from tests.refusals import raises_about

PAIRS = {"best": ["x", "y", "x"], "next": ["y", "z", "z"], "who": ["ann", "ann", "bob"]}


def test_rankings_of_two_are_votes() -> None:
    rankings = rt.Rankings.from_wide(
        PAIRS, places=["best", "next"], annotator="who", unranked="not offered", aggregate=False
    )
    votes = rt.Comparisons.from_frame(
        PAIRS, winner="best", loser="next", annotator="who", aggregate=False
    )
    worth, competence = np.array([0.3, -1.0, 0.6]), np.array([0.7, -0.4])
    ours = {"worth": worth, "competence": competence}
    theirs = {"reward": worth, "competence": competence}
    with jax.enable_x64(True):
        for model, other in (
            (rt.PlackettLuce(1.0), rt.BTL(1.0)),
            (
                rt.ExtendedPlackettLuce(worth_scale=1.0),
                rt.ExtendedBTL(competence="signed", reward_scale=1.0),
            ),
        ):
            one = pointwise_log_likelihood(model, rankings, ours)
            two = pointwise_log_likelihood(other, votes, theirs)
            np.testing.assert_allclose(one, two, rtol=1e-12)
        by_type, share = np.stack([worth, -worth], -1), {"type_weight": np.array([0.3, 0.7])}
        one = pointwise_log_likelihood(
            rt.models.MixturePlackettLuce(worth_scale=1.0), rankings, {"worth": by_type} | share
        )
        two = pointwise_log_likelihood(
            rt.MixtureBTL(reward_scale=1.0), votes, {"reward": by_type} | share
        )
        np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.slow
def test_choices_of_the_stages_have_the_likelihood_of_the_rankings(ranked) -> None:
    """Of one type, and of two: the product over the places is a product over choices."""
    rng = np.random.default_rng(0)
    worth = rng.normal(size=(5, 2))
    choices = ranked.stages()
    with jax.enable_x64(True):
        own = np.stack(
            [
                pointwise_log_likelihood(rt.PlackettLuce(1.0), ranked, {"worth": each})
                for each in worth.T
            ],
            axis=1,
        )
        logit = rt.MultinomialLogit(features=False)
        one = pointwise_log_likelihood(logit, choices, {"constant": worth[:, 0]})
        np.testing.assert_allclose(one.sum(), own[:, 0].sum(), rtol=1e-10)
        share = np.array([0.3, 0.7])
        types = rt.models.LatentClassLogit(features=False)
        sites = {"constant": worth, "type_weight": share}
        mixed = pointwise_log_likelihood(types, choices, sites)
        sites = {"worth": worth, "type_weight": share}
        again = pointwise_log_likelihood(
            rt.models.MixturePlackettLuce(worth_scale=1.0), ranked, sites
        )
    of_annotator = np.zeros((3, 2))
    np.add.at(of_annotator, ranked.annotator, own)
    expected = np.logaddexp.reduce(of_annotator + np.log(share), axis=1)
    np.testing.assert_allclose(np.sort(mixed), np.sort(expected), rtol=1e-10)
    np.testing.assert_allclose(again, expected, rtol=1e-10)


def races() -> rt.Rankings:
    """Of four drivers one is always last, and one is met by nobody else."""
    table = {"a": ["x", "y", "v"], "b": ["y", "x", "w"], "c": ["z", "z", None]}
    return rt.Rankings.from_wide(table, places=["a", "b", "c"], unranked="not offered")


def test_items_without_a_most_likely_worth_are_named_under_a_wide_prior() -> None:
    (text,) = rt.PlackettLuce(worth_scale=100.0).data_warnings(races())
    assert text.startswith("3 item(s) have no most likely worth")
    assert ": v, w, z; leave them out" in text
    for model in (rt.PlackettLuce(), rt.PlackettLuce(worth_scale=1.0)):
        assert model.data_warnings(races()) == ()


def test_items_below_all_count_as_behind() -> None:
    table = {"a": ["x", "y"], "b": ["y", "x"]}
    full = rt.Rankings.from_wide(table, places=["a", "b"], unranked="below", items=["x", "y", "z"])
    (text,) = rt.PlackettLuce(worth_scale=100.0).data_warnings(full)
    assert "1 item(s)" in text
    assert ": z;" in text


def best_and_worst(*rows: str, items: str = "vwxyz") -> rt.Rankings:
    """Answers of one annotator each, such as ``"x>yz>w"``: the best, the others, and the worst."""
    parts = [row.split(">") for row in rows]
    shown = ["".join(part) for part in parts]
    table = {f"i{n}": [(names + "     ")[n].strip() for names in shown] for n in range(5)}
    table |= {"best": [part[0] for part in parts], "worst": [part[-1] for part in parts]}
    return rt.Rankings.from_best_worst(
        table, offered=["i*"], best="best", worst="worst", items=sorted(items)
    )


def test_the_worst_is_behind_all_the_others() -> None:
    """From x to y and z, on to w, and back: v alone is behind nobody. Where the best alone counts,
    y and z are ahead of nobody either."""
    model, rows = rt.PlackettLuce(worth_scale=100.0), ("x>yz>w", "w>z>x")
    assert model.data_warnings(best_and_worst(*rows, items="wxyz")) == ()
    answers = best_and_worst(*rows, "v>yz>x")
    (text,) = model.data_warnings(answers)
    assert text.startswith("1 item(s) have no most likely worth")
    assert ": v; leave them out" in text
    (text,) = model.data_warnings(answers.without_worst())
    assert text.startswith("3 item(s)")


def test_a_start_counts_who_is_ahead() -> None:
    """Of x > y, z > w: x beats three, y and z lose one and win one, w loses three."""
    start = rt.PlackettLuce(worth_scale=1.0).start(best_and_worst("x>yz>w", items="wxyz"))
    odds = np.log(np.array([1 / 4, 4 / 1, 2 / 2, 2 / 2]))
    np.testing.assert_allclose(start["worth"], odds - odds.mean())


def test_the_likelihood_of_a_small_table_by_hand() -> None:
    """softmax(βu) of the best times softmax(−βu) of the worst of the rest; the third row names the
    best alone."""
    table = {
        "a": ["x", "y", "z"],
        "b": ["y", "z", "x"],
        "c": ["z", "w", None],
        "d": ["w", None, None],
        "best": ["x", "z", "z"],
        "worst": ["w", "y", None],
        "who": ["ann", "bob", "bob"],
    }
    data = rt.Rankings.from_best_worst(
        table, offered=list("abcd"), best="best", worst="worst", annotator="who"
    )
    worth, competence = {"w": -1.0, "x": 0.5, "y": 0.2, "z": 0.3}, {"ann": 1.5, "bob": -0.5}

    def chosen(who: str, name: str, among: str, sign: int = 1) -> float:
        utility = {item: sign * competence[who] * worth[item] for item in among}
        return utility[name] - np.log(np.exp(list(utility.values())).sum())

    by_hand = {
        ("ann", 4): chosen("ann", "x", "wxyz") + chosen("ann", "w", "wyz", -1),
        ("bob", 3): chosen("bob", "z", "wyz") + chosen("bob", "y", "wy", -1),
        ("bob", 2): chosen("bob", "z", "xz"),
    }
    sites = {"worth": np.array([worth[name] for name in data.items])}
    sites["competence"] = np.array([competence[name] for name in data.annotators])
    with jax.enable_x64(True):
        log = pointwise_log_likelihood(rt.ExtendedPlackettLuce(worth_scale=1.0), data, sites)
    sizes = (data.offered >= 0).sum(1).tolist()
    for row, value in enumerate(np.asarray(log).tolist()):
        key = (data.annotators[data.annotator[row]], sizes[row])
        assert value == pytest.approx(by_hand[key], rel=1e-12)


def test_predictions_of_the_first_do_not_depend_on_the_worst(ranked_fit, ranked) -> None:
    asked = {"size": 3, "depth": 1, "annotators": ["who 1"], "again": True}
    one, other = (
        rt.predict(*ranked_fit, rt.Candidates.sets(ranked, **asked, lowest=lowest))
        for lowest in (False, True)
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_competences_of_a_single_annotator_are_warned_of() -> None:
    alone = races().take(slice(0, 1))
    assert "by one annotator" in rt.ExtendedPlackettLuce().data_warnings(alone)[0]


@pytest.mark.parametrize("setting", [{"worth_scale": 0.0}, {"competence": "any"}])
def test_settings_out_of_range_are_refused(setting) -> None:
    with pytest.raises(SettingError):
        rt.ExtendedPlackettLuce(**setting)


def test_predictions_are_of_the_first_place(ranked_fit, ranked) -> None:
    probability = rt.predict(*ranked_fit)
    assert probability.dims == ("chain", "draw", "answer", "ranking")
    assert probability["answer"].values.tolist() == list(ranked.items)
    np.testing.assert_allclose(probability.sum("answer"), 1, rtol=1e-5)
    offered = (ranked.offered[:, :, None] == np.arange(5)).any(1)
    assert (offered == (probability.values > 0).all((0, 1)).T).all()


def test_the_first_of_two_is_their_order(ranked_fit, ranked) -> None:
    """By the worths and competences of each draw."""
    model, result = ranked_fit
    pairs = rt.Candidates.sets(ranked, size=2, annotators=["who 1"], items=["item 3", "item 1"])
    found = rt.predict(model, result, pairs).sel(answer="item 3").isel(ranking=0)
    posterior = result["posterior"]
    ahead = posterior["worth"].sel(item="item 3") - posterior["worth"].sel(item="item 1")
    logits = posterior["competence"].sel(annotator="who 1") * ahead
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-logits)), rtol=1e-4)


def test_outcomes_of_orders_are_no_numbers(ranked_fit) -> None:
    for groups, by in ((("posterior_predictive",), None), (("log_likelihood",), "ranking")):
        with pytest.raises(DataError, match=r"as many answers as there are orders.*rt\.simulate"):
            rt.fitting.with_groups(*ranked_fit, *groups, by=by)
    with pytest.raises(DataError, match="not compared answer by answer"):
        rt.checking.dependence(*ranked_fit)


@pytest.fixture(scope="module")
def of_two_tastes() -> tuple[rt.Rankings, np.ndarray]:
    """Rankings of five teas by 24 people, three each, of whom one in three likes the opposite."""
    rng, worth = np.random.default_rng(0), np.array([2.0, 1.0, 0.0, -1.0, -2.0])
    taste = (np.arange(24) % 3 == 0).astype(int)
    utility = np.where(taste[:, None] == 1, -worth, worth)[np.repeat(np.arange(24), 3)]
    order = np.argsort(-utility - rng.gumbel(size=utility.shape), axis=1)
    table = {f"pos{place}": [f"tea {code}" for code in order[:, place]] for place in range(5)}
    who = {"who": [f"person {code:02d}" for code in np.repeat(np.arange(24), 3)]}
    return rt.Rankings.from_wide(table | who, places=["pos*"], annotator="who"), taste


@pytest.mark.slow
def test_planted_types_of_rankers_are_found(of_two_tastes, fit_quietly) -> None:
    rankings, taste = of_two_tastes
    result = fit_quietly(
        rt.models.MixturePlackettLuce(worth_scale=1.5), rankings, rt.PGEM(draws=100)
    )
    likeliest = result["types"]["responsibility"].values.argmax(1)
    np.testing.assert_array_equal(likeliest, taste)
    worth = result["mode"]["worth"]
    assert worth.sel(type=0).to_series().idxmax() == "tea 0"
    assert worth.sel(type=1).to_series().idxmax() == "tea 4"


def test_starts_of_types_are_of_those_who_rank_alike(of_two_tastes) -> None:
    rankings, _ = of_two_tastes
    start = rt.models.MixturePlackettLuce(worth_scale=1.0).start(rankings)
    share = np.sort(np.asarray(start["type_weight"]))
    np.testing.assert_allclose(share, [9 / 26, 17 / 26], rtol=1e-6)  # One more of each.
    assert np.corrcoef(np.asarray(start["worth"]).T)[0, 1] < -0.9


def test_a_single_choice_says_little_of_a_type(of_two_tastes) -> None:
    rankings, _ = of_two_tastes
    model = rt.models.MixturePlackettLuce()
    assert model.data_warnings(rankings) == ()
    table = {"best": ["x", "y"], "next": ["y", "x"], "who": ["ann", "bob"]}
    pairs = rt.Rankings.from_wide(
        table, places=["best", "next"], annotator="who", unranked="not offered"
    )
    assert "every annotator has a single choice" in model.data_warnings(pairs)[0]
    # The best and the worst of three are two choices.
    assert model.data_warnings(best_and_worst("x>yz>w", "w>z>x")) == ()


def test_more_types_than_rankers_are_refused(of_two_tastes) -> None:
    rankings, _ = of_two_tastes
    with raises_about(BackendError, "num_types", 25):
        rt.fit(rt.models.MixturePlackettLuce(num_types=25), rankings, seed=0, progress=False)
