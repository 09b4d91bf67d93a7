"""Steady traffic for the scenario service, and the record of it. See generator.py."""
