"""Audits of annotators, and their agreement without a model."""
