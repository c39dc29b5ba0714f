"""Sparse and low-rank frames for the second decoder, from docs/wire-format.md alone."""

WIDE = 2**64 - 1


def check_fields(fields, require):
    zero = ["table", "dtype", "transform", "grid", "norm"]
    if fields["method"] == 2:
        zero += ["bucket"]
        require(fields["n"] < 2**32, "n")
        require(fields["code"] in (1, 2), "code")
        require(fields["bits"] <= (31 if fields["code"] == 1 else 0), "bits")
        require(fields["code"] == 2 or fields["key"] == 0, "key")
    else:
        zero += ["code", "bits", "key"]
        require(1 <= fields["bucket"] < 2**31, "columns")
        require(fields["n"] % fields["bucket"] == 0, "rows")
    for name in zero:
        require(fields[name] == 0, name)


def bits_of(data):
    return [byte >> i & 1 for byte in data for i in range(8)]


def scattered(fields, section, kept, require):
    n, k = fields["n"], len(kept)
    require(k <= n, "k")
    if fields["code"] == 1:
        places = from_gaps(section, fields["bits"], k, n, require)
    else:
        require(len(section) == 0, "stream")
        places = from_stream(fields["key"], k, n)
    require(len(places) == k, "count")
    values = [0.0] * n
    before = -1
    for place, value in zip(places, kept, strict=True):
        require(before < place < n, "order")
        values[place] = value
        before = place
    return values


def from_gaps(section, low, k, n, require):
    unary_bytes = len(section) - (k * low + 7) // 8
    require(unary_bytes >= 0, "low bits")
    unary, lows = bits_of(section[:unary_bytes]), bits_of(section[unary_bytes:])
    require(sum(unary) == k, "quotients")
    require(unary_bytes == 0 or any(unary[-8:]), "last quotient")
    require(not any(lows[k * low :]), "behind the low bits")
    places, place, quotient = [], -1, 0
    for bit in unary:
        if bit == 0:
            quotient += 1
            continue
        at = len(places) * low
        rest = sum(b << i for i, b in enumerate(lows[at : at + low]))
        place += (quotient << low) + rest + 1
        require(place < n, "beyond the end")
        places.append(place)
        quotient = 0
    return places


def from_stream(key, k, n):
    places = []
    for j in range(k):
        z = (key + (j + 1) * 0x9E3779B97F4A7C15) & WIDE
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WIDE
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WIDE
        word = (z ^ (z >> 31)) >> 32
        begin, end = j * n // k, (j + 1) * n // k
        places.append(begin + (word * (end - begin) >> 32))
    return places


def product(fields, left, right, require, to_float32):
    columns = fields["bucket"]
    rows = fields["n"] // columns
    rank = len(right) // columns
    require(len(right) == rank * columns and len(left) == rank * rows, "factors")
    require(rank <= min(rows, columns), "rank")
    values = []
    for i in range(rows):
        for c in range(columns):
            total = 0.0
            for j in range(rank):
                term = rounded(left[i * rank + j] * right[c * rank + j], to_float32)
                total = rounded(total + term, to_float32) if j else term
            values.append(total)
    return values


def rounded(value, to_float32):
    try:
        return to_float32(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
