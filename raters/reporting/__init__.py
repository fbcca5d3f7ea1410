"""Reports of an audit, from one dictionary of facts."""
