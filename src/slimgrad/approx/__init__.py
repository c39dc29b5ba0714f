"""Cheaper gradients to compute: estimators of the weight gradient, and when to use them."""
