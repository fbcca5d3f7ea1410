"""The public contract: what every model, back-end and result of raters keeps to.

Call these on a model or back-end of your own, as scikit-learn's ``check_estimator``. Each raises an
AssertionError whose sentence says what was violated, and by how much.
"""

from raters.testing._backend import check_backend
from raters.testing._backend import check_result as check_result
from raters.testing._model import check_model

__all__ = ["check_backend", "check_model"]
