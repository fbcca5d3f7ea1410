"""Models of ratings."""

from raters.models.ratings.fine_scale import FineScale
from raters.models.ratings.many_facet import ManyFacet

__all__ = ["FineScale", "ManyFacet"]
