"""A second decoder, written from docs/wire-format.md alone: integers and struct, nothing else.

It shares no line with the package, so that both must have understood the document alike.
"""

import math
import struct
from itertools import zip_longest

import slow_nested_frames as nested_frames
from slow_rans import check_rans_length, rans_symbols
from slow_rejection import RejectedError as RejectedError
from slow_rejection import require

PLANES = {1: (1,), 2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 7: (4, 2, 1), 8: (8,)}
PREFIX = (7, 8)
ELIAS = {4: "gamma", 5: "delta", 6: "omega"}
VALUE_FORMATS = {1: ("<f", 4), 2: ("<e", 2), 3: (None, 2), 4: ("<d", 8)}


def crc32(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def to_float32(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def read_fields(data):
    require(len(data) >= 64, "short")
    names = (
        "magic version size method code grid bits norm flags bucket n key scales payload table "
        "dtype transform reserved checksum"
    )
    fields = dict(zip(names.split(), struct.unpack("<4s8BIQQQQIBB6sI", data[:64]), strict=True))
    require(fields["magic"] == b"SGRD", "magic")
    require(fields["version"] == 2, "version")
    require(fields["size"] == 64, "header size")
    require(fields["reserved"] == bytes(6), "reserved")
    require(fields["flags"] in (0, 1), "flags")
    require(fields["n"] <= 2**40, "n")
    require(fields["method"] in (0, 1, 2, 3), "method")
    return fields


def check_fields(fields):
    if fields["method"] in (2, 3):
        nested_frames.check_fields(fields, require)
        return
    if fields["method"] == 0:
        for name in (
            "code",
            "grid",
            "bits",
            "norm",
            "bucket",
            "key",
            "scales",
            "table",
            "transform",
        ):
            require(fields[name] == 0, name)
        require(fields["dtype"] in VALUE_FORMATS, "dtype")
        require(fields["payload"] == fields["n"] * VALUE_FORMATS[fields["dtype"]][1], "payload")
        return
    n, bits = fields["n"], fields["bits"]
    require(fields["code"] in (0, 1, 2, 3, *ELIAS, *PREFIX), "code")
    require(fields["grid"] in (1, 2, 3, 4, 5), "grid")
    require((1 if fields["grid"] == 4 else 2) <= bits <= 8, "bits")
    require(1 <= fields["norm"] <= 7, "norm")
    require(1 <= fields["bucket"] <= 2**31 - 1, "bucket size")
    require(fields["dtype"] == 0, "dtype")
    require(fields["transform"] in (0, 1, 2), "transform")
    require((fields["grid"] == 5) == (fields["transform"] == 1), "integers and dither")
    require(fields["scales"] == 4 * ((n + fields["bucket"] - 1) // fields["bucket"]), "scales")
    if fields["transform"] == 2:
        require(fields["grid"] == 4 and bits <= 4 and fields["bucket"] == 512, "rotation")
        n = (n + 511) // 512 * 512
    if fields["grid"] == 3:
        m, rest = divmod(fields["table"], 4)
        require(rest == 0 and 1 <= m <= 2 ** (bits - 1) - 1, "table")
    elif fields["grid"] == 4:
        require(fields["table"] == 4 * 2 ** (bits - 1), "table")
    else:
        require(fields["table"] == 0, "table")
    if fields["code"] in (2, 3):
        check_rans_length(fields["code"], n, bits, fields["payload"])
        return
    least, most = payload_bounds(fields["code"], n, bits)
    require(least <= fields["payload"] <= most, "payload")


def payload_bounds(code, n, bits):
    if code == 0:
        return n, n
    if code in ELIAS:
        return elias_bounds(ELIAS[code], n, bits)
    if code in PREFIX:
        return prefix_bounds(code, n, bits)
    fixed = n // 512 * 64 * bits + (n % 512 * bits + 7) // 8
    return fixed, fixed


def levels_of(fields, table):
    top = 2 ** (fields["bits"] - 1) - 1
    if fields["grid"] == 1:
        return [0.0] + [to_float32(j / top) for j in range(1, top + 1)]
    if fields["grid"] == 2:
        return [0.0] + [2.0 ** (j - top) for j in range(1, top + 1)]
    if fields["grid"] == 5:
        return [float(j) for j in range(top + 1)]
    levels = [0.0, *(value for (value,) in struct.iter_unpack("<f", table))]
    for j in range(1, len(levels)):
        require(levels[j - 1] < levels[j], "table order")
    require(levels[-1] == 1.0, "table end")
    return levels[1:] if fields["grid"] == 4 else levels


def fixed_symbol(payload, component, n, bits):
    block, e = divmod(component, 512)
    if component < n // 512 * 512:
        lane, slot = e % 16, e // 16
        start = block * 64 * bits
        symbol = shift = 0
        for width in PLANES[bits]:
            group = 32 // width
            dword_at = start + 4 * (16 * (slot // group) + lane)
            (dword,) = struct.unpack_from("<I", payload, dword_at)
            symbol |= (dword >> (slot % group * width) & ((1 << width) - 1)) << shift
            shift += width
            start += 64 * width
        return symbol
    tail = int.from_bytes(payload[n // 512 * 64 * bits :], "little")
    return tail >> (e * bits) & ((1 << bits) - 1)


def symbols_of(fields, payload):
    n, bits = fields["n"], fields["bits"]
    if fields["transform"] == 2:
        n = (n + 511) // 512 * 512
    if fields["code"] in (2, 3):
        return rans_symbols(fields["code"], n, bits, payload)
    if fields["code"] == 0:
        for byte in payload:
            require(byte < 1 << bits, "symbol too wide")
        return list(payload)
    if fields["code"] in ELIAS:
        return elias_symbols(ELIAS[fields["code"]], payload, n, bits)
    if fields["code"] in PREFIX:
        return prefix_symbols(fields["code"], payload, n, bits)
    tail = int.from_bytes(payload[n // 512 * 64 * bits :], "little")
    require(tail < 1 << (n % 512 * bits), "bits behind the last component")
    return [fixed_symbol(payload, e, n, bits) for e in range(n)]


class BitString:
    def __init__(self, data):
        self.digits = "".join(f"{octet:08b}" for octet in data)
        self.at = 0

    def take(self, count):
        require(self.at + count <= len(self.digits), "string ends")
        taken = self.digits[self.at : self.at + count]
        self.at += count
        return taken

    def end(self):
        rest = self.digits[self.at :]
        require(len(rest) < 8 and "1" not in rest, "behind the string")


def elias_length(code, k):
    width = len(f"{k:b}")
    if code == "gamma":
        return 2 * width - 1
    if code == "delta":
        return elias_length("gamma", width) + width - 1
    return 1 if k == 1 else elias_length("omega", width - 1) + width


def elias_number(code, string):
    if code == "omega":
        k = 1
        while string.take(1) == "1":
            require(k + 1 <= 17, "digits")
            k = int("1" + string.take(k), 2)
        return k
    width = 1
    while string.take(1) == "0":
        width += 1
        require(width <= 17, "digits")
    k = int("1" + string.take(width - 1), 2)
    if code == "gamma":
        return k
    require(k <= 17, "digits")
    return int("1" + string.take(k - 1), 2)


def elias_bounds(code, n, bits):
    full, rest = divmod(n, 65536)
    least = full * elias_length(code, 65537) + (elias_length(code, rest + 1) if rest else 0)
    most = n * (2 + elias_length(code, 2 ** (bits - 1))) + full + (rest > 0)
    return (least + 7) // 8, (most + 7) // 8


def elias_symbols(code, payload, n, bits):
    string, symbols, top = BitString(payload), [], 2 ** (bits - 1)
    while len(symbols) < n:
        segment = [0] * min(65536, n - len(symbols))
        place = elias_number(code, string)
        while place != len(segment) + 1:
            require(place <= len(segment), "gap")
            sign = int(string.take(1))
            j = elias_number(code, string)
            require(j <= top and (j < top or sign == 1), "level")
            segment[place - 1] = sign * top + j % top
            place += elias_number(code, string)
        symbols += segment
    string.end()
    return symbols


def prefix_streams(code, n, bits):
    """Symbols in a unit, and the numbers of units of the streams, chunk by chunk."""
    group = 2 if code == 8 and bits <= 4 else 1
    streams = []
    for first in range(0, n, 65536):
        units = (min(65536, n - first) + group - 1) // group
        streams += [len(range(s, units, 8)) for s in range(8)]
    return group, streams


def prefix_bounds(code, n, bits):
    group, streams = prefix_streams(code, n, bits)
    head = 2 ** (bits * group) // 2 + 2 * len(streams) if n else 0
    return tuple(head + sum((word * k + 7) // 8 for k in streams) for word in (1, 12))


def prefix_words(lengths):
    used = [length for length in lengths if length]
    require(max(used, default=0) <= 12, "length")
    require(used == [1] or sum(2 ** (12 - length) for length in used) == 2**12, "code")
    words, number = {}, 0
    for length in range(1, 13):
        for unit, own in enumerate(lengths):
            if own == length:
                words[f"{number:0{length}b}"] = unit
                number += 1
        number *= 2
    return words


def prefix_symbols(code, payload, n, bits):
    if n == 0:
        return []
    group, streams = prefix_streams(code, n, bits)
    table = 2 ** (bits * group) // 2
    words = prefix_words([half for octet in payload[:table] for half in (octet % 16, octet // 16)])
    sizes = [
        size for (size,) in struct.iter_unpack("<H", payload[table : table + 2 * len(streams)])
    ]
    at = table + 2 * len(streams)
    require(at + sum(sizes) == len(payload), "sizes")
    read = []
    for size, count in zip(sizes, streams, strict=True):
        string, units = BitString(payload[at : at + size]), []
        at += size
        while len(units) < count:
            word = string.take(1)
            while word not in words:
                require(len(word) < 12, "word")
                word += string.take(1)
            units.append(words[word])
        string.end()
        read.append(units)
    symbols = []
    for chunk in range(0, len(read), 8):
        units = [unit for row in zip_longest(*read[chunk : chunk + 8]) for unit in row]
        for unit in units:
            if unit is not None:
                symbols += [unit % 2**bits, unit >> bits][:group]
    require(not any(symbols[n:]), "behind the last symbol")
    return symbols[:n]


def raw_values(fields, payload):
    form, _ = VALUE_FORMATS[fields["dtype"]]
    if form is not None:
        return [value for (value,) in struct.iter_unpack(form, payload)]
    return [
        struct.unpack("<f", struct.pack("<I", upper << 16))[0]
        for (upper,) in struct.iter_unpack("<H", payload)
    ]


def random_word(key, chunk, place):
    z = (key + (chunk + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    z ^= z >> 31
    x = (place * 0x9E3779B9 + z % 2**32) % 2**32
    x ^= x >> 16
    x = x * 0x7FEB352D % 2**32
    x ^= x >> 15
    x ^= z >> 32
    x = x * 0x846CA68B % 2**32
    return x ^ (x >> 16)


def hadamard(values):
    values = list(values)
    for power in range(9):
        d = 1 << power
        for e in range(512):
            if not e & d:
                low, high = values[e], values[e + d]
                values[e], values[e + d] = to_float32(low + high), to_float32(low - high)
    return values


def with_signs(values, key, block, turn):
    first = 32 * (block % 128) + 16 * turn
    words = [random_word(key, block // 128, first + lane) for lane in range(16)]
    return [-v if words[e % 16] >> (e // 16) & 1 else v for e, v in enumerate(values)]


def rotated_values(fields, levels, scales, symbols):
    sign = 1 << (fields["bits"] - 1)
    values = []
    for block, scale in enumerate(scales):
        part = symbols[512 * block : 512 * block + 512]
        w = [-levels[s % sign] if s & sign else levels[s % sign] for s in part]
        if scale != scale:
            values += [scale] * 512
            continue
        if struct.unpack("<I", struct.pack("<f", scale))[0] & 1:
            w = with_signs(hadamard(w), fields["key"], block, 1)
        w = [to_float32(scale * v) for v in hadamard(w)]
        values += with_signs(w, fields["key"], block, 0)
    return values[: fields["n"]]


def dither_at(key, e):
    """u of component e, a fraction with denominator 2^17."""
    i = e % 65536
    x = random_word(key, e // 65536, 16 * (i // 32) + i % 16)
    r = x % 2**16 if i // 16 % 2 == 0 else x >> 16
    return (r + 0.5) / 2**16 - 0.5


def undithered(scale, k, u):
    """scale (k - u) in float32; exact in float64, so rounded once."""
    if scale != scale:
        return scale
    most = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    return to_float32(max(-most, min(most, scale * (k - u))))


def decode(data, limit=2**25, inside=False):
    """The values of the one frame in ``data`` (bytes) as Python floats, or RejectedError.

    ``limit`` is the most components taken of a frame whose bytes do not pay for them.
    """
    fields = read_fields(data)
    require(not inside or fields["method"] in (0, 1), "method inside")
    check_fields(fields)
    scales_at = 64 + fields["table"]
    payload_at = scales_at + fields["scales"]
    require(len(data) == payload_at + fields["payload"], "length")
    require(crc32(data[:60] + data[64:]) == fields["checksum"], "checksum")
    payload = data[payload_at:]
    if fields["method"] in (2, 3):
        require(fields["n"] <= limit, "limit")
        section = data[scales_at:payload_at]
        parts = [section, payload] if fields["method"] == 3 else [payload]
        inner = [decode(part, inside=True) for part in parts]
        inner = [[nested_frames.rounded(v, to_float32) for v in values] for values in inner]
        require(fields["flags"] == max(part[11] for part in parts), "flag")
        if fields["method"] == 3:
            return nested_frames.product(fields, *inner, require, to_float32)
        return nested_frames.scattered(fields, section, *inner, require)
    if fields["method"] == 0:
        return raw_values(fields, payload)
    levels = levels_of(fields, data[64:scales_at])
    scales = [value for (value,) in struct.iter_unpack("<f", data[scales_at:payload_at])]
    for scale in scales:
        require(scale != scale or 0 <= scale < float("inf"), "scale")
    require(fields["flags"] == any(scale != scale for scale in scales), "flag")
    if fields["transform"] == 2:
        return rotated_values(fields, levels, scales, symbols_of(fields, payload))
    sign = 1 << (fields["bits"] - 1)
    values = []
    for component, symbol in enumerate(symbols_of(fields, payload)):
        scale = scales[component // fields["bucket"]]
        require(symbol % sign < len(levels), "level")
        if fields["transform"] == 1:
            k = -(symbol % sign) if symbol & sign else symbol
            values.append(undithered(scale, k, dither_at(fields["key"], component)))
            continue
        magnitude = scale if scale != scale else to_float32(scale * levels[symbol % sign])
        values.append(-magnitude if symbol & sign else magnitude)
    return values
