"""Crowds of known truth: labels, ratings, rankings, choices, responses and demonstrations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.special import expit

from raters.errors import refuse
from raters.errors.validation import at_most, checked, positive, share, whole
from raters.judgements.answers import MOST_LEVELS, Ratings, Responses
from raters.judgements.choices import Choices
from raters.judgements.demonstrations import Demonstrations
from raters.judgements.labels import Labels
from raters.judgements.mdp import MDP
from raters.judgements.rankings import Rankings
from raters.models.demonstrations.soft_policy import Dynamics, log_soft_policy

# Values drawn at most, which take about a gigabyte.
_MOST = 100_000_000
# Kinds of annotators whose names are not those of their shares without an "s".
_KINDS = {"careless": "careless", "adversaries": "adversary"}

# The generating values, by the names that the models give them.
Truth = dict[str, np.ndarray]
Rng = np.random.Generator
PerAnnotator = Shaped[np.ndarray, " annotator"]
Codes = Int[np.ndarray, " row"]


def check_sizes(least: int = 1, amount: int = 0, **sizes: int) -> None:
    """Check whole numbers of at least `least`, and that memory holds them, and so many values."""
    for name, size in sizes.items():
        whole(name, size, least)
        if (number := max(size, amount)) > _MOST:
            refuse(name, size, f"makes {number:,} values", f"there may be {_MOST:,} at most")


def draw_kinds(rng: Rng, num_annotators: int, **shares: float) -> PerAnnotator:
    """Draw the kind of each annotator: these shares of each kind, and the others competent."""
    if min(shares.values()) < 0 or sum(shares.values()) >= 1:
        others = ", ".join(f"`{other}` {share:g}" for other, share in shares.items())
        expected = "shares must not be negative, and must leave someone competent"
        refuse(next(iter(shares)), problem=f"is not possible ({others})", expected=expected)
    kinds = np.full(num_annotators, "competent", object)
    ends = np.cumsum([0, *(round(part * num_annotators) for part in shares.values())])
    for name, begin, end in zip(shares, ends, ends[1:], strict=False):
        kinds[begin:end] = _KINDS.get(name, name.removesuffix("s"))
    return rng.permutation(kinds)


def _read(container: Any, names: Mapping[str, Any], **table: np.ndarray) -> Any:
    """Judgements of columns by role, with these names, or so many."""
    named = {role: range(of) if isinstance(of, int) else of for role, of in names.items()}
    return container.from_frame(table, **{role: role for role in table}, **named)


class GeneratedLabels(NamedTuple):
    labels: Labels
    truth: Truth


class GeneratedRatings(NamedTuple):
    ratings: Ratings
    truth: Truth


class GeneratedRankings(NamedTuple):
    rankings: Rankings
    truth: Truth


class GeneratedChoices(NamedTuple):
    choices: Choices
    truth: Truth


class GeneratedResponses(NamedTuple):
    responses: Responses
    truth: Truth


class GeneratedDemonstrations(NamedTuple):
    demonstrations: Demonstrations
    truth: Truth


@checked
def label_crowd(
    num_items: int = 200,
    num_annotators: int = 20,
    labels_per_item: int = 5,
    num_classes: int = 3,
    *,
    seed: int,
    accuracy: float = 0.75,
    spammers: float = 0.1,
    adversaries: float = 0.0,
    num_features: int = 0,
) -> GeneratedLabels:
    """Generate labels by a crowd with spammers and adversaries in it, under `DawidSkene`.

    Each item is labelled by random annotators. Competent annotators have confusion matrices with
    diagonals around `accuracy`. A spammer's labels have the same distribution whatever the true
    class. An adversary gives each class the label of the next one, as reliably as a competent
    annotator gives the right label.

    Parameters
    ----------
    num_items, num_annotators, labels_per_item, num_classes : int
        At least 2 classes, 1 of the others, and as many annotators as labels per item.
    seed : int
    accuracy : float
        Mean diagonal of the competent annotators' confusion matrices.
    spammers, adversaries : float
        Shares of the annotators, not negative and with a sum below 1.
    num_features : int
        Number of features of the items, normal around a centre of each class; none by default.

    Returns
    -------
    tuple of Labels and dict
        ``labels``, and ``truth`` with ``true_class`` (item; codes), ``confusion`` (annotator, true
        class, label), ``prevalence`` (class), and ``kind`` (annotator): "competent", "spammer" or
        "adversary".

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(seed=0)
    >>> labels.num_labels, int((truth["kind"] == "spammer").sum())
    (1000, 2)
    """
    check_sizes(amount=num_items * max(labels_per_item, num_features), num_items=num_items)
    check_sizes(num_annotators=num_annotators, labels_per_item=labels_per_item)
    check_sizes(2, num_annotators * num_classes**2, num_classes=num_classes)
    check_sizes(0, num_features=num_features)
    share("accuracy", accuracy)
    at_most("labels_per_item", labels_per_item, num_annotators, "annotators")
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.full(num_classes, 5.0))
    true_class = rng.choice(num_classes, num_items, p=prevalence)
    kind = draw_kinds(rng, num_annotators, spammers=spammers, adversaries=adversaries)
    confusion = np.stack([_confusion(rng, each, num_classes, accuracy) for each in kind])
    item, annotator = _asked(rng, num_items, num_annotators, labels_per_item)
    cumulative = confusion[annotator, true_class[item]].cumsum(1)
    # At most the last class, since rounding may leave the last sum below 1.
    label = np.minimum((rng.random(len(item))[:, None] > cumulative).sum(1), num_classes - 1)
    names = {"items": num_items, "annotators": num_annotators, "classes": num_classes}
    labels = _read(Labels, names, item=item, annotator=annotator, label=label)
    if num_features:
        centre = rng.normal(scale=1.5, size=(num_classes, num_features))
        noise = rng.normal(size=(num_items, num_features))
        labels = labels.with_features(centre[true_class] + noise)
    truth = {"true_class": true_class, "confusion": confusion, "prevalence": prevalence}
    return GeneratedLabels(labels, truth | {"kind": kind})


def _confusion(
    rng: Rng, kind: str, num_classes: int, accuracy: float
) -> Float[np.ndarray, "true_class label"]:
    """Draw an annotator's confusion matrix."""
    if kind == "spammer":
        return np.tile(rng.dirichlet(np.ones(num_classes)), (num_classes, 1))
    usual = np.roll(np.eye(num_classes), kind == "adversary", axis=1)
    mean = accuracy * usual + (1 - accuracy) * (1 - usual) / (num_classes - 1)
    return np.stack([rng.dirichlet(10 * row) for row in mean])


def _asked(rng: Rng, num_items: int, num_annotators: int, each: int) -> tuple[Codes, Codes]:
    """Items and random annotators of them, a row for each judgement."""
    annotator = np.argsort(rng.random((num_items, num_annotators)), axis=1)[:, :each]
    return np.repeat(np.arange(num_items), each), annotator.ravel()


@checked
def rating_crowd(
    num_items: int = 200,
    num_annotators: int = 20,
    ratings_per_item: int = 5,
    num_levels: int = 5,
    *,
    seed: int,
    guessers: float = 0.1,
    adversaries: float = 0.0,
) -> GeneratedRatings:
    """Generate ratings by a crowd with guessers and adversaries in it, under `ManyFacet`.

    Each item is rated by random annotators, on a scale from 1.

    Parameters
    ----------
    num_items, num_annotators, ratings_per_item, num_levels : int
        From 2 to 20 levels, 1 of the others, and as many annotators as ratings per item.
    seed : int
    guessers, adversaries : float
        Shares of the annotators, not negative and with a sum below 1: with competence 0, whose
        ratings do not depend on the item, and with −1, who read the scale the wrong way round.

    Returns
    -------
    tuple of Ratings and dict
        ``ratings``, and ``truth`` with ``reward`` (item), ``competence``, ``severity`` and ``kind``
        (annotator): "competent", "guesser" or "adversary", and ``threshold`` (annotator, step).
    """
    check_sizes(num_annotators=num_annotators, ratings_per_item=ratings_per_item)
    check_sizes(amount=num_items * ratings_per_item, num_items=num_items)
    whole("num_levels", num_levels, least=2)
    at_most("num_levels", num_levels, MOST_LEVELS, "levels")
    at_most("ratings_per_item", ratings_per_item, num_annotators, "annotators")
    rng = np.random.default_rng(seed)
    kind = draw_kinds(rng, num_annotators, guessers=guessers, adversaries=adversaries)
    competence = _competence(rng, kind)
    reward = rng.normal(size=num_items)
    severity = rng.normal(0.0, 0.7, num_annotators)
    apart = rng.normal(0.0, 0.3, (num_annotators, num_levels - 1))
    threshold = np.linspace(-1.5, 1.5, num_levels - 1) + apart
    item, annotator = _asked(rng, num_items, num_annotators, ratings_per_item)
    location = 1.5 * competence[annotator] * reward[item] - severity[annotator]
    below = np.pad(np.cumsum(threshold, axis=1), ((0, 0), (1, 0)))
    utility = np.arange(num_levels) * location[:, None] - below[annotator]
    level = np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)
    levels = range(1, num_levels + 1)
    names = {"items": num_items, "annotators": num_annotators, "levels": levels}
    ratings = _read(Ratings, names, item=item, annotator=annotator, rating=1 + level)
    truth = {"reward": reward, "competence": competence, "severity": severity}
    return GeneratedRatings(ratings, truth | {"threshold": threshold, "kind": kind})


def _competence(rng: Rng, kind: PerAnnotator) -> PerAnnotator:
    """Draw competences about 1; those of guessers are 0, and of adversaries −1."""
    competent = np.clip(rng.normal(1.0, 0.25, len(kind)), 0.3, None)
    return np.select([kind == "guesser", kind == "adversary"], [0, -1], competent)


@checked
def ranking_crowd(
    num_items: int = 20,
    num_annotators: int = 12,
    rankings_per_annotator: int = 10,
    set_size: int = 5,
    places: int | None = None,
    *,
    best_worst: bool = False,
    seed: int,
    guessers: float = 0.1,
    adversaries: float = 0.1,
) -> GeneratedRankings:
    """Generate rankings of random sets of items by a crowd with guessers and adversaries in it,
    under `ExtendedPlackettLuce`.

    Parameters
    ----------
    num_items, num_annotators, rankings_per_annotator : int
    set_size : int
        Number of items of each set, at least 2.
    places : int, optional
        Number of places that are given; the other items of the set come below. All by default, and
        1 with `best_worst`.
    best_worst : bool
        Whether the worst of the items without a place is named as well.
    seed : int
    guessers, adversaries : float
        Shares of the annotators, not negative and with a sum below 1: with competence 0, who rank
        at random, and with −1, who rank upside down.

    Returns
    -------
    tuple of Rankings and dict
        ``rankings``, and ``truth`` with ``worth`` (item), and ``competence`` and ``kind``
        (annotator): "competent", "guesser" or "adversary".
    """
    check_sizes(num_annotators=num_annotators, rankings_per_annotator=rankings_per_annotator)
    number = num_annotators * rankings_per_annotator
    check_sizes(2, number * num_items, num_items=num_items, set_size=set_size)
    at_most("set_size", set_size, num_items, "items")
    depth = places
    if depth is None:
        depth = 1 if best_worst else set_size
    whole("places", depth)
    of_set = "items in a set beside the worst" if best_worst else "items in a set"
    at_most("places", depth, set_size - best_worst, of_set)
    rng = np.random.default_rng(seed)
    kind = draw_kinds(rng, num_annotators, guessers=guessers, adversaries=adversaries)
    competence = _competence(rng, kind)
    worth = rng.normal(0.0, 1.0, num_items)
    offered = np.sort(np.argsort(rng.random((number, num_items)), 1)[:, :set_size], 1)
    annotator = np.repeat(np.arange(num_annotators), rankings_per_annotator).astype(np.int32)
    utility = competence[annotator][:, None] * worth[offered]
    place = (-utility - rng.gumbel(size=offered.shape)).argsort(1).argsort(1) + 1
    place = np.where(place <= depth, place, 0)
    if best_worst:
        noisy = np.where(place > 0, -np.inf, rng.gumbel(size=offered.shape) - utility)
        place[np.arange(number), noisy.argmax(1)] = -1
    sets = offered.astype(np.int32), place.astype(np.int32)
    names = tuple(range(num_annotators)), tuple(range(num_items))
    lowest = np.ones(number, np.int32) if best_worst else None
    depths = np.full(number, depth, np.int32)
    rankings = Rankings(annotator, depths, None, *sets, *names, lowest)
    return GeneratedRankings(rankings, {"worth": worth, "competence": competence, "kind": kind})


@checked
def choice_crowd(
    num_choosers: int = 100,
    choices_per_chooser: int = 5,
    num_alternatives: int = 4,
    num_features: int = 2,
    *,
    seed: int,
    available: float = 0.8,
    spread: float = 0.0,
    correlation: float = 0.0,
) -> GeneratedChoices:
    """Generate choices from sets, under `MultinomialLogit`, or with a `spread` under `MixedLogit`.

    Parameters
    ----------
    num_choosers, choices_per_chooser : int
    num_alternatives : int
        At least 2.
    num_features : int
        Number of features of the alternatives, standard normal in each set.
    seed : int
    available : float
        Probability that an alternative is offered, above 0; each set offers two or more.
    spread : float
        Standard deviation of the choosers' own coefficients around those of all; 0 for choosers who
        all have the same.
    correlation : float
        Correlation between any two coefficients of a chooser, from 0 up to less than 1.

    Returns
    -------
    tuple of Choices and dict
        ``choices``, and ``truth`` with ``coefficient`` (feature) and ``constant`` (alternative);
        with a spread also ``own_coefficient`` (annotator, feature).
    """
    check_sizes(num_choosers=num_choosers, choices_per_chooser=choices_per_chooser)
    number = num_choosers * choices_per_chooser
    check_sizes(amount=number * num_alternatives * num_features, num_features=num_features)
    check_sizes(2, num_alternatives=num_alternatives)
    for name, value, end in (("available", available, 1), ("correlation", correlation, 0)):
        if value != end:
            share(name, value)
    if spread != 0:
        positive("spread", spread)
    rng = np.random.default_rng(seed)
    constant = rng.normal(0.0, 0.7, num_alternatives)
    coefficient = rng.normal(0.0, 1.0, num_features)
    truth = {"coefficient": coefficient, "constant": constant - constant.mean()}
    features = rng.normal(size=(number, num_alternatives, num_features))
    noise = rng.random((number, num_alternatives))
    # Two alternatives at random are always offered.
    offered = (noise.argsort(1).argsort(1) < 2) | (noise < available)
    if spread:
        apart = rng.normal(size=(num_choosers, num_features)) * np.sqrt(1 - correlation)
        apart += rng.normal(size=(num_choosers, 1)) * np.sqrt(correlation)
        truth["own_coefficient"] = coefficient + spread * apart
        coefficient = np.repeat(truth["own_coefficient"], choices_per_chooser, axis=0)[:, None]
    utility = (features * coefficient).sum(2) + truth["constant"]
    noisy = np.where(offered, utility + rng.gumbel(size=utility.shape), -np.inf)
    chosen = noisy.argmax(1)[:, None] == np.arange(num_alternatives)
    row, alternative = np.nonzero(offered)
    names = [f"feature {place}" for place in range(num_features)]
    table = {"set": row, "alternative": alternative, "annotator": row // choices_per_chooser}
    table |= {"chosen": chosen[row, alternative].astype(int)}
    roles: dict[str, Any] = {role: role for role in table} | {"features": names}
    roles |= {"alternatives": range(num_alternatives), "annotators": range(num_choosers)}
    table |= dict(zip(names, features[row, alternative].T, strict=True))
    choices = Choices.from_frame(table, **roles)
    return GeneratedChoices(choices, truth)


@checked
def response_crowd(
    num_persons: int = 200,
    num_items: int = 20,
    *,
    seed: int,
    asked: float = 1.0,
    guessers: float = 0.0,
) -> GeneratedResponses:
    """Generate responses of persons to items, right or wrong, under `TwoPL`.

    Parameters
    ----------
    num_persons, num_items : int
    seed : int
    asked : float
        Probability that a person is asked an item, above 0; everybody is asked one.
    guessers : float
        Share of the persons who are right by chance, one time in two.

    Returns
    -------
    tuple of Responses and dict
        ``responses``, and ``truth`` with ``ability`` and ``kind`` (person; "competent" or
        "guesser"), and ``difficulty`` and ``discrimination`` (item).
    """
    check_sizes(amount=num_persons * num_items, num_persons=num_persons, num_items=num_items)
    if asked != 1:
        share("asked", asked)
    rng = np.random.default_rng(seed)
    kind = draw_kinds(rng, num_persons, guessers=guessers)
    ability, difficulty = rng.normal(size=num_persons), rng.normal(size=num_items)
    discrimination = np.exp(rng.normal(0.0, 0.3, num_items))
    logits = discrimination * (ability[:, None] - difficulty)
    chance = np.where((kind == "guesser")[:, None], 0.5, expit(logits))
    noise = rng.random((num_persons, num_items))
    person, item = np.nonzero((noise < asked) | (noise == noise.min(1, keepdims=True)))
    right = rng.random(chance.shape) < chance
    correct, names = right[person, item].astype(int), {"persons": num_persons, "items": num_items}
    responses = _read(Responses, names, person=person, item=item, correct=correct)
    truth = {"ability": ability, "difficulty": difficulty, "discrimination": discrimination}
    return GeneratedResponses(responses, truth | {"kind": kind})


@checked
def demonstration_crowd(
    rows: int = 6,
    columns: int = 6,
    num_annotators: int = 12,
    num_trajectories: int = 8,
    num_steps: int = 15,
    *,
    seed: int,
    num_features: int = 4,
    careless: float = 0.1,
    adversaries: float = 0.1,
) -> GeneratedDemonstrations:
    """Generate demonstrations on a grid by a crowd with careless demonstrators and adversaries,
    under `MaxEntIRL`.

    Each cell has features, which are standard normal, and the reward is linear in them. Each
    demonstrator walks from random cells, by the soft-optimal policy of their rationality.

    Parameters
    ----------
    rows, columns : int
        Size of the grid.
    num_annotators, num_trajectories, num_steps : int
        Numbers of demonstrators, of trajectories of each, and of steps of a trajectory.
    seed : int
    num_features : int
        Number of features of a cell.
    careless, adversaries : float
        Shares of the demonstrators, not negative and with a sum below 1: with rationality .05, who
        act nearly at random, and with −.8, who act against the goal. All others have about 1.

    Returns
    -------
    tuple of Demonstrations and dict
        ``demonstrations``, and ``truth`` with ``coefficient`` (feature), ``rationality`` and
        ``kind`` (annotator): "competent", "careless" or "adversary".
    """
    check_sizes(rows=rows, columns=columns, num_annotators=num_annotators)
    check_sizes(num_trajectories=num_trajectories, num_steps=num_steps, num_features=num_features)
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, columns, num_features))
    mdp = MDP.grid(rows, columns, features=features, discount=0.9, slip=0.1)
    kind = draw_kinds(rng, num_annotators, careless=careless, adversaries=adversaries)
    competent = np.clip(rng.normal(1.0, 0.2, num_annotators), 0.3, None)
    rationality = np.select([kind == "careless", kind == "adversary"], [0.05, -0.8], competent)
    coefficient = rng.normal(size=num_features)
    reward = rationality[:, None, None] * mdp.reward(coefficient)
    with jax.enable_x64(True):
        policy = np.exp(np.asarray(log_soft_policy(jnp.asarray(reward), Dynamics.of(mdp))))
    walk = {"trajectories": num_trajectories, "steps": num_steps, "seed": int(rng.integers(2**31))}
    demonstrations = Demonstrations.rollouts(mdp, policy, **walk, annotators=range(num_annotators))
    truth = {"coefficient": coefficient, "rationality": rationality, "kind": kind}
    return GeneratedDemonstrations(demonstrations, truth)
