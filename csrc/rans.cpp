// Symbols coded without context: component e of a chunk in state e mod 128, so that sixteen lanes
// of the packed layout are sixteen states.
#include "rans.h"

#include <type_traits>

#include "lane_layout.h"
#include "rans_chunks.h"
#include "slot_search.h"
#include "state_vectors.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kParts = kBlock / kStates;

int states_of(int64_t symbols) { return symbols < kStates ? static_cast<int>(symbols) : kStates; }

// The symbols of a part of a block, one a lane of each of its vectors.
class NibblePart {
 public:
  SLIMGRAD_INLINE NibblePart(const uint8_t* block, int, uint32_t*) : block_(block) {}
  SLIMGRAD_INLINE void open(int part) { dword_ = load_words(block_ + part * 64); }
  // Bits above the lowest four belong to others.
  SLIMGRAD_INLINE Words symbols(int vector) const { return dword_ >> (4 * vector); }

 private:
  const uint8_t* block_;
  Words dword_{};
};
class AnyPart {
 public:
  SLIMGRAD_INLINE AnyPart(const uint8_t* block, int bits, uint32_t* buffer) : part_(buffer) {
    unpack_block(block, bits, buffer);
    buffer_ = buffer;
  }
  SLIMGRAD_INLINE void open(int part) { part_ = buffer_ + part * kStates; }
  SLIMGRAD_INLINE Words symbols(int vector) const { return load_words(part_ + 16 * vector); }

 private:
  const uint32_t *buffer_, *part_;
};

template <typename Part, int Size>
uint8_t* encode_chunk(const EncodeArgs& args, const CodeTable<Size>& table, int64_t chunk,
                      uint8_t* to, const uint8_t* limit) {
  alignas(64) uint32_t states[kStates], symbols[kBlock];
  const SymbolCoder<Size> coder(table);
  const int bits = args.code.bits;
  const int64_t count = chunk_symbols(args.code.n, chunk), blocks = count / kBlock;
  const uint8_t* in = chunk_start(args.packed, args.code, chunk);
  start_states(states);
  const int rest = static_cast<int>(count % kBlock);
  if (rest > 0) unpack_bit_string(in + blocks * block_bytes(bits), rest, bits, symbols);
  for (int e = rest - 1; e >= 0; --e)
    states[e % kStates] = push_one(states[e % kStates], table.interval(symbols[e]), to);
  StateVectors vectors(states);
  for (int64_t block = blocks - 1; block >= 0; --block) {
    Part reader(in + block * block_bytes(bits), bits, symbols);
    if (to < limit) return nullptr;
    for (int part = kParts - 1; part >= 0; --part) {
      reader.open(part);
      vectors.each_down([&](auto i, Words& x) __attribute__((always_inline)) {
        x = coder.push(x, reader.symbols(i.value), to);
      });
    }
  }
  vectors.store_to(states);
  return finish_chunk(states, states_of(count), to, limit);
}

template <typename Part, int Size>
int64_t encode_all(const EncodeArgs& args) {
  CodeTable<Size> table;
  table.fill(0, 1 << args.code.bits, args.code.frequencies);
  return encode_chunks(args, states_of, [&](int64_t chunk, uint8_t* to, const uint8_t* limit) {
    return encode_chunk<Part>(args, table, chunk, to, limit);
  });
}

class NibbleSink {
 public:
  SLIMGRAD_INLINE NibbleSink(uint8_t* block, int, uint32_t*) : block_(block) {}
  template <typename Pair>
  SLIMGRAD_INLINE void put(int vector, const Pair& found) {
    dword_ = vector == 0 ? found.nibbles() : dword_ | (found.nibbles() << (4 * vector));
  }
  SLIMGRAD_INLINE void close(int part) { store(block_ + part * 64, dword_); }
  SLIMGRAD_INLINE void end() {}

 private:
  uint8_t* block_;
  Words dword_{};
};
class AnySink {
 public:
  SLIMGRAD_INLINE AnySink(uint8_t* block, int bits, uint32_t* buffer)
      : block_(block), bits_(bits), buffer_(buffer), part_(buffer) {}
  template <typename Pair>
  SLIMGRAD_INLINE void put(int vector, const Pair& found) {
    store(part_ + 16 * vector, found.first.symbol);
    store(part_ + 16 * vector + 16, found.second.symbol);
  }
  SLIMGRAD_INLINE void close(int) { part_ += kStates; }
  SLIMGRAD_INLINE void end() { pack_block(buffer_, bits_, block_); }

 private:
  uint8_t* block_;
  int bits_;
  uint32_t *buffer_, *part_;
};

// The last count % kBlock symbols, which are not in vectors.
bool decode_rest(const DecodeArgs& args, const float* slots, int rest, uint32_t* states,
                 WordQueue& words, uint8_t* out) {
  uint32_t symbols[kBlock];
  for (int e = 0; e < rest; ++e) {
    uint32_t slot;
    __builtin_memcpy(&slot, slots + states[e % kStates] % kTotal, sizeof slot);
    const uint8_t* next = words.open_row();
    states[e % kStates] = pull_one(states[e % kStates], slot, next);
    if (!words.close_row(next)) return false;
    symbols[e] = slot >> 24;
  }
  if (rest > 0) pack_bit_string(symbols, rest, args.code.bits, out);
  return true;
}

template <typename Sink, typename Finder>
bool decode_chunk(const DecodeArgs& args, const float* slots, const Finder& finder, int64_t chunk,
                  const uint8_t* begin, const uint8_t* end) {
  alignas(64) uint32_t states[kStates], symbols[kBlock];
  const int bits = args.code.bits;
  const int64_t count = chunk_symbols(args.code.n, chunk), blocks = count / kBlock;
  uint8_t* out = args.packed + chunk * (kChunkSymbols / kBlock) * block_bytes(bits);
  start_states(states);
  if (!load_states(begin, states_of(count), states)) return false;
  WordQueue words(begin + 4 * states_of(count), end);
  StateVectors vectors(states);
  for (int64_t block = 0; block < blocks; ++block, out += block_bytes(bits)) {
    Sink sink(out, bits, symbols);
    for (int part = 0; part < kParts; ++part) {
      const uint8_t* next = words.open_row();
      vectors.each_pair([&](auto i, Words& x, Words& y) __attribute__((always_inline)) {
        const auto found = finder.find(x, y);
        sink.put(i.value, found);
        x = pull(x, found.first, next);
        y = pull(y, found.second, next);
      });
      if (!words.close_row(next)) return false;
      sink.close(part);
    }
    sink.end();
  }
  vectors.store_to(states);
  return decode_rest(args, slots, static_cast<int>(count % kBlock), states, words, out) &&
         words.is_empty() && is_start(states, kStates);
}

}  // namespace

int64_t rans_encode(const EncodeArgs& args) {
  if (args.code.bits == 4) return encode_all<NibblePart, 16>(args);
  if (args.code.bits < 4) return encode_all<AnyPart, 16>(args);
  return encode_all<AnyPart, 256>(args);
}

void rans_decode(const DecodeArgs& args) {
  alignas(64) float slots[kTotal];
  fill_slots(args.code.frequencies, 1 << args.code.bits, slots);
  const auto decode_with = [&](const auto& finder) {
    using Finder = std::decay_t<decltype(finder)>;
    const auto decode =
        args.code.bits == 4 ? decode_chunk<NibbleSink, Finder> : decode_chunk<AnySink, Finder>;
    decode_chunks(args, [&](int64_t chunk, const uint8_t* begin, const uint8_t* end) {
      return decode(args, slots, finder, chunk, begin, end);
    });
  };
#if defined(SLIMGRAD_ISA_avx512)
  if (args.code.bits <= 4) return decode_with(SlotSearch(args.code.frequencies, 1 << args.code.bits));
#endif
  decode_with(SlotTable<kTotal>(slots));
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad
