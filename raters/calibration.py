"""Simulation-based calibration and the Geweke joint-distribution test."""
