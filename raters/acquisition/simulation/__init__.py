"""Campaigns simulated on a known truth or replayed from a record."""
