"""Types of voters: german_parties2009, 15 comparisons of six choices by each of 192 respondents,
under one to five types.

Reads german_parties2009 (GermanParties2009 of the R package psychotools) from the folder named by
--data. First the maximised log-likelihood under a flat prior (`MixtureBTL(reward_scale=100.0)`) by
PGEM, beside reference values for up to three types (−1716.8, −1411.0, −1351.0), and where the
climbs from 30 starts end: the starts that the model draws, from clusters of annotators, and starts
with normal rewards. Then the models under their default priors by PGGibbs, compared by leaving out
one respondent at a time. Beyond two types four chains of 1,000 draws have not mixed (R-hat): order
the numbers of types by it, and quote no digits.
"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
from _common import options, report, table

import raters as rt
from raters.program import likelihood_of

REFERENCE = {1: -1716.8, 2: -1411.0, 3: -1351.0}


class FromAnywhere(rt.MixtureBTL):
    """The same model, with further starts that know nothing of the votes."""

    def another_start(self, data: rt.Comparisons, rng: np.random.Generator) -> dict[str, Any]:
        """Equal shares and normal rewards."""
        weight = np.full(self.num_types, 1 / self.num_types)
        return {
            "type_weight": jnp.asarray(weight),
            "reward": jnp.asarray(rng.normal(size=(data.num_items, self.num_types))),
        }


def read(folder: Path) -> rt.Comparisons:
    """The comparisons, as they were shown."""
    import pandas as pd

    votes = pd.read_csv(folder / "german_parties2009" / "comparisons.csv")
    return rt.Comparisons.from_frame(
        votes, first="item_a", second="item_b", outcome="outcome", annotator="annotator"
    )


def ends(model: rt.MixtureBTL, votes: rt.Comparisons, starts: int, seed: int) -> np.ndarray:
    """The log-likelihood where each climb ends, best first."""
    climbs: list[Any] = []

    class Recorded(rt.PGEM):
        def _report(self, every, best):
            climbs.extend(every)
            return super()._report(every, best)

    Recorded(draws=0, starts=starts).run(rt.program.Program(model, votes), jax.random.key(seed))
    with jax.enable_x64(True):
        return np.sort([float(likelihood_of(model, votes, climb.values)) for climb in climbs])[::-1]


def likelihood_rows(votes: rt.Comparisons, starts: int, seed: int) -> list[list[Any]]:
    """The maximised log-likelihood for each number of types, and how many starts end where."""
    rows = []
    for number in (1, 2, 3, 4):
        model = rt.MixtureBTL(num_types=number, reward_scale=100.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = rt.fit(model, votes, rt.PGEM(draws=0), seed=seed, progress=False)
        found = float(result["log_likelihood"]["outcome"].sum())
        listed = [
            listing(ends(kind(num_types=number, reward_scale=100.0), votes, starts, seed))
            for kind in KINDS
        ]
        reference = f"{REFERENCE[number]:.1f}" if number in REFERENCE else "–"
        rows.append([number, f"{found:.2f}", reference, *listed])
        print(rows[-1], flush=True)
    return rows


KINDS = (rt.MixtureBTL, FromAnywhere)


def listing(found: np.ndarray, most: int = 4) -> str:
    """The best ends and how often each was found."""
    counted = Counter(f"{value:.2f}" for value in found)
    shown = [f"{value} ({times}×)" for value, times in list(counted.items())[:most]]
    return ", ".join(shown) + (f", and {len(counted) - most} others" if len(counted) > most else "")


def comparison(
    votes: rt.Comparisons, draws: int, seed: int
) -> tuple[list[list[Any]], list[list[Any]]]:
    """ArviZ's comparison by respondents left out, and what each fit says of its chains."""
    results, facts = {}, []
    for number in (1, 2, 3, 4, 5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = rt.fit(
                rt.MixtureBTL(num_types=number),
                votes,
                rt.PGGibbs(draws=draws, chains=4),
                seed=seed,
                progress=False,
            )
            k = az.loo(result, pointwise=True).pareto_k.values
        shares = ", ".join(
            f"{share:.2f}"
            for share in result.posterior["type_weight"].mean(("chain", "draw")).values
        )
        sure = float(result["types"]["responsibility"].max("type").mean())
        rhat, ess, seconds = (result.attrs[name] for name in ("max_rhat", "min_ess", "seconds"))
        facts.append(
            [
                number,
                shares,
                sure,
                f"{rhat:.3f}",
                ess,
                float(k.max()),
                f"{int((k > 0.7).sum())} of {len(k)}",
                seconds,
            ]
        )
        print(facts[-1], flush=True)
        results[str(number)] = result
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compared = az.compare(results, round_to="none")
    columns = ["elpd", "se", "elpd_diff", "dse", "p", "weight"]
    rows = [
        [name, *(f"{float(compared.loc[name, column]):.2f}" for column in columns)]
        for name in compared.index
    ]
    return rows, facts


def main() -> None:
    """Measure and report."""
    settings = options(__doc__ or "", data=("../shared/data", "folder with the data sets"))
    votes = read(Path(settings.data))
    climbed = likelihood_rows(votes, 3 if settings.quick else 30, settings.seed)
    compared, facts = comparison(votes, 50 if settings.quick else 1000, settings.seed)
    parts = [
        (__doc__ or "").strip().split("\n\n")[1],
        table(
            ["types", "log-likelihood", "reference", "ends from clusters", "ends from anywhere"],
            climbed,
        ),
        table(["types", "elpd", "se", "difference", "its se", "p", "weight"], compared),
        table(
            [
                "types",
                "shares",
                "mean of likeliest",
                "R-hat",
                "smallest ESS",
                "largest Pareto k",
                "k > 0.7",
                "seconds",
            ],
            facts,
        ),
    ]
    report("types_real", "Types of voters: german_parties2009", parts, settings.quick)


if __name__ == "__main__":
    main()
