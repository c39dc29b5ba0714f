"""Plain-torch implementations of every operation: slow, short, and the truth."""
