"""Campaigns: ask, record every answer in a journal, fit again, and stop."""
