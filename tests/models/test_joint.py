"""One model of several kinds of judgement: its density, its symmetries, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import log_density
from scipy.special import logsumexp

import raters as rt
from raters.distributions.correlated import Correlated, given_scores, normal_score, of_score
from raters.errors import BackendError, SettingError
from raters.model import Exchange, Scale, Shift, Sign
from raters.program import log_joint
from tests.several import OF_LABELS, ONE_REWARD, TIED, labelled, walks

APART = rt.models.JointModel({"votes": rt.models.LinearExtendedBTL(), "shown": rt.MaxEntIRL()})


@pytest.fixture(scope="module")
def both() -> rt.judgements.Together:
    return walks().together


def point(
    model: rt.models.JointModel, data: rt.judgements.Together, seed: int = 0
) -> dict[str, Any]:
    """Random values in the supports of all sites."""
    rng, values = np.random.default_rng(seed), {}
    for name, site in rt.program.Program(model, data).sites.items():
        transform = biject_to(site.support)
        free = rng.normal(0.0, 0.7, np.shape(transform.inv(jnp.ones(site.shape) / 2)))
        values[name] = np.asarray(transform(free), float)
    return values


def test_without_anything_in_common_it_is_the_product_of_both(both) -> None:
    values = point(APART, both)
    with jax.enable_x64(True):
        apart = sum(
            float(
                log_joint(
                    model,
                    both.part(name),
                    {
                        site.removeprefix(f"{name}."): value
                        for site, value in values.items()
                        if site.startswith(name)
                    },
                )
            )
            for name, model in APART.parts.items()
        )
        together = float(log_joint(APART, both, values))
    assert together == pytest.approx(apart, rel=1e-12)


def log_policies(shown: rt.Demonstrations, reward: Any) -> Any:
    """Log-probabilities of actions by plain soft value iteration."""
    log_uniform = -jnp.log(shown.num_actions)
    transition = jnp.asarray(shown.transition)

    def improved(values: Any, _: Any) -> tuple[Any, None]:
        action_values = reward + shown.discount * transition @ values
        return jax.nn.logsumexp(action_values + log_uniform, axis=-1), None

    values, _ = jax.lax.scan(improved, jnp.zeros(shown.num_states), None, length=400)
    action_values = reward + shown.discount * transition @ values
    return action_values + log_uniform - values[:, None]


def by_hand(votes: rt.Comparisons, shown: rt.Demonstrations, correlation: bool) -> None:
    """The program of both kinds, written out: one reward, and competences that are rationalities or
    are correlated with them."""
    people = shown.num_annotators
    coefficient = numpyro.sample("coefficient", dist.Normal(0, 1).expand([2]).to_event())
    if correlation:
        rho = numpyro.sample("competence_correlation", dist.Beta(2, 2))
        covariance = jnp.array([[1.0, 0.0], [0.0, 1.0]]) + rho * jnp.array([[0.0, 1.0], [1.0, 0.0]])
        prior = dist.MultivariateNormal(jnp.ones(2), covariance).expand([people])
        pairs = numpyro.sample("pairs", prior.to_event(1))
        competence, rationality = pairs.T
    else:
        competence = numpyro.sample("competence", dist.Normal(1, 1).expand([people]).to_event())
        rationality = competence
    gap = jnp.asarray(votes.features) @ coefficient
    votes_for = dist.Bernoulli(logits=competence[votes.annotator] * gap)
    numpyro.sample("votes.outcome", votes_for.to_event(), obs=votes.wins)
    reward = jnp.asarray(shown.features) @ coefficient
    policies = jnp.stack([log_policies(shown, own * reward) for own in rationality])
    taken = policies[shown.annotator, shown.state, shown.action]
    numpyro.factor("shown.action", taken.sum())


@pytest.mark.parametrize("model", [ONE_REWARD, TIED], ids=["shared", "tied"])
def test_the_density_is_that_of_a_program_written_by_hand(model, both) -> None:
    with jax.enable_x64(True):
        for seed in range(2):
            values = point(model, both, seed)
            own = dict(values)
            if model is TIED:
                own["pairs"] = np.stack(
                    [values["votes.competence"], values["shown.rationality"]], axis=-1
                )
            arguments = (both.part("votes"), both.part("shown"), model is TIED)
            expected = float(log_density(by_hand, arguments, {}, own)[0])
            assert float(log_joint(model, both, values)) == pytest.approx(expected, rel=1e-9)


def test_ties_of_unlike_units_are_a_gaussian_copula() -> None:
    """Accuracies with a beta prior and competences with a normal one, and both likelihoods, written
    out."""
    data = labelled()
    labels, votes = data.part("labels"), data.part("votes")
    values = point(OF_LABELS, data)
    accuracy, competence = values["labels.accuracy"], values["votes.competence"]
    rho, prevalence = values["accuracy_correlation"], values["labels.prevalence"]
    values["labels.prevalence"] = prevalence = prevalence / prevalence.sum()  # beyond float32
    reward = values["votes.reward"]
    scores = np.stack(
        [scipy.stats.norm.ppf(scipy.stats.beta.cdf(accuracy, 2, 1)), competence - 1], axis=-1
    )
    prior = (
        scipy.stats.beta.logpdf(rho, 2, 2)
        + scipy.stats.beta.logpdf(accuracy, 2, 1).sum()
        + scipy.stats.norm.logpdf(competence, 1, 1).sum()
        + scipy.stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).logpdf(scores).sum()
        - scipy.stats.norm.logpdf(scores).sum()
        + scipy.stats.norm.logpdf(reward).sum()
        + scipy.stats.dirichlet([1, 1]).logpdf(prevalence)
    )
    of_class = np.tile(np.log(prevalence), (labels.num_units, 1))
    for group, who, says in zip(labels.group, labels.annotator, labels.label, strict=True):
        right = np.arange(2) == says
        of_class[group] += np.log(np.where(right, accuracy[who], 1 - accuracy[who]))
    logits = competence[votes.annotator] * (reward[votes.first] - reward[votes.second])
    wins, count = np.asarray(votes.wins), np.asarray(votes.weight)
    likelihood = (
        logsumexp(of_class, axis=1).sum()
        + scipy.stats.binom.logpmf(wins, count, 1 / (1 + np.exp(-logits))).sum()
    )
    with jax.enable_x64(True):
        density = float(log_joint(OF_LABELS, data, values))
    # Votes may leave out the binomial coefficients, which do not depend on the parameters.
    coefficients = np.log(scipy.special.comb(count, wins)).sum()
    assert density == pytest.approx(prior + likelihood - coefficients, rel=1e-6) or (
        density == pytest.approx(prior + likelihood, rel=1e-6)
    )


@pytest.mark.parametrize("number", [2, 3, 4])
def test_scores_in_turn_are_those_of_equal_correlations(number: int) -> None:
    correlation = 0.7
    scores = np.random.default_rng(number).normal(size=number)
    covariance = (1 - correlation) * np.eye(number) + correlation
    expected = scipy.stats.multivariate_normal(np.zeros(number), covariance).logpdf(scores)
    with jax.enable_x64(True):
        total = scipy.stats.norm.logpdf(scores[0])
        for place in range(1, number):
            before = [jnp.asarray(score) for score in scores[:place]]
            mean, spread = given_scores(before, correlation)
            total += scipy.stats.norm.logpdf(scores[place], float(mean), float(spread))
    assert total == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "base",
    [
        dist.Normal(1.0, 2.0),
        dist.TruncatedNormal(1.0, 0.5, low=0.0, high=1.0),
        pytest.param(dist.Beta(2.0, 1.0), marks=pytest.mark.slow),
    ],
    ids=lambda base: type(base).__name__,
)
def test_values_by_their_scores(base) -> None:
    """A value is that of its score; the density integrates to 1."""
    with jax.enable_x64(True):
        score = jnp.linspace(-3, 3, 13)
        value = of_score(base, score)
        np.testing.assert_allclose(normal_score(base, value), score, atol=1e-7)
        fn = Correlated(base, 0.9, 0.6)
        fine = jnp.linspace(-9, 9, 20_001)
        points = of_score(base, fine)
        density = jnp.exp(fn.log_prob(points) - base.log_prob(points))
        total = float((density * jnp.exp(dist.Normal().log_prob(fine))).sum() * (fine[1] - fine[0]))
    assert total == pytest.approx(1.0, abs=1e-6)


def test_draws_have_the_correlation_and_the_prior_of_each_part() -> None:
    """Kolmogorov's test and Fisher's z of 4,000 draws; false-alarm rate 1e-4 in all."""
    data = labelled()
    program = handlers.substitute(OF_LABELS.generate, {"accuracy_correlation": 0.6})

    def drawn(key: Any) -> Any:
        sites = handlers.trace(handlers.seed(program, key)).get_trace(data)
        return [sites[name]["value"] for name in ("labels.accuracy", "votes.competence")]

    draws = jax.jit(jax.vmap(drawn))(jax.random.split(jax.random.key(0), 1000))
    accuracy, competence = (np.asarray(values, float).ravel() for values in draws)
    assert scipy.stats.kstest(accuracy, scipy.stats.beta(2, 1).cdf).pvalue > 3e-5
    assert scipy.stats.kstest(competence, scipy.stats.norm(1, 1).cdf).pvalue > 3e-5
    scores = scipy.stats.norm.ppf(scipy.stats.beta.cdf(accuracy, 2, 1)), competence - 1
    z = (np.arctanh(np.corrcoef(*scores)[0, 1]) - np.arctanh(0.6)) * np.sqrt(len(accuracy) - 3)
    assert abs(z) < 4.2


# ---------------------------------------------------------------------- symmetries


def test_symmetries_are_those_that_all_parts_have() -> None:
    assert set(ONE_REWARD.symmetries) == {
        Scale(("coefficient",), ("competence",)),
        Sign(("coefficient", "competence")),
    }
    assert set(TIED.symmetries) == {
        Scale(("coefficient",), ("votes.competence", "shown.rationality")),
        Sign(("coefficient", "votes.competence", "shown.rationality")),
    }
    assert len(APART.symmetries) == 4
    assert set(OF_LABELS.symmetries) == {
        Shift("votes.reward"),
        Scale(("votes.reward",), ("votes.competence",)),
        Sign(("votes.reward", "votes.competence")),
        Exchange((("labels.prevalence", -1),), complemented=("labels.accuracy",)),
    }


def test_a_part_without_competences_breaks_the_symmetries() -> None:
    model = rt.models.JointModel(
        {"votes": rt.models.ContextualBTL(), "shown": rt.MaxEntIRL()}, shared=["coefficient"]
    )
    assert model.symmetries == ()
    one = rt.models.JointModel({"one": rt.BTL(), "two": rt.ExtendedBTL()}, shared=["reward"])
    assert one.symmetries == (Shift("reward"),)


def test_a_part_that_moves_a_shared_site_otherwise_breaks_the_symmetry() -> None:
    """Covariates, which no competence scales, beside a reward that is linear in the same
    features."""
    covariates = rt.ExtendedBTL(competence="signed", covariates=True, reward_scale=1.0)
    model = rt.models.JointModel(
        {"one": rt.models.LinearExtendedBTL(coefficient_scale=1.0), "two": covariates},
        shared=["coefficient", "competence"],
    )
    assert model.symmetries == (Shift("two.reward"),)


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", [TIED, OF_LABELS], ids=["one reward", "labels and votes"])
def test_contract(model, both) -> None:
    rt.testing.check_model(model, both if model is TIED else labelled())


# ---------------------------------------------------------------------- refusals

VOTES, SHOWN = rt.models.LinearExtendedBTL(), rt.MaxEntIRL()


def pair(votes=VOTES, shown=SHOWN, **options) -> rt.models.JointModel:
    return rt.models.JointModel({"votes": votes, "shown": shown}, **options)


def test_parts_that_do_not_fit_together_are_refused(both) -> None:
    refused = [
        rt.models.JointModel({"votes": VOTES, "labels": rt.models.OneCoin()}),
        pair(shared=["competence"]),
        pair(shared=[{"votes": "coefficient", "shown": "rationality"}]),
        pair(
            votes=rt.models.LinearExtendedBTL(competence="unit"),
            shared=[{"votes": "competence", "shown": "rationality"}],
        ),
        pair(tied=["coefficient"]),
        pair(shown=rt.models.OneCoin()),
    ]
    for model in refused:
        with pytest.raises(SettingError):
            rt.fit(model, both, rt.NUTS(), seed=0, progress=False)
    types = pair(votes=rt.models.ContextualBTL(num_types=2))
    with pytest.raises(BackendError):
        rt.fit(types, both, rt.NUTS(), seed=0, progress=False)
