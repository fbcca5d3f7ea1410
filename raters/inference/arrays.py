"""Names of the arrays that samplers and optimisers pass around, by their axes."""

import numpy as np
from jaxtyping import Array, Float

Rng = np.random.Generator
# Names of sites, such as those of a block.
Sites = tuple[str, ...]
# On the host: entries of a block of sites, their precision, and a number of each draw.
Entries = Float[np.ndarray, " entry"]
Matrix = Float[np.ndarray, "entry entry"]
PerDraw = Float[np.ndarray, " draw"]
# Unconstrained coordinates of all sites, on the host and in compiled functions.
FlatPoint = Float[np.ndarray, " coordinate"]
Flat = Float[Array, " coordinate"]
# On the host: a number of each row of a block.
HostRows = Float[np.ndarray, " row"]
# In compiled functions: a number of each row, entry and judge, the share of each class in a unit,
# one number.
EntryArray = Float[Array, " entry"]
PerJudge = Float[Array, " judge"]
PerRow = Float[Array, " row"]
Classes = Float[Array, "unit class"]
Scalar = Float[Array, ""]
