import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.theory import delta_bits, gamma_bits, omega_bits

# First and last integer of each length of the omega code.
OMEGA = [
    (1, 1, 1),
    (2, 3, 3),
    (4, 7, 6),
    (8, 15, 7),
    (16, 31, 11),
    (32, 63, 12),
    (64, 127, 13),
    (128, 255, 14),
    (256, 511, 16),
    (512, 1023, 17),
    (1024, 2047, 18),
    (8192, 16383, 21),
    (32768, 65535, 23),
    (65536, 131071, 28),
    (2**20, 2**21 - 1, 32),
    (2**24, 2**25 - 1, 36),
]


def omega_word(k):
    """The code word itself, by the recursion of its definition."""
    word = "0"
    while k > 1:
        word = f"{k:b}{word}"
        k = len(f"{k:b}") - 1
    return word


@pytest.mark.parametrize(("first", "last", "bits"), OMEGA)
def test_known_lengths(first, last, bits):
    assert omega_bits(first) == omega_bits(last) == bits


def test_omega_lengths_are_those_of_the_words():
    assert omega_word(16) == "10100100000"
    for k in [*range(1, 2000), 2**31 - 1, 2**31, 2**399]:
        assert omega_bits(k) == len(omega_word(k))


def test_gamma_and_delta_lengths_are_those_of_the_words():
    for k in range(1, 2000):
        digits = f"{k:b}"
        gamma = "0" * (len(digits) - 1) + digits
        assert gamma_bits(k) == len(gamma)
        count = f"{len(digits):b}"
        delta = "0" * (len(count) - 1) + count + digits[1:]
        assert delta_bits(k) == len(delta)


@pytest.mark.parametrize("code", [omega_bits, gamma_bits, delta_bits])
def test_each_code_could_be_a_prefix_code(code):
    assert sum(2.0 ** -code(k) for k in range(1, 5000)) < 1


@pytest.mark.parametrize("code", [omega_bits, gamma_bits, delta_bits])
@pytest.mark.parametrize("k", [0, -1, 1.5, True, 2**401])
def test_only_positive_integers_have_words(code, k):
    with pytest.raises(ConfigError, match="k must be an integer"):
        code(k)
