"""Errors, registries, random streams, units: what every other layer may import."""
