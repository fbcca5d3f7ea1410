"""What raters raises and warns. Every message says what was wrong, what was expected, and what to write instead."""

from __future__ import annotations


class RatersError(Exception):
    """Base class of all errors that raters raises on purpose."""


class DataError(RatersError, ValueError):
    """The table of votes cannot be read as the columns were described."""


class SettingError(RatersError, ValueError):
    """An option of a model, a back-end or a verb has a value that it cannot have."""


class NotConjugateError(RatersError):
    """A block that a model declares as conjugate is not: its logits are not affine in it, or its prior is not Gaussian."""


class BackendError(RatersError):
    """A back-end cannot run this model on this data; the message is the sentence of ``why_not``."""


class DataWarning(UserWarning):
    """The data can be fitted, but something about them limits what can be learned."""


class ConvergenceWarning(UserWarning):
    """A back-end finished, but its own diagnostics say that the result should not be trusted yet."""
