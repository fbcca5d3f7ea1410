"""Scores of questions under weighted posterior draws."""
