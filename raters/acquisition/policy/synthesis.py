"""Membership query synthesis: the features of the question whose answer would tell most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int
from scipy.optimize import minimize

from raters.acquisition.policy.described import Described, described
from raters.acquisition.policy.suggest import in_codes_of
from raters.acquisition.scoring import scores
from raters.acquisition.scoring.criteria import Bald, Criterion, Epig, ErrorReduction, Random
from raters.acquisition.scoring.posterior import Posterior, sample_of
from raters.errors import DataError, SettingError
from raters.errors.validation import checked, instance, is_list, numbers, whole
from raters.fitting.result import check_data
from raters.judgements.base import Judgements
from raters.judgements.names import match_names, name_list
from raters.model import Model
from raters.program import answer_probs, class_weights

# Points of a Sobol sequence that are scored before the climbs, and how many at a time.
_SCREENED, _AT_ONCE = 2048, 512

_UNTRACED = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.UnexpectedTracerError,
)


class Score(NamedTuple):
    """Score of questions by their features, and its slope at one point, both compiled."""

    values: Callable[[Float[Array, "question feature"]], Float[Array, " question"]]
    slope: Callable[[Float[Array, " feature"]], tuple[Float[Array, ""], Float[Array, " feature"]]]


class Climb(NamedTuple):
    """End of a climb: features, and the score there."""

    features: Float[np.ndarray, " feature"]
    score: float


@checked
def synthesize(
    model: Model[Any],
    result: xr.DataTree,
    questions: Judgements | None = None,
    *,
    bounds: Any = None,
    annotators: Any = None,
    criterion: Criterion | None = None,
    starts: int = 8,
    draws: int = 200,
    seed: int = 0,
) -> xr.Dataset:
    r"""Find the features of the question whose answer would tell most (membership query synthesis).

    Not one of a list of questions, but any point of a box of features is possible, such as a text
    that is yet to be written. The information is differentiated through the answer probabilities
    of the posterior draws,

    .. math:: \nabla_x I(y; \theta \mid x) = \nabla_x \Bigl[
              H\bigl(\mathbb{E}_\theta\, p(y \mid x, \theta)\bigr)
              - \mathbb{E}_\theta\, H\bigl(p(y \mid x, \theta)\bigr)\Bigr],

    and climbed by L-BFGS-B within the box, from the best of a Sobol sequence and the best real
    question.

    Parameters
    ----------
    model : Model
        One that reads features of questions, such as `ContextualBTL`, or of items, such as `Raykar`
        and `Yan`.
    result : xarray.DataTree
        Its fit, with draws.
    questions : Comparisons, optional
        Of comparisons the pairs whose features are sought, each with its annotator; needed for
        models that have rewards of items beside the features.
    bounds : array (feature, 2), or mapping, optional
        The box, in the units of the table: the lowest and highest value of each feature, in a
        mapping by name. Features of comparisons are differences of the first
        item and the second. Those without bounds stay within the range of the data.
    annotators : name or list, optional
        Who would be asked; everybody by default, each with a question of their own.
    criterion : Criterion, optional
        ``Bald()`` by default, or ``Epig()`` for the information about the answers to the questions
        of the data; for models without classes of items any with a gradient.
    starts : int
        Number of climbs for each annotator.
    draws : int
        Number of posterior draws to use.
    seed : int

    Returns
    -------
    xarray.Dataset
        With axes ``suggestion`` (best first) and ``feature``: ``features``, ``by``, ``score``,
        ``nearest`` (features of the nearest real question or item), its name (``nearest_item``, or
        ``nearest_first`` and ``nearest_second``), ``distance`` (root mean square of the differences
        of the features, each per standard deviation of the real ones), and ``nearest_score``, the
        score of a new question with those features, which need not lie within `bounds` and may then
        tell more. With `questions` also ``first`` and ``second``.

    Raises
    ------
    DataError
        When bounds are none, are of other features or turned round, or an annotator is unknown.
    SettingError
        When the model reads no features, the criterion has no gradient, or the result has one draw.

    Notes
    -----
    The score of a made-up item leaves out the information about its own true class, which nobody
    wants to know: classes are summed out by their probability given the features. With classes of
    annotators (types) that information counts, as in ``rt.suggest``.

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
    criterion = Bald() if criterion is None else criterion
    instance("criterion", criterion, Criterion, "a criterion", "rt.acquisition.Epig()")
    posterior = Posterior.of(model, result, draws=draws, seed=seed)
    if questions is not None:
        check_data(questions, "questions", model)
        questions = in_codes_of(posterior, questions)
    asked = described(posterior, questions, _codes(posterior, annotators))
    low, high = _box(asked, bounds)
    screened = low + (high - low) * qmc.Sobol(len(low), rng=seed).random(_SCREENED)
    points = np.concatenate([screened, np.clip(asked.real, low, high)])
    rows = []
    with jax.enable_x64(True):
        score = score_of(posterior, asked, criterion, seed)
        for place in range(asked.templates.num_rows):
            of_one = score(asked.templates.rows([place]))
            try:
                best = _climbed(of_one, points, low, high, starts)
            except _UNTRACED as error:  # A criterion computes with NumPy.
                raise _no_gradient(criterion) from error
            near = int(asked.distances(best.features).argmin())
            own = float(of_one.values(jnp.asarray(asked.real[[near]]))[0])
            rows.append((best, place, near, own))
    rows.sort(key=lambda row: -row[0].score)
    return _table(asked, rows)


def _codes(posterior: Posterior, annotators: Any) -> Int[np.ndarray, " annotator"]:
    """Codes of those who would be asked."""
    judges, judge = posterior.data.judges, posterior.data.judge
    if annotators is None:
        return np.arange(len(judges))
    names = tuple(name_list(annotators if is_list(annotators) else [annotators], "annotators"))
    if not names:
        raise DataError(
            parameter="annotators",
            problem="names nobody",
            expected="give a name, or leave it out for all",
            instead="annotators=['ann']",
        )
    return match_names(np.arange(len(names)), names, judges, judge)


def _box(
    asked: Described, bounds: Any
) -> tuple[Float[np.ndarray, " feature"], Float[np.ndarray, " feature"]]:
    """Lower and upper bounds of each feature; of the data where none are given."""
    names, box = asked.names, np.array(asked.range, float)
    if isinstance(bounds, Mapping):
        if unknown := [name for name in bounds if name not in names]:
            raise DataError(
                parameter="bounds",
                problem=f"has {unknown[0]!r}, which is no feature",
                expected=f"choose among {list(names)}",
            )
        for name, ends in bounds.items():
            pair = numbers("bounds", ends, f"{{{name!r}: (-1.0, 1.0)}}")
            if pair.shape != (2,):
                raise DataError(
                    parameter="bounds",
                    value=bounds,
                    problem=f"has {ends!r} for {name!r}",
                    expected="it must be a lower and an upper bound",
                    instead=f"bounds={{{name!r}: (-1.0, 1.0)}}",
                )
            box[names.index(name)] = pair
    elif bounds is not None:
        box = numbers("bounds", bounds, f"np.tile([-1.0, 1.0], ({len(names)}, 1))")
    if box.shape != (len(names), 2):
        raise DataError(
            parameter="bounds",
            problem=f"has shape {box.shape}",
            expected=f"it must be {(len(names), 2)}: a lower and an upper bound for each of"
            f" {', '.join(map(str, names))}",
        )
    if not np.isfinite(box).all() or (box[:, 0] > box[:, 1]).any():
        wrong = int(np.argmax(~np.isfinite(box).all(1) | ~(box[:, 0] <= box[:, 1])))
        raise DataError(
            parameter="bounds",
            problem=f"has {box[wrong].tolist()} for {names[wrong]!r}",
            expected="both must be finite, the lower one first",
        )
    return box[:, 0], box[:, 1]


# ---------------------------------------------------------------- the score


def score_of(
    posterior: Posterior, asked: Described, criterion: Criterion, seed: int
) -> Callable[[Any], Score]:
    """Function that gives the score of questions like a template, in JAX and compiled."""
    if isinstance(criterion, Random):
        raise _no_gradient(criterion)
    rng = np.random.default_rng(seed)
    if posterior.has_truth:
        function = _of_new_items(posterior, asked, criterion, rng)
    else:
        if posterior.program.latent is not None:
            posterior.responsibility()  # Computed once, and not while something is traced.
        reader = criterion.reader(posterior, posterior.data.questions(), rng)

        def function(template: Any, features: Float[Array, "question feature"]) -> Any:
            return reader(asked.with_features(template, features))

    def at_one(template: Any, features: Float[Array, " feature"]) -> Any:
        return function(template, features[None])[0]

    if isinstance(criterion, Epig | ErrorReduction) and not posterior.has_truth:
        # It looks at who is asked, which is then no argument of what is compiled.
        return lambda template: Score(
            jax.jit(partial(function, template)),
            jax.jit(jax.value_and_grad(partial(at_one, template))),
        )
    values, slope = jax.jit(function), jax.jit(jax.value_and_grad(at_one, argnums=1))

    def of_template(template: Any) -> Score:
        traced = jax.tree.map(jnp.asarray, template)
        return Score(partial(values, traced), partial(slope, traced))

    return of_template


def _of_new_items(
    posterior: Posterior, asked: Described, criterion: Criterion, rng: np.random.Generator
) -> Callable[[Any, Float[Array, "question feature"]], Float[Array, " question"]]:
    """Score of labels of items that are made up: their class is known by the features alone."""
    if not isinstance(criterion, Bald | Epig):
        raise SettingError(
            parameter="criterion",
            value=criterion,
            problem="is about items that there are, and this one is made up",
            expected="choose Bald() or Epig()",
        )
    draws = {
        name: jnp.asarray(np.reshape(value, (-1, *np.shape(value)[2:])))
        for name, value in posterior.draws.items()
    }
    weight, targets = jnp.asarray(posterior.weight), None
    if isinstance(criterion, Epig):
        others = sample_of(posterior.data.questions(), criterion.targets, rng)
        targets = posterior.answer_probs(others).table

    def score(template: Any, features: Float[Array, "question feature"]) -> Any:
        new = asked.with_features(template, features)
        answered = new.all_answered(jnp.asarray(new.listed_answers()[0]))

        def one(values: Any) -> Float[Array, "answer question"]:
            share = class_weights(posterior.model, answered, values)
            return (share * answer_probs(posterior.model, new, values)).sum(0)

        table = jax.lax.map(one, draws)
        table = table.reshape(*weight.shape, *table.shape[1:])
        return (
            scores.bald(table, weight) if targets is None else scores.epig(table, targets, weight)
        )

    return score


def _no_gradient(criterion: Criterion) -> SettingError:
    return SettingError(
        parameter="criterion",
        value=criterion,
        problem="has no gradient",
        expected="choose one that is computed from the answer probabilities, such as Bald() or"
        " Epig()",
    )


def _climbed(
    score: Score,
    points: Float[np.ndarray, "point feature"],
    low: Float[np.ndarray, " feature"],
    high: Float[np.ndarray, " feature"],
    starts: int,
) -> Climb:
    """The best end of climbs from the best points, or the best point."""
    parts = []
    for begin in range(0, len(points), _AT_ONCE):
        rows = np.minimum(np.arange(begin, begin + _AT_ONCE), len(points) - 1)
        parts.append(np.asarray(score.values(jnp.asarray(points[rows]))))
    values = np.concatenate(parts)[: len(points)]
    # Features on one scale: the box is the unit cube.
    width = np.where(high > low, high - low, 1.0)

    def lost(unit: Float[np.ndarray, " feature"]) -> tuple[float, Float[np.ndarray, " feature"]]:
        value, slope = score.slope(jnp.asarray(low + width * unit))
        return -float(value), -np.asarray(slope, float) * width

    first = int(values.argmax())
    best = Climb(points[first], float(values[first]))
    cube = [(0.0, 1.0 if above > below else 0.0) for below, above in zip(low, high, strict=True)]
    for start in np.argsort(-values, kind="stable")[:starts]:
        end = minimize(
            lost,
            (points[start] - low) / width,
            jac=True,
            method="L-BFGS-B",
            bounds=cube,
            options={"gtol": 1e-9, "ftol": 1e-14},
        )
        if -end.fun > best.score:
            best = Climb(np.clip(low + width * end.x, low, high), float(-end.fun))
    return best


def _table(asked: Described, rows: Sequence[tuple[Climb, int, int, float]]) -> xr.Dataset:
    """Table of the questions that were made up, best first."""
    axes = ("suggestion", "feature")
    near = np.array([row[2] for row in rows], int)
    features = np.stack([row[0].features for row in rows])
    columns: dict[str, Any] = {
        "features": (axes, features),
        "by": ("suggestion", asked.by([row[1] for row in rows])),
        "score": ("suggestion", np.array([row[0].score for row in rows])),
        "nearest": (axes, asked.real[near]),
    }
    columns |= {name: ("suggestion", one) for name, one in asked.named(near).items()}
    about = asked.about([row[1] for row in rows])
    pair = {name: ("suggestion", one) for name, one in about.items()}
    distance = np.array([asked.distances(x)[row] for x, row in zip(features, near, strict=True)])
    columns |= {
        "distance": ("suggestion", distance),
        "nearest_score": ("suggestion", np.array([row[3] for row in rows])),
    }
    return xr.Dataset(columns | pair, {"feature": list(asked.names)})
