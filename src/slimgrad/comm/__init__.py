"""Cheaper gradients to send: quantizers, codecs, frames and exchanges."""
