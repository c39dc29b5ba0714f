"""Exact lengths of the code words that universal codes give to a positive integer."""

from __future__ import annotations

from slimgrad.theory.arguments import checked_integer

MAX_INTEGER = 2**400


def omega_bits(k: int) -> int:
    """Length of the recursive Elias (omega) code word of k.

    |omega(1)| = 1 and |omega(k)| = |omega(b - 1)| + b for a k of b >= 2 binary digits: the digits
    of k, in front of them their number less one in the same code, and one final zero.

    Args:
        k: the integer, 1 to 2**400.

    Returns:
        Bits.

    Raises:
        ConfigError: ``k`` is not an integer in the range.

    >>> [omega_bits(k) for k in (1, 2, 4, 8, 16, 65536)]
    [1, 3, 6, 7, 11, 28]

    References:
        Elias (1975), "Universal codeword sets and representations of the integers".
    """
    k = checked_integer("k", k, 1, MAX_INTEGER)
    bits = 1
    while k > 1:
        digits = k.bit_length()
        bits += digits
        k = digits - 1
    return bits


def gamma_bits(k: int) -> int:
    """Length of the Elias gamma code word of k: 2 floor(log2 k) + 1.

    Args:
        k: the integer, 1 to 2**400.

    Returns:
        Bits.

    Raises:
        ConfigError: ``k`` is not an integer in the range.

    >>> [gamma_bits(k) for k in (1, 2, 4, 8)]
    [1, 3, 5, 7]

    References:
        Elias (1975), "Universal codeword sets and representations of the integers".
    """
    return 2 * checked_integer("k", k, 1, MAX_INTEGER).bit_length() - 1


def delta_bits(k: int) -> int:
    """Length of the Elias delta code word of k: b - 1 + |gamma(b)| for b binary digits.

    Args:
        k: the integer, 1 to 2**400.

    Returns:
        Bits.

    Raises:
        ConfigError: ``k`` is not an integer in the range.

    >>> [delta_bits(k) for k in (1, 2, 4, 8)]
    [1, 4, 5, 8]

    References:
        Elias (1975), "Universal codeword sets and representations of the integers".
    """
    digits = checked_integer("k", k, 1, MAX_INTEGER).bit_length()
    return digits - 1 + gamma_bits(digits)
