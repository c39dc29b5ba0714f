"""One name per operation, with a plain-torch reference and faster implementations."""

from slimgrad.kernels.topone import topone_weight_grad

__all__ = ["topone_weight_grad"]
