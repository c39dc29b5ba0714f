"""The entropy codecs of the second decoder: numbers 2 and 3 of docs/wire-format.md."""

import struct

from slow_rejection import require


def chunk_lengths(n):
    return [262144] * (n // 262144) + [n % 262144] * (n % 262144 > 0)


def rans_contexts(code, bits):
    return 1 if code == 2 else 2 ** min(bits, 4)


def rans_states(code, length):
    return min(128, length if code == 2 else (length + 511) // 512)


def check_rans_length(code, n, bits, length):
    if n == 0:
        require(length == 0, "payload")
        return
    full, rest = divmod(n, 262144)
    chunks = full + (rest > 0)
    states = 128 * full + rans_states(code, rest)
    least = 2 * rans_contexts(code, bits) * 2**bits + 4 * chunks + 4 * states
    require(least <= length <= least + 2 * n, "payload")


def rans_table(payload, start, count):
    frequencies = struct.unpack_from(f"<{count}H", payload, start)
    require(sum(frequencies) == 4096, "frequencies")
    slots = []
    for symbol, frequency in enumerate(frequencies):
        slots += [(symbol, frequency, place) for place in range(frequency)]
    return slots


class RansChunk:
    def __init__(self, data, count):
        self.states = list(struct.unpack_from(f"<{count}I", data))
        for state in self.states:
            require(2**15 <= state < 2**31, "state")
        self.words = [word for (word,) in struct.iter_unpack("<H", data[4 * count :])]
        self.used = 0

    def take(self, number, slots):
        symbol, frequency, place = slots[self.states[number] % 4096]
        state = frequency * (self.states[number] // 4096) + place
        if state < 2**15:
            require(self.used < len(self.words), "words")
            state = state * 2**16 + self.words[self.used]
            self.used += 1
        self.states[number] = state
        return symbol

    def end(self):
        require(self.used == len(self.words), "words left")
        require(set(self.states) <= {2**15}, "end of a state")


def rans_chunks(code, n, payload, start):
    lengths = chunk_lengths(n)
    counts = [rans_states(code, length) for length in lengths]
    words = struct.unpack_from(f"<{len(lengths)}I", payload, start)
    place = start + 4 * len(lengths)
    sizes = [4 * count + 2 * size for count, size in zip(counts, words, strict=True)]
    require(place + sum(sizes) == len(payload), "sizes")
    for length, count, size in zip(lengths, counts, sizes, strict=True):
        yield length, RansChunk(payload[place : place + size], count)
        place += size


def rans_order(length):
    """Place, block and component of all components in the order of codec 3."""
    for first in range(0, length, 512 * 128):
        for e in range(512):
            for block in range(first, min(first + 512 * 128, length), 512):
                if block + e < length:
                    yield block + e, block // 512, e


def rans_symbols(code, n, bits, payload):
    if n == 0:
        return []
    contexts = rans_contexts(code, bits)
    row = 2 * 2**bits
    tables = [rans_table(payload, row * context, 2**bits) for context in range(contexts)]
    symbols = []
    for length, chunk in rans_chunks(code, n, payload, row * contexts):
        if code == 2:
            found = [chunk.take(e % 128, tables[0]) for e in range(length)]
        else:
            found = [0] * length
            for place, block, e in rans_order(length):
                context = found[place - 1] >> max(bits - 4, 0) if e > 0 else 0
                found[place] = chunk.take(block % 128, tables[context])
        chunk.end()
        symbols += found
    return symbols
