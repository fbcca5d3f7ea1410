"""The public contract."""
