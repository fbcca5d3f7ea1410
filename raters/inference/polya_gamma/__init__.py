"""Pólya-Gamma back-ends: conditionals derived from the model, and a sweep for Gibbs and EM."""
