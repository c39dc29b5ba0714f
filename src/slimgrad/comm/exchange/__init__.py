"""Exchanges, one a file, filed under their names."""

from slimgrad.comm.exchange.all_gather import AllGather
from slimgrad.comm.exchange.all_reduce import AllReduce
from slimgrad.comm.exchange.base import Exchange, GradientBucket, Span
from slimgrad.comm.exchange.channel import Channel
from slimgrad.core.registry import Registry

EXCHANGES = Registry[type[Exchange]]("exchange")
for _exchange in (AllGather, AllReduce):
    EXCHANGES.add(_exchange.name)(_exchange)

__all__ = [
    "EXCHANGES",
    "AllGather",
    "AllReduce",
    "Channel",
    "Exchange",
    "GradientBucket",
    "Span",
]
