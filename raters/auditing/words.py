"""Words for the numbers of audits, by the template ``words.jinja``."""

from __future__ import annotations

from raters.errors.words import words_of

worded = words_of("raters.auditing")
