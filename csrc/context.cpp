// Symbols coded behind the one before: block b of a chunk in state b mod 128, so that the lanes of
// a vector are at the same component of different blocks.
#include "context_lanes.h"
#include "context_search.h"
#include "rans.h"
#include "rans_chunks.h"

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

constexpr int kSmallTable = 256, kLargeTable = 4096;  // up to 4 bits, and up to 8

int states_of(int64_t symbols) {
  const int64_t blocks = (symbols + kBlock - 1) / kBlock;
  return blocks < kStates ? static_cast<int>(blocks) : kStates;
}

// Pairs of vectors one after the other, by tables in memory.
template <int Size>
class MemoryCoder {
 public:
  MemoryCoder(const CodeTable<Size>& table, int bits) : coder_(table), bits_(bits) {}
  SLIMGRAD_INLINE void push(Words& first, Words& second, Words first_symbol, Words second_symbol,
                            Words first_context, Words second_context, uint8_t*& to) const {
    second = coder_.push(second, second_symbol | (second_context << bits_), to);
    first = coder_.push(first, first_symbol | (first_context << bits_), to);
  }

 private:
  SymbolCoder<Size> coder_;
  int bits_;
};

template <typename Coder, int Size>
uint8_t* encode_round(const CodeArgs& code, const Round& round, const CodeTable<Size>& table,
                      const Coder& coder, BlockLanes& lanes, uint32_t* states, uint8_t* to,
                      const uint8_t* limit) {
  // Known to be 0 where it costs time.
  const int drop = Size == kSmallTable ? 0 : dropped_bits(code.bits);
  for (int e = kBlock - 1; e >= 0; --e) {
    if (to < limit) return nullptr;
    const auto step = lanes.step(e), before = lanes.step(e - 1);
    for (int lane = round.lanes - 1; lane >= 16 * round.vectors; --lane) {
      if (e >= round.components(lane)) continue;
      const uint32_t index = step.symbol(lane) | before.symbol(lane) >> drop << code.bits;
      states[lane] = push_one(states[lane], table.interval(index), to);
    }
    for (int vector = round.vectors - 2; vector >= 0; vector -= 2) {
      Words first = load_words(states + 16 * vector), second = load_words(states + 16 * vector + 16);
      coder.push(first, second, step.symbols(vector), step.symbols(vector + 1),
                 before.symbols(vector) >> drop, before.symbols(vector + 1) >> drop, to);
      store(states + 16 * vector, first);
      store(states + 16 * vector + 16, second);
    }
  }
  return to;
}

template <typename Coder, int Size>
uint8_t* encode_chunk(const EncodeArgs& args, const CodeTable<Size>& table, const Coder& coder,
                      int64_t chunk, uint8_t* to, const uint8_t* limit) {
  alignas(64) uint32_t states[kStates];
  const int64_t count = chunk_symbols(args.code.n, chunk);
  const uint8_t* in = chunk_start(args.packed, args.code, chunk);
  BlockLanes lanes(args.code.bits);
  start_states(states);
  for (int64_t number = round_count(count) - 1; number >= 0; --number) {
    const Round round(count, number);
    for (int lane = 0; lane < round.lanes; ++lane)
      lanes.read(lane, in + (round.first + lane) * block_bytes(args.code.bits),
                 round.components(lane));
    to = encode_round(args.code, round, table, coder, lanes, states, to, limit);
    if (to == nullptr) return nullptr;
  }
  return finish_chunk(states, states_of(count), to, limit);
}

template <int Size>
int64_t encode_all(const EncodeArgs& args) {
  CodeTable<Size> table;
  const int bits = args.code.bits;
  for (int context = 0; context < context_count(bits); ++context)
    table.fill(context << bits, 1 << bits, args.code.frequencies + (context << bits));
  const auto encode_with = [&](const auto& coder) {
    return encode_chunks(args, states_of, [&](int64_t chunk, uint8_t* to, const uint8_t* limit) {
      return encode_chunk(args, table, coder, chunk, to, limit);
    });
  };
#if defined(SLIMGRAD_ISA_avx512)
  if (bits <= 4) return encode_with(ContextCoder(ContextRows(args.code.frequencies, bits)));
#endif
  return encode_with(MemoryCoder<Size>(table, bits));
}

template <typename Finder>
bool decode_round(const CodeArgs& code, const Round& round, const float* slots,
                  const Finder& finder, BlockLanes& lanes, uint32_t* states, WordQueue& words) {
  alignas(64) uint32_t contexts[kStates] = {};
  const int drop = dropped_bits(code.bits);
  for (int e = 0; e < kBlock; ++e) {
    const auto step = lanes.step(e);
    const uint8_t* next = words.open_row();
    for (int vector = 0; vector < round.vectors; vector += 2) {
      uint32_t *x = states + 16 * vector, *context = contexts + 16 * vector;
      const auto found = finder.find(load_words(x), load_words(x + 16), load_words(context),
                                     load_words(context + 16));
      store(x, pull(load_words(x), found.first, next));
      store(x + 16, pull(load_words(x + 16), found.second, next));
      store(context, found.first.symbol >> drop);
      store(context + 16, found.second.symbol >> drop);
      step.put(vector, found.first.symbol);
      step.put(vector + 1, found.second.symbol);
    }
    for (int lane = 16 * round.vectors; lane < round.lanes; ++lane) {
      if (e >= round.components(lane)) continue;
      uint32_t slot;
      __builtin_memcpy(&slot, slots + (contexts[lane] * kTotal + states[lane] % kTotal),
                       sizeof slot);
      states[lane] = pull_one(states[lane], slot, next);
      contexts[lane] = slot >> 24 >> drop;
      step.put_one(lane, slot >> 24);
    }
    if (!words.close_row(next)) return false;
  }
  return true;
}

template <typename Finder>
bool decode_chunk(const DecodeArgs& args, const float* slots, const Finder& finder, int64_t chunk,
                  const uint8_t* begin, const uint8_t* end) {
  alignas(64) uint32_t states[kStates];
  const int64_t count = chunk_symbols(args.code.n, chunk), size = block_bytes(args.code.bits);
  uint8_t* out = args.packed + chunk * (kChunkSymbols / kBlock) * size;
  start_states(states);
  if (!load_states(begin, states_of(count), states)) return false;
  WordQueue words(begin + 4 * states_of(count), end);
  BlockLanes lanes(args.code.bits);
  for (int64_t number = 0; number < round_count(count); ++number) {
    const Round round(count, number);
    lanes.clear();
    if (!decode_round(args.code, round, slots, finder, lanes, states, words)) return false;
    for (int lane = 0; lane < round.lanes; ++lane)
      lanes.write(lane, out + (round.first + lane) * size, round.components(lane));
  }
  return words.is_empty() && is_start(states, kStates);
}

}  // namespace

int64_t context_encode(const EncodeArgs& args) {
  return args.code.bits <= 4 ? encode_all<kSmallTable>(args) : encode_all<kLargeTable>(args);
}

void context_decode(const DecodeArgs& args) {
  constexpr int kSlots = 16 * kTotal;
  const int bits = args.code.bits;
  alignas(64) float slots[kSlots];
  for (int context = 0; context < context_count(bits); ++context)
    fill_slots(args.code.frequencies + (context << bits), 1 << bits, slots + context * kTotal);
  const auto decode_with = [&](const auto& finder) {
    decode_chunks(args, [&](int64_t chunk, const uint8_t* begin, const uint8_t* end) {
      return decode_chunk(args, slots, finder, chunk, begin, end);
    });
  };
#if defined(SLIMGRAD_ISA_avx512)
  if (bits <= 4)
    decode_with(ContextSearch(ContextRows(args.code.frequencies, bits)));
  else
    decode_with(SlotTable<kSlots>(slots));
#else
  decode_with(SlotTable<kSlots>(slots));
#endif
}

}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad
