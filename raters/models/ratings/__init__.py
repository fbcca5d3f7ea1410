"""Models of ratings."""

from raters.models.ratings.many_facet import ManyFacet

__all__ = ["ManyFacet"]
