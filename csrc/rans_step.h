// One symbol in and out of each of sixteen states, or of one.
#pragma once
#include "lane_mask.h"
#include "rans.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr uint32_t kTotal = 1u << kTotalBits;
constexpr int kFullBits = 31 - kTotalBits;  // a state of frequency << 19 or more gives a word away

// What the coder knows of Size symbols (or of Size pairs of a context and a symbol). Bit patterns of
// words travel as floats.
template <int Size>
struct CodeTable {
  float intervals[Size] = {};    // frequency, and the first slot 16 bits up
  float reciprocals[Size] = {};  // a little less than 1 / frequency

  // Symbols [first, first + count), whose frequencies add up to kTotal or are all zero.
  void fill(int first, int count, const uint16_t* frequencies) {
    uint32_t start = 0;
    for (int i = 0; i < count; ++i) {
      const uint32_t frequency = frequencies[i], interval = frequency | start << 16;
      __builtin_memcpy(intervals + first + i, &interval, sizeof interval);
      // Quotients below 2^19 come out right or one too small, whatever the rounding.
      reciprocals[first + i] = frequency == 0 ? 0.0f : (1.0f - 0x1p-21f) / frequency;
      start += frequency;
    }
  }
  uint32_t interval(uint32_t index) const {
    uint32_t word;
    __builtin_memcpy(&word, intervals + index, sizeof word);
    return word;
  }
};

// The states after symbols of this frequency, first slot, and a little less than 1 / frequency; words
// given away go before `to`.
SLIMGRAD_INLINE Words pushed(Words x, Words frequency, Words start, Floats reciprocal,
                             uint8_t*& to) {
  const LaneMask full = not_below(x, frequency << kFullBits);
  to = prepend(to, full, x);
  x = down_where(full, x);
  const Words quotient = truncated(to_floats(x) * reciprocal);
  const Words rest = x - quotient * frequency, spare = all_words(kTotal) - frequency;
  const Words next = x + start + quotient * spare;
  return plus_where(not_below(rest, frequency), next, spare);
}

// A table in registers, if it is small.
template <int Size>
class SymbolCoder {
 public:
  explicit SLIMGRAD_INLINE SymbolCoder(const CodeTable<Size>& table)
      : intervals_(table.intervals), reciprocals_(table.reciprocals) {}
  SLIMGRAD_INLINE Words push(Words x, Words index, uint8_t*& to) const {
    const Words interval = as_words(intervals_[index]);
    return pushed(x, interval & all_words(0xFFFF), interval >> 16, reciprocals_[index], to);
  }

 private:
  Lookup<Size> intervals_, reciprocals_;
};

inline uint32_t push_one(uint32_t x, uint32_t interval, uint8_t*& to) {
  const uint32_t frequency = interval & 0xFFFF;
  if (x > (frequency << kFullBits) - 1) {
    *--to = static_cast<uint8_t>(x >> 8);
    *--to = static_cast<uint8_t>(x);
    x >>= 16;
  }
  return (x / frequency << kTotalBits) + x % frequency + (interval >> 16);
}

// What the decoder knows of every slot: symbol, frequency - 1 and place among the symbol's slots,
// from the highest bits down.
inline void fill_slots(const uint16_t* frequencies, int count, float* slots) {
  for (int symbol = 0; symbol < count; ++symbol) {
    for (uint32_t i = 0; i < frequencies[symbol]; ++i, ++slots) {
      const uint32_t slot = static_cast<uint32_t>(symbol) << 24 | (frequencies[symbol] - 1u) << 12 | i;
      __builtin_memcpy(slots, &slot, sizeof slot);
    }
  }
}

// The symbols that the states of two vectors stand for, their frequencies, and the places of the
// states' slots among the symbols' own.
struct Found {
  Words symbol, frequency, place;
};
struct FoundPair {
  Found first, second;
  // The symbols, if they are below 16: the second four bits above the first.
  SLIMGRAD_INLINE Words nibbles() const { return first.symbol | (second.symbol << 4); }
};

// By a table of all slots, Size of them with all contexts.
template <int Size>
class SlotTable {
 public:
  explicit SLIMGRAD_INLINE SlotTable(const float* slots) : slots_(slots) {}
  SLIMGRAD_INLINE FoundPair find(Words first, Words second) const {
    return {find(first), find(second)};
  }
  SLIMGRAD_INLINE FoundPair find(Words first, Words second, Words first_context,
                                 Words second_context) const {
    const Words low = all_words(kTotal - 1);
    return {find((first & low) | (first_context << kTotalBits)),
            find((second & low) | (second_context << kTotalBits))};
  }

 private:
  SLIMGRAD_INLINE Found find(Words index) const {
    const Words slot = as_words(slots_[index]), low = all_words(kTotal - 1);
    return {slot >> 24, ((slot >> 12) & low) + all_words(1), slot & low};
  }
  Lookup<Size> slots_;
};

// Takes the symbols off the states; states that become too small take the next words.
SLIMGRAD_INLINE Words pull(Words x, const Found& found, const uint8_t*& next) {
  x = found.frequency * (x >> kTotalBits) + found.place;
  const LaneMask low = above(all_words(kLeastState), x);
  const Words word = take(next, low);
  return up_where(low, x) | word;
}

inline uint32_t pull_one(uint32_t x, uint32_t slot, const uint8_t*& next) {
  x = ((slot >> 12 & (kTotal - 1)) + 1) * (x >> kTotalBits) + (slot & (kTotal - 1));
  if (x >= kLeastState) return x;
  x = x << 16 | next[0] | static_cast<uint32_t>(next[1]) << 8;
  next += 2;
  return x;
}

// The words of a chunk. A row of kStates symbols may take kStates words, whether there are any or
// not: near the end they are taken from a copy with room behind it.
class WordQueue {
 public:
  WordQueue(const uint8_t* begin, const uint8_t* end) : next_(begin), end_(end) {}
  // Where the words of the next row begin.
  SLIMGRAD_INLINE const uint8_t* open_row() {
    if (end_ - next_ < kRow && !is_copy_) move_to_copy();
    return next_;
  }
  // False when the row took more words than there were.
  SLIMGRAD_INLINE bool close_row(const uint8_t* next) {
    next_ = next;
    return next_ <= end_;
  }
  bool is_empty() const { return next_ == end_; }

 private:
  static constexpr int64_t kRow = 2 * kStates + 32;  // vectors are read whole
  __attribute__((noinline)) void move_to_copy() {
    const int64_t left = end_ - next_;
    __builtin_memcpy(copy_, next_, static_cast<size_t>(left));
    next_ = copy_;
    end_ = copy_ + left;
    is_copy_ = true;
  }
  const uint8_t *next_, *end_;
  bool is_copy_ = false;
  uint8_t copy_[2 * kRow] = {};
};

inline void store_states(const uint32_t* states, int count, uint8_t* to) {
  for (int i = 0; i < count; ++i)
    for (int byte = 0; byte < 4; ++byte) *to++ = static_cast<uint8_t>(states[i] >> (8 * byte));
}
// False when one is out of range.
inline bool load_states(const uint8_t* from, int count, uint32_t* states) {
  bool in_range = true;
  for (int i = 0; i < count; ++i, from += 4) {
    states[i] = from[0] | static_cast<uint32_t>(from[1]) << 8 |
                static_cast<uint32_t>(from[2]) << 16 | static_cast<uint32_t>(from[3]) << 24;
    in_range &= states[i] >= kLeastState && states[i] >> 31 == 0;
  }
  return in_range;
}
inline void start_states(uint32_t* states) {
  for (int i = 0; i < kStates; ++i) states[i] = kLeastState;
}
inline bool is_start(const uint32_t* states, int count) {
  for (int i = 0; i < count; ++i)
    if (states[i] != kLeastState) return false;
  return true;
}

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad
