"""Nested state as flat tensors and a text, the two things a safetensors file can hold."""

from __future__ import annotations

import json
from typing import Any

import torch

_TENSOR, _TUPLE, _MAP = "__tensor__", "__tuple__", "__map__"


def flatten(tree: Any) -> tuple[dict[str, torch.Tensor], str]:
    """All tensors of nested dicts, lists and tuples by their place, and the rest as JSON.

    >>> tensors, rest = flatten({"layer": [torch.zeros(2), 3], 7: None})
    >>> sorted(tensors)
    ['layer/0']
    >>> unflatten(tensors, rest)
    {'layer': [tensor([0., 0.]), 3], 7: None}
    """
    tensors: dict[str, torch.Tensor] = {}

    def walk(node: Any, place: str) -> Any:
        if isinstance(node, torch.Tensor):
            tensors[place] = node.detach()
            return {_TENSOR: place}
        if isinstance(node, dict):
            # Pairs, because JSON would turn numbers used as keys into text.
            return {_MAP: [[key, walk(value, f"{place}/{key}")] for key, value in node.items()]}
        if isinstance(node, list | tuple):
            items = [walk(value, f"{place}/{index}") for index, value in enumerate(node)]
            return {_TUPLE: items} if isinstance(node, tuple) else items
        return node

    skeleton = walk(tree, "")
    named = {place.lstrip("/"): tensor for place, tensor in tensors.items()}
    return named, json.dumps(skeleton)


def unflatten(tensors: dict[str, torch.Tensor], rest: str) -> Any:
    """The state that ``flatten`` took apart."""

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(value) for value in node]
        if isinstance(node, dict):
            if _TENSOR in node:
                return tensors[node[_TENSOR].lstrip("/")]
            if _TUPLE in node:
                return tuple(walk(value) for value in node[_TUPLE])
            return {key: walk(value) for key, value in node[_MAP]}
        return node

    return walk(json.loads(rest))
