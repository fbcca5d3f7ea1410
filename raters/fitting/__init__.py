"""The verbs that run and read a model: fit, simulate, predict and score."""
