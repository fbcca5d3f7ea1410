"""Suggestions of what to ask next: of a list of questions, or features of one that is made up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Shaped
from scipy.optimize import Bounds, minimize

from raters.acquisition.policy import Policy, Target
from raters.acquisition.posterior import Posterior
from raters.acquisition.questions import pool as pools
from raters.acquisition.scores import Bald, mean
from raters.errors import refuse, refuse_data
from raters.errors.validation import checked, numbers, whole
from raters.fitting.predict import recode
from raters.fitting.result import check_data, check_one_kind
from raters.judgements.base import Judgements
from raters.judgements.names import names_array, warn_data
from raters.model import Model
from raters.program import answer_probs, class_weights

# Below it a score is rounding: the answer informs about nothing under any draw.
_NOTHING = 1e-10
# Scores are estimated from draws: the highest of many scores of 200 draws is often noise. So all
# draws are used while there are no more probabilities of answers than this, and always some.
_PROBABILITIES, _MOST_DRAWS, _FEWEST_DRAWS = 20_000_000, 4000, 200


@checked
def suggest(
    model: Model[Any],
    result: xr.DataTree,
    candidates: Judgements,
    *,
    target: Target | None = None,
    policy: Policy | None = None,
    batch_size: int = 10,
    draws: int | None = None,
    seed: int = 0,
) -> xr.Dataset:
    r"""Suggest the questions to ask next, and the annotators to ask.

    By default the score is the expected reduction, by an answer, of the posterior variance of the
    order of its two items, or for labels of the true class: a guesser's answer scores 0. Within a
    batch the score is conditional on the questions chosen before. `Policy` has further targets,
    rules for batches, and rules for annotators.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    candidates : Judgements
        Questions to choose from: ``Candidates.pairs(votes)``, ``Candidates.labels(labels)``, or any
        comparisons without regard to their outcomes.
    target : str, optional
        Short for ``policy=rt.Policy(target=...)``.
    policy : Policy, optional
    batch_size : int
    draws : int, optional
        Number of posterior draws to use. Without it, up to 4,000, and fewer for more than some
        thousand candidates: 200 at least.
    seed : int
        Seed of the choice of draws, and of a random policy.

    Returns
    -------
    xarray.Dataset
        With axis ``suggestion``, in the order of choice: ``first``, ``second``, ``by`` (names),
        ``score`` (of the question alone; a later question may have a higher one, of which those
        before it leave less), ``p_win`` (posterior mean probability that the first item wins). For
        labels: ``item``, ``by``, ``score``, and ``label``, the most probable answer, with its
        probability ``p_label``.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.crowd(num_items=6, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> asked = rt.suggest(rt.BTL(), result, rt.Candidates.pairs(votes), batch_size=3)
    >>> asked.sizes["suggestion"], list(asked)
    (3, ['first', 'second', 'by', 'score', 'p_win'])
    """
    whole("batch_size", batch_size)
    if draws is not None:
        whole("draws", draws, least=2)
    check_one_kind(model)
    check_data(candidates, "candidates", model)
    if target is not None and policy is not None:
        refuse("target", target, "and `policy` both say what is wanted", "give one of them")
    policy = policy or Policy(target=target)
    if draws is None:
        answers = max(candidates.num_rows * len(candidates.listed_answers()), 1)
        draws = int(np.clip(_PROBABILITIES // answers, _FEWEST_DRAWS, _MOST_DRAWS))
    posterior = Posterior.of(model, result, draws=draws, seed=seed)
    policy.check_names(posterior.data.judges)
    if candidates.unit == candidates.row:
        questions: Any = recode(posterior.program, candidates.unanswered())
    else:
        questions = candidates.asked_of(posterior.data)
    chosen = policy.choose(posterior, questions, batch_size, seed=seed)
    if abs(chosen.highest) < _NOTHING:
        warn_data("all questions score 0: no answer would change anything of what is wanted")
    elif not len(chosen.rows):
        warn_data("nobody may be asked: the quotas are used up")
    table = _predicted(posterior, questions.rows(chosen.rows))
    table["score"] = chosen.score
    order = dict.fromkeys([*candidates.question_names(), "score", *table])
    return xr.Dataset({name: ("suggestion", table[name]) for name in order})


def _predicted(posterior: Posterior, questions: Any) -> dict[str, Shaped[np.ndarray, " question"]]:
    """Columns of the questions by name, with the predicted answers."""
    answers = questions.listed_answers()
    probs = np.zeros((len(answers), 0))
    if questions.num_rows:
        probs = posterior.by_pieces(questions, lambda piece: mean(*posterior.answer_probs(piece)))
    names: dict[str, np.ndarray] = questions.question_names()
    if questions.success is not None:
        name, outcome = questions.success
        return names | {name: probs[answers.tolist().index(outcome)]}
    best = answers[probs.argmax(0)].tolist()
    if questions.answer in questions.axes:  # names keep their type
        coords = questions.coords[questions.axes[questions.answer]]
        words = names_array(coords)[np.array(best, int)]
    else:
        words = np.asarray([questions.listed_word(*entry) for entry in enumerate(best)])
    return names | {questions.predicted: words, f"p_{questions.predicted}": probs.max(0)}


# ---------------------------------------------------------------- questions that are made up

# Points of a Sobol sequence that are scored before the climbs, and how many at a time.
_SCREENED, _AT_ONCE = 2048, 512

Point = Float[np.ndarray, " feature"]
Points = Float[Array, "question feature"]


@checked
def synthesize(
    model: Model[Any],
    result: xr.DataTree,
    *,
    bounds: Mapping[Any, Any] | None = None,
    annotators: Any = None,
    starts: int = 8,
    draws: int = 200,
    seed: int = 0,
) -> xr.Dataset:
    r"""Find the features of the question whose answer would tell most (membership query synthesis).

    Not one of a list of questions, but any point of a box of features is possible, such as a text
    that is yet to be written. The information about all parameters (`Bald`) is differentiated
    through the answer probabilities of the posterior draws, and climbed by L-BFGS-B within the box,
    from the best of a Sobol sequence and the best real question. The score of a made-up item leaves
    out the information about its own true class, which nobody wants to know.

    Parameters
    ----------
    model : Model
        One that reads features of questions, such as `ContextualBTL`, or of items, such as `Raykar`
        and `Yan`, and has no values of each item beside them.
    result : xarray.DataTree
    bounds : mapping, optional
        The lowest and highest value of features, by name. Features of comparisons are differences
        of the first item and the second. Those without bounds stay within the range of the data.
    annotators : name or list, optional
        Who would be asked; everybody by default, each with a question of their own.
    starts : int
        Number of climbs for each annotator.
    draws : int
        Number of posterior draws to use.
    seed : int

    Returns
    -------
    xarray.Dataset
        With axes ``suggestion`` (best first) and ``feature``: ``features``, ``by``, ``score``, and
        of the nearest real question or item ``nearest`` (its features), its names, ``distance``
        (in standard deviations) and ``nearest_score``.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=6, num_annotators=2, num_votes=200, seed=0)
    >>> table = {"item": range(6), "length": [1, 4, 2, 2, 0, 1], "warmth": [0, 1, 0, 2, 1, 2]}
    >>> votes, model = votes.with_features(table, item="item"), rt.models.ContextualBTL(num_types=1)
    >>> result = rt.fit(model, votes, rt.PGEM(draws=200), seed=0, progress=False)
    >>> best = rt.acquisition.synthesize(model, result, bounds={"length": (-3, 3)}, starts=2)
    >>> dict(best.sizes), bool((best["score"] >= best["nearest_score"]).all())
    ({'suggestion': 2, 'feature': 2}, True)
    """
    from scipy.stats import qmc

    whole("starts", starts)
    whole("draws", draws, least=2)
    posterior = Posterior.of(model, result, draws=draws, seed=seed)
    data = posterior.data
    judges = pools.codes_of(annotators, data.judges, data.judge, "annotators")
    asked = _described(posterior)
    low, high = _box(asked, bounds or {})
    screened = low + (high - low) * qmc.Sobol(len(low), rng=seed).random(_SCREENED)
    points = np.concatenate([screened, np.clip(asked.real, low, high)])
    spread = asked.real.std(0)
    scale = np.where(spread > 0, spread, 1.0)
    rows = []
    with jax.enable_x64(True):
        functions = score_of(posterior, asked)
        for judge in judges.tolist():
            values, slope = (partial(function, judge) for function in functions)
            best, value = _climbed((values, slope), points, low, high, starts)
            distance = np.sqrt(np.square((asked.real - best) / scale).mean(1))
            near = int(distance.argmin())
            nearest_score = float(values(jnp.asarray(asked.real[[near]]))[0])
            rows.append((value, best, judge, near, distance[near], nearest_score))
    rows.sort(key=lambda row: -row[0])
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    scores, features, who, nears, distances, nearest_scores = columns
    axes = ("suggestion", "feature")
    table = {"by": names_array(data.judges)[who], "score": scores}
    table |= {name: names[nears] for name, names in asked.nearest.items()}
    table |= {"distance": distances, "nearest_score": nearest_scores}
    both = {"features": (axes, features), "nearest": (axes, asked.real[nears])}
    each = {name: ("suggestion", column) for name, column in table.items()}
    return xr.Dataset(both | each, {"feature": list(asked.names)})


def _box(asked: _Described, bounds: Mapping[Any, Any]) -> tuple[Point, Point]:
    """Lower and upper bounds of each feature; of the data where none are given."""
    names, ends = asked.names, np.stack([asked.real.min(0), asked.real.max(0)], 1)
    such = f"{{{names[0]!r}: (-1.0, 1.0)}}"
    given = dict(zip(names, ends.tolist(), strict=True)) | dict(bounds)
    box = numbers("bounds", list(given.values()), such)
    right = box.shape == (len(names), 2) and np.isfinite(box).all()
    if not right or (box[:, 0] > box[:, 1]).any():
        expected = f"bound each of {', '.join(map(str, names))} from below and above"
        refuse_data("bounds", bounds, expected=expected, instead=such)
    return box[:, 0], box[:, 1]


# ---------------------------------------------------------------- questions with chosen features


class _Described(NamedTuple):
    """Questions with features that can be chosen: `made_up` for a judge at some points, and `real`
    features with the names of the `nearest`."""

    names: tuple[Any, ...]
    real: Float[np.ndarray, "real feature"]
    made_up: Callable[[Any, Points], Any]
    nearest: dict[str, np.ndarray]


def _described(posterior: Posterior) -> _Described:
    """Questions of the fitted kind with features to be chosen."""
    data, sites = posterior.data, posterior.program.sites
    axes = data.arrays().get("features", ())
    known = getattr(data, "features", None) if axes else None
    reads = any("feature" in site.dims for site in sites.values())
    of_items, of_rows = axes[:1] == ("unit",), axes[:1] == (data.row,) and data.pair is not None
    of_each = [site for site in sites.values() if {"item", data.unit} & set(site.dims)]
    instead = "rt.models.ContextualBTL() or rt.Raykar()"
    if known is None or not reads or not (of_rows or of_items):
        problem = "reads no features of questions"
    elif any(data.judge not in site.dims for site in of_each):
        problem = "has values of each item, which a made-up item has not"
    else:
        return _of_items(data) if of_items else _of_rows(data)
    expected = "choose one of features alone"
    return refuse("model", posterior.model, problem, expected, instead=instead)


def _of_items(data: Any) -> _Described:
    """New items; features are without the intercept, and as in the table."""
    centre, scale = (np.asarray(values, float)[1:] for values in (data.centre, data.scale))
    first = dataclasses.replace(data.rows([0]), label=None, count=None, truth=None)

    def made_up(judge: Any, features: Points) -> Any:
        number = len(features)
        table = jnp.concatenate([jnp.ones((number, 1)), (features - centre) / scale], 1)
        one_each = {"items": tuple(range(number)), "most": 1, "even": True, "features": table}
        one_each |= dict.fromkeys(("group", "unit_code"), jnp.arange(number))
        return dataclasses.replace(first, annotator=jnp.full(number, judge), **one_each)

    real = np.asarray(data.features, float)[:, 1:] * scale + centre
    nearest = {"nearest_item": names_array(data.items)}
    return _Described(data.feature_names[1:], real, made_up, nearest)


def _of_rows(data: Any) -> _Described:
    """New comparisons."""
    asked = data.questions()
    real = np.asarray(asked.features, float)
    if asked.exchangeable:  # A pair and its mirror image are one question.
        real, asked = np.concatenate([real, -real]), asked.joined(asked)

    def made_up(judge: Any, features: Points) -> Any:
        number = len(features)
        first = dataclasses.replace(data.rows(np.zeros(number, int)).unanswered(), count=None)
        return dataclasses.replace(first, annotator=jnp.full(number, judge), features=features)

    nearest = {f"nearest_{side}": asked.question_names()[side] for side in asked.pair}
    return _Described(data.feature_names, real, made_up, nearest)


# ---------------------------------------------------------------- the score and its climb


def score_of(posterior: Posterior, asked: _Described) -> tuple[Any, Any]:
    """Score of questions to a judge by their features; its value and slope at a point; compiled."""
    model, weight, has_truth = posterior.model, posterior.weight, posterior.program.has_truth
    if posterior.program.latent is not None and not has_truth:
        posterior.responsibility()  # Computed once, and not while something is traced.

    def score(judge: Any, features: Points) -> Any:
        new = asked.made_up(judge, features)
        if not has_truth:
            return Bald.formula(*posterior.answer_probs(new, by_class=True))
        # The class of an item that is made up is known by the features alone.
        answered = new.all_answered(jnp.asarray(new.listed_answers()[0]))

        def under(values: Any) -> Float[Array, "answer question"]:
            share = class_weights(model, answered, values)
            return (share * answer_probs(model, new, values)).sum(0)

        return Bald.formula(jax.lax.map(under, posterior.draws), jnp.asarray(weight))

    def at_one(judge: Any, features: Float[Array, " feature"]) -> Any:
        return score(judge, features[None])[0]

    return jax.jit(score), jax.jit(jax.value_and_grad(at_one, argnums=1))


def _climbed(
    score_at: tuple[Any, Any], points: np.ndarray, low: Point, high: Point, starts: int
) -> tuple[Point, float]:
    """The best end of climbs from the best points, or the best point, and the score there."""
    values, slope = score_at
    pieces = np.array_split(points, -(-len(points) // _AT_ONCE))
    score = np.concatenate([values(jnp.asarray(piece)) for piece in pieces])
    # Features on one scale: the box is the unit cube.
    width = np.where(high > low, high - low, 1.0)

    def lost(unit: Point) -> tuple[float, Point]:
        value, gradient = slope(jnp.asarray(low + width * unit))
        return -float(value), -np.asarray(gradient, float) * width

    best, highest = points[score.argmax()], float(score.max())
    options = {"bounds": Bounds(0.0, (high > low).astype(float)), "method": "L-BFGS-B", "jac": True}
    for start in np.argsort(-score, kind="stable")[:starts]:
        unit = (points[start] - low) / width
        end = minimize(lost, unit, **options, options={"gtol": 1e-9, "ftol": 1e-14})
        if -end.fun > highest:
            best, highest = np.clip(low + width * end.x, low, high), float(-end.fun)
    return best, highest
