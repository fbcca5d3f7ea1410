r"""Changes of judges along time.

Of the verdicts of one judge on questions in the order of time, :math:`e_1, \dots, e_n` says how far
each is right less the mean. With :math:`S_t = e_1 + \dots + e_t`,

.. math:: T = \max_t \frac{|S_t|}{\sqrt{t (n - t) / n}}, \qquad n / 10 \le t \le 9 n / 10,

is compared with its values under random orders (a permutation test of the CUSUM statistic of
James, James and Siegmund 1987): a false alarm has at most the stated probability where the
questions are in random order. Questions that become harder look like a change of every judge. P
values of several judges are adjusted as Benjamini and Hochberg (1995) have it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float

from raters.reporting.judges.verdicts import Verdicts

# Random orders, and so many at once; and fewest verdicts of a judge, and on one side of a change.
_ORDERS, _AT_ONCE, _FEWEST, _SIDE = 1999, 100, 20, 5
PerVerdict = Float[np.ndarray, " verdict"]


def drifts(verdicts: Verdicts, codes: list[int], rng: np.random.Generator) -> pd.DataFrame:
    """P value of a change of each judge, its time, and the accuracy before and after."""
    from scipy.stats import false_discovery_control  # Which takes a second to load.

    # Rightness of the verdicts of each judge on each question at one time.
    table = verdicts.table.assign(right=verdicts.right(verdicts.table).mean(0))
    table = table.groupby(["judge", "question", "time"], as_index=False)["right"].mean()
    rows = []
    for code in codes:
        own = table[table["judge"] == code].sort_values("time", kind="stable")
        time, right = own["time"].to_numpy(), own["right"].to_numpy()
        ends = np.flatnonzero(np.diff(time) > 0) + 1
        least = max(_SIDE, len(own) // 10)
        ends = ends[(ends >= least) & (ends <= len(own) - least)]
        if len(own) >= _FEWEST and len(ends):
            place, p_value = _change(right, ends, rng)
            means = right[:place].mean(), right[place:].mean()
            rows.append((code, p_value, time[place], *means))
    columns = ["judge", "drift_p", "drift_time", "accuracy_before", "accuracy_after"]
    frame = pd.DataFrame(rows, columns=columns).set_index("judge")
    return frame.assign(drift_p=false_discovery_control(frame["drift_p"].astype(float)))


def _change(right: PerVerdict, ends: np.ndarray, rng: np.random.Generator) -> tuple[int, float]:
    """The likeliest place of a change, and the p value of there being one."""
    size, centred = len(right), right - right.mean()
    scale = np.sqrt(ends * (size - ends) / size)
    observed = np.abs(np.cumsum(centred)[ends - 1]) / scale
    as_large = 0
    for begin in range(0, _ORDERS, _AT_ONCE):
        orders = np.tile(centred, (min(_AT_ONCE, _ORDERS - begin), 1))
        sums = np.cumsum(rng.permuted(orders, axis=1), axis=1)[:, ends - 1]
        # Equal statistics count, but for rounding.
        as_large += int(((np.abs(sums) / scale).max(1) >= observed.max() * (1 - 1e-9)).sum())
    return int(ends[observed.argmax()]), (1 + as_large) / (1 + _ORDERS)
