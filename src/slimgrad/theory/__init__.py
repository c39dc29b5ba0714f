"""What the methods promise, as numbers: pure functions of numbers and arrays."""
