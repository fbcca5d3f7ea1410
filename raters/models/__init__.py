"""The zoo: one model per file."""

from raters.models.btl import BTL
from raters.models.extended_btl import ExtendedBTL

__all__ = ["BTL", "ExtendedBTL"]
