"""Quantities of an audit of comparisons: competence, accuracy, and position bias; sections of a
report, and what known orders tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy.special import expit

from raters.auditing.intervals import mean_and_interval, ranked, ranked_by, table
from raters.auditing.verdicts import gives_one_answer, share_of
from raters.distributions.ties import OUTCOMES
from raters.errors import refuse
from raters.errors.validation import share
from raters.fitting.result import draws_of
from raters.judgements.comparisons import Comparisons
from raters.judgements.connection import MIXED_ORDER, order_share
from raters.kinds import AuditContext, AuditLimits, Quantities, Section, finding, orders
from raters.kinds.comparisons import tastes
from raters.kinds.orders import AnnotatorDraws, OrderCalibration, PerCompetence
from raters.kinds.sections import shown, ties_of_equals
from raters.model import Values
from raters.models.comparisons.contradictions import MOST, information_shares
from raters.models.comparisons.directions import competences, has_directions
from raters.program import Program
from raters.terms.ties import ties_of, votes_with_ties

#: Site of the bias, in logits for what is shown first.
SITE = "position_bias"

PerAnnotator = Float[np.ndarray, " annotator"]

# An accuracy averages over so many random pairs, under so many draws at most; that is finer than an
# interval's third digit.
_PAIRS = 200
_DRAWS = 1000


def quantities(program: Program[Any], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Competence and accuracy of each annotator, and their position bias where it is fitted."""
    share("margin", limits.margin)
    kind = getattr(program.model, "competence", "signed")
    low, high = {"unit": (0, 1), "positive": (0, np.inf)}.get(kind, (-np.inf, np.inf))
    if not low < limits.threshold < high:
        problem = f"has every competence of this model on one side, as they are {kind}"
        expected = "it must be above 0" + (" and below 1" if kind == "unit" else "")
        refuse("threshold", limits.threshold, problem, expected, instead="threshold=0.25")
    data = program.data
    if {"taste", "position"} & set(program.sites):
        found = tastes.quantities(program, result, limits.margin)
        reward = np.asarray(result["posterior"]["reward"].mean(("chain", "draw")))[:, None]
        agreed = agreement(data, reward, np.zeros(data.num_annotators, int))
        found = replace(found, columns={**found.columns, "agreement": agreed})
    else:
        found = _of_competences(program, result, limits.margin)
    values, columns = dict(found.values), dict(found.columns)
    if data.ordered:
        columns["gives_one_answer"] = _chooses_one_side(data)
    bias = position_bias(program, result)
    if bias is not None and program.sites[SITE].dims:
        values |= {SITE: bias, "first_share": expit(bias)}
        columns[f"p_{SITE}"] = (np.abs(expit(bias) - 0.5) >= limits.margin).mean(0)
    worlds = _worlds(program, values["competence"], limits.level)
    return replace(found, values=values, columns=columns, tables=worlds)


def _of_competences(program: Program[Any], result: xr.DataTree, margin: float) -> Quantities:
    """Competence and accuracy of each annotator."""
    if "competence" not in program.sites:
        expected = (
            "fit ExtendedBTL, with signed competences to find adversaries too, or"
            " HierarchicalBTL, and pass that model and its result"
        )
        instead = "rt.ExtendedBTL(competence='signed')"
        refuse("model", program.model, "has no competences to audit", expected, instead=instead)
    draws, _ = draws_of(program, result)
    few, _ = draws_of(program, result, _DRAWS)
    competence, data = competences(program, draws), program.data
    # Annotators of a mixture are judged by the rewards of their likeliest type; otherwise there is
    # one.
    of_type = np.zeros(data.num_annotators, int)
    if "reward" in program.sites:
        reward, some = (
            part["reward"].reshape(*part["reward"].shape[:2], -1) for part in (draws, few)
        )
        if reward.shape[2] > 1:
            assert program.latent is not None
            probs: Any = result[program.latent.group]["responsibility"]
            of_type = probs.argmax(program.latent.name).values
        deviation = np.asarray(draws["deviation"]).mean(0) if "deviation" in draws else None
        agreed = agreement(data, reward.mean(0), of_type, deviation)
        gap = _gaps(data, few, some)
    else:  # The same on random compared pairs, where rewards are linear in features.
        data = data.unpadded().halved()
        features = np.asarray(data.features, np.float64)
        rows = np.random.default_rng(0).integers(len(features), size=_PAIRS)
        agreed = _share_for_better(data, features @ draws["coefficient"].mean(0))
        gap = (few["coefficient"] @ features[rows].T)[..., None]
    accuracy = _accuracy(program, few, np.abs(gap), of_type)
    chances = {
        "p_guessing": (np.abs(accuracy - 0.5) < margin).mean(0),
        "p_adversarial": (competence < 0).mean(0),
    }
    if has_directions(program):  # Guessers and adversaries are types of the model.
        assert program.latent is not None
        probs = result[program.latent.group]["responsibility"]
        types = {"p_guessing": "guesser", "p_adversarial": "adversary"}
        chances = {name: probs.sel({program.latent.name: of}).values for name, of in types.items()}
    scale = np.abs(competence).mean(1, keepdims=True)
    relative = (competence / np.where(scale > 0, scale, 1.0)).mean(0)
    return Quantities(
        values={"competence": competence, "accuracy": accuracy},
        judged="competence",
        columns={"relative": relative, **chances, "agreement": agreed},
    )


def _chooses_one_side(data: Comparisons) -> Bool[np.ndarray, " annotator"]:
    """Annotators all of whose votes are for the same side, which by chance few would."""
    first = np.bincount(data.annotator, data.halved().wins, data.num_annotators)
    total = np.bincount(data.annotator, data.weight, data.num_annotators)
    return gives_one_answer(np.maximum(first, total - first), total, np.full(len(total), 0.5))


def position_bias(program: Program[Any], result: xr.DataTree) -> AnnotatorDraws | None:
    """Draws of the position bias of each annotator, or of the one that all share."""
    site = program.sites.get(SITE)
    if site is None or site.dims not in ((), (program.data.judge,)):
        return None
    draws, _ = draws_of(program, result)
    return draws[SITE].reshape(len(draws[SITE]), -1)


def _worlds(
    program: Program[Any], competence: AnnotatorDraws, level: float
) -> dict[str, xr.Dataset]:
    """Competences in each of two mirrored worlds that are both possible, the likelier first."""
    other = orders.in_other_world(program, competence)
    if not other.any():
        return {}
    each = [
        table("annotator", program.data.judges, {}, {"competence": competence[part]}, level)
        for part in (~other, other)
    ]
    worlds = xr.concat(each, pd.Index([0, 1], name="world"), coords="minimal")
    probability = ("world", np.array([1 - other.mean(), other.mean()]))
    return {"worlds": worlds.assign(probability=probability)}


def _gaps(
    data: Comparisons, draws: Values, reward: Float[np.ndarray, "draw item type"]
) -> Float[np.ndarray, "draw pair type"]:
    """Differences of rewards between the items of random pairs."""
    one, other = random_pairs(data)
    gap = reward[:, one] - reward[:, other]
    if "deviation" in draws:
        own = np.asarray(draws["deviation"])
        stratum = np.random.default_rng(1).integers(own.shape[1], size=len(one))
        gap = gap + (own[:, stratum, one] - own[:, stratum, other])[..., None]
    return gap


def _accuracy(
    program: Program[Any],
    draws: Values,
    gap: Float[np.ndarray, "draw pair type"],
    of_type: Int[np.ndarray, " annotator"],
) -> AnnotatorDraws:
    """Mean of σ(β gap) over pairs; of ties half."""
    columns = []
    each = zip(competences(program, draws).T, of_type, strict=True)
    for code, (column, kind) in enumerate(each):
        logits = column[:, None] * gap[:, :, kind]
        columns.append(score_of_better(program, draws, logits, code).mean(1))
    return np.stack(columns, axis=1)


def score_of_better(
    program: Program[Any], draws: Values, logits: Float[np.ndarray, "draw pair"], annotator: int
) -> Float[np.ndarray, "draw pair"]:
    """Probability of a vote for one of two items, and half that of a tie."""
    votes = votes_with_ties(program.model, draws, logits, annotator)
    if votes is None:
        return np.asarray(expit(logits))
    return np.asarray(np.exp(np.asarray(votes.log_probs())) @ np.array(OUTCOMES))


def random_pairs(data: Comparisons) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Random pairs of different items, always the same ones."""
    rng, data = np.random.default_rng(0), data.unpadded()
    if len(data.components()) == 1 or not data.num_comparisons:
        one = rng.integers(data.num_items, size=_PAIRS)
        return one, (one + rng.integers(1, data.num_items, size=_PAIRS)) % data.num_items
    rows = rng.integers(data.num_comparisons, size=_PAIRS)
    return np.asarray(data.first)[rows], np.asarray(data.second)[rows]


def agreement(
    data: Comparisons,
    reward: Float[np.ndarray, "item type"],
    of_type: Int[np.ndarray, " annotator"],
    deviation: Float[np.ndarray, "stratum item"] | None = None,
) -> PerAnnotator:
    """Share of each annotator's votes for the item of higher reward; of a tie, half."""
    data = data.halved()
    kind = of_type[data.annotator]
    gap = reward[data.first, kind] - reward[data.second, kind]
    if deviation is not None:
        gap = gap + deviation[data.stratum, data.first] - deviation[data.stratum, data.second]
    return _share_for_better(data, gap)


def _share_for_better(data: Comparisons, gap: Float[np.ndarray, " row"]) -> PerAnnotator:
    """Share of each annotator's votes that go to the better side, by some gaps."""
    count = np.asarray(data.weight, float)
    for_better = np.where(gap > 0, data.wins, count - data.wins)
    return share_of(data.annotator, for_better, count, data.num_annotators)


# ---------------------------------------------------------------- known orders

# Draws of accuracies that an audit reads.
_AUDIT_DRAWS = 400


class ComparisonCalibration(OrderCalibration):
    """Statements about the order of compared items, from `raters.calibrate`."""

    answer = "winner"
    chained = False

    def _columns(self, competence: AnnotatorDraws) -> dict[str, np.ndarray]:
        """Relative competence, and types."""
        columns = {"relative": (competence / np.abs(competence).mean(1, keepdims=True)).mean(0)}
        return columns | self._types() if has_directions(self.program) else columns

    def _types(self) -> dict[str, Float[np.ndarray, " annotator"]]:
        """Probability that each annotator is a guesser, and an adversary."""
        draws, _ = draws_of(self.program, self.result, _AUDIT_DRAWS)
        competence = competences(self.program, draws)
        crowd, truth = (
            values - values.mean(1, keepdims=True)
            for values in (np.asarray(draws["reward"], float), self.truth.values)
        )
        is_along = ((crowd @ truth.T) > 0).mean(1)[:, None]
        against = np.where(competence < 0, is_along, (competence > 0) * (1 - is_along))
        return {"p_guessing": (competence == 0).mean(0), "p_adversarial": against.mean(0)}

    def _accuracies(self) -> PerCompetence:
        """Accuracy of each annotator, whose ties may be their own."""
        posterior, size = self.result["posterior"].dataset, len(self.competences)
        reward = self.items["reward_by_model"].values
        one, other = random_pairs(self.program.data)
        logits = (self.competences[:, None] * np.abs(reward[one] - reward[other])).reshape(1, -1)
        ties = [name for name in ("tie_propensity",) if name in posterior]
        means = {name: np.asarray(posterior[name].mean(("chain", "draw")))[None] for name in ties}
        curves = []
        for code in range(self.annotators.sizes["annotator"]):
            score = score_of_better(self.program, means, logits, code)
            curves.append(score.reshape(size, -1).mean(1))
        return np.stack(curves)


# ---------------------------------------------------------------- sections of a report

# Draws that shares of an interval are computed of.
_SHARES = 100


def by_stratum(context: AuditContext) -> Section | None:
    """Rankings within each stratum, of a model that has deviations."""
    if "deviation" not in context.program.sites:
        return None
    posterior = context.result["posterior"].dataset
    rewards = (posterior["reward"] + posterior["deviation"]).rename("reward")
    rewards = rewards.transpose("chain", "draw", "stratum", "item")
    table = ranked_by(rewards, "stratum", context.level)
    common = ranked(posterior["reward"], context.level)
    places = common.set_index("item")["rank"]
    first = table.groupby("stratum", sort=False)["item"].first()
    others = first[first != places.index[0]].to_dict()
    return Section(
        key="strata",
        title="Rankings by stratum",
        findings=(finding("strata", first=places.index[0], of=len(first), others=others),),
        columns=shown("rank item reward p_best common_rank"),
        table=table.assign(common_rank=table["item"].map(places)),
        group="stratum",
    )


def position(context: AuditContext) -> Section | None:
    """Position bias of the crowd and of each annotator, who favours the first most on top."""
    bias = position_bias(context.program, context.result)
    if bias is None:
        return None
    data, audit, level = context.program.data, context.audit, context.level
    voted = data.judgements_by(data.judge) > 0
    of_all = not context.program.sites[SITE].dims or not voted.any()
    share = expit(bias)[:, slice(None) if of_all else voted].mean(1, keepdims=True)
    crowd = {name: x[0] for name, x in mean_and_interval("first_share", share, level).items()}
    votes, separate = data.halved(), order_share(data) >= MIXED_ORDER
    observed = float(np.sum(votes.wins) / np.sum(votes.weight))
    findings = [finding("position" if separate else "one_order", observed=observed, **crowd)]
    table = None
    if audit is not None and "first_share" in audit.table:
        table = audit.table.to_dataframe().reset_index()
        table = table.sort_values("first_share", ascending=False, kind="stable", ignore_index=True)
        biased = table["p_position_bias"][table["judgements"] > 0] >= level
        numbers = {"biased": int(biased.sum()), "of": len(biased)}
        findings.append(finding("position_of_judges", **numbers))
    return Section(
        key="position_bias",
        findings=tuple(findings),
        columns=shown("annotator judgements first_share p_position_bias position_bias"),
        table=table,
    )


def style(context: AuditContext) -> Section | None:
    """Coefficients of the features of the two sides, beside rewards."""
    sites = context.program.sites
    if not {"coefficient", "reward"} <= set(sites) or sites["coefficient"].dims != ("feature",):
        return None
    draws, data = draws_of(context.program, context.result)[0], context.program.data
    drawn = draws["coefficient"]
    columns = {"p_positive": (drawn > 0).mean(0)}
    found = table("feature", data.feature_names, columns, {"coefficient": drawn}, context.level)
    rows = found.to_dataframe().reset_index()
    return Section(
        key="style",
        findings=(finding("style", features=rows.to_dict("records")),),
        columns=shown("feature coefficient p_positive"),
        table=rows,
    )


def ties(context: AuditContext) -> Section | None:
    """Probability that a vote between two equal items is a tie."""
    if ties_of(context.program.model) is None:
        return None
    data = context.program.data
    weight = np.asarray(data.weight, float)
    return ties_of_equals(context, float(weight[np.asarray(data.wins) == 0.5].sum() / weight.sum()))


def leading_annotator(context: AuditContext) -> Section | None:
    """The annotator who has most of the information about the rewards, if anybody has."""
    program, data = context.program, context.program.data
    if not {"competence", "reward"} <= set(program.sites) or len(program.sites["reward"].dims) > 1:
        return None
    draws = draws_of(program, context.result, _SHARES)[0]
    competence, bias = competences(program, draws), draws.get("position_bias")
    if bias is None or bias.ndim < 2:
        bias = np.zeros_like(competence)
    each = zip(competence, draws["reward"], bias, strict=True)
    halved = data.halved()
    shares = np.array([information_shares(halved, *one) for one in each])
    judge = int(np.argmax(shares.mean(0)))
    votes = data.judgements_by(data.judge)
    if (votes > 0).sum() < 2 or shares[:, judge].mean() <= MOST:
        return None
    share = mean_and_interval("share", shares[:, judge], context.level)
    numbers = {name: float(value) for name, value in share.items()}
    numbers |= {"of_votes": float(votes[judge] / votes.sum())}
    found = finding("leading", name=data.annotators[judge], **numbers)
    return Section("leading_annotator", findings=(found,))
