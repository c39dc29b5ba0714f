"""Errors, registries and random streams: what every other layer may import."""
