"""Principal components of sparse tables, from which models of factors start."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from jaxtyping import Float
from scipy.sparse.linalg import svds

# Up to so many entries a table is taken apart as a dense matrix.
_DENSE = 1_000_000


def components(table: scipy.sparse.csr_array, number: int) -> Float[np.ndarray, "person dimension"]:
    """First left singular vectors of a table, with entries of about 1."""
    if min(table.shape) <= number or not table.count_nonzero():
        return np.zeros((table.shape[0], number))
    if table.shape[0] * table.shape[1] <= _DENSE:
        left = np.linalg.svd(table.toarray(), full_matrices=False)[0][:, :number]
    else:
        # A start of equal entries may be one that the table takes to 0.
        begin = np.random.default_rng(0).normal(size=min(table.shape))
        left = svds(table, k=number, v0=begin, return_singular_vectors="u")[0][:, ::-1]
    return np.asarray(left) * np.sqrt(table.shape[0])
