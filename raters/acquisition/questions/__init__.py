"""Questions that can be asked, and their form in a campaign."""
