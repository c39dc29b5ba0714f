// Sixteen lanes of float32 or of 32-bit words, from one source for every instruction set.
//
// A leaf is one register of the compiler's vector type: 64 bytes for AVX-512, 32 for AVX2, 16
// elsewhere. Wider than a register is a Pair of narrower ones, because GCC lowers oversized vector
// types through memory. Everything has internal linkage: objects compiled for different
// processors must not share a function.
#pragma once
#include <cstddef>
#include <cstdint>
#if defined(SLIMGRAD_ISA_avx2) || defined(SLIMGRAD_ISA_avx512)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#define SLIMGRAD_INLINE inline __attribute__((always_inline))

namespace slimgrad {
namespace SLIMGRAD_ISA {
namespace {

#if defined(SLIMGRAD_ISA_avx512)
constexpr int kLeafBytes = 64;
// The unmasked intrinsics start from an uninitialised register, about which GCC 12 warns.
constexpr __mmask16 kAllLanes = 0xFFFF;
#elif defined(SLIMGRAD_ISA_avx2)
constexpr int kLeafBytes = 32;
#else
constexpr int kLeafBytes = 16;
#endif

typedef float FloatLeaf __attribute__((vector_size(kLeafBytes)));
typedef uint32_t WordLeaf __attribute__((vector_size(kLeafBytes)));
typedef int32_t MaskLeaf __attribute__((vector_size(kLeafBytes)));

template <typename T>
struct Pair {
  T low, high;
};

#if defined(SLIMGRAD_ISA_avx512)
using Floats = FloatLeaf;
using Words = WordLeaf;
using Masks = MaskLeaf;
#elif defined(SLIMGRAD_ISA_avx2)
using Floats = Pair<FloatLeaf>;
using Words = Pair<WordLeaf>;
using Masks = Pair<MaskLeaf>;
#else
using Floats = Pair<Pair<FloatLeaf>>;
using Words = Pair<Pair<WordLeaf>>;
using Masks = Pair<Pair<MaskLeaf>>;
#endif

#define SLIMGRAD_PAIR_OPERATOR(op)                              \
  template <typename T>                                         \
  SLIMGRAD_INLINE Pair<T> operator op(Pair<T> a, Pair<T> b) {   \
    return {a.low op b.low, a.high op b.high};                  \
  }
SLIMGRAD_PAIR_OPERATOR(+)
SLIMGRAD_PAIR_OPERATOR(-)
SLIMGRAD_PAIR_OPERATOR(*)
SLIMGRAD_PAIR_OPERATOR(&)
SLIMGRAD_PAIR_OPERATOR(|)
SLIMGRAD_PAIR_OPERATOR(^)
#undef SLIMGRAD_PAIR_OPERATOR

template <typename T>
SLIMGRAD_INLINE Pair<T> operator<<(Pair<T> a, int count) {
  return {a.low << count, a.high << count};
}
template <typename T>
SLIMGRAD_INLINE Pair<T> operator>>(Pair<T> a, int count) {
  return {a.low >> count, a.high >> count};
}

SLIMGRAD_INLINE WordLeaf as_words(FloatLeaf a) { return (WordLeaf)a; }
SLIMGRAD_INLINE FloatLeaf as_floats(WordLeaf a) { return (FloatLeaf)a; }
SLIMGRAD_INLINE MaskLeaf less(FloatLeaf a, FloatLeaf b) { return (MaskLeaf)(a < b); }
SLIMGRAD_INLINE MaskLeaf less_equal(FloatLeaf a, FloatLeaf b) { return (MaskLeaf)(a <= b); }
SLIMGRAD_INLINE MaskLeaf nonzero(WordLeaf a) { return (MaskLeaf)(a != WordLeaf{}); }
SLIMGRAD_INLINE FloatLeaf select(MaskLeaf m, FloatLeaf a, FloatLeaf b) { return m ? a : b; }
SLIMGRAD_INLINE WordLeaf select(MaskLeaf m, WordLeaf a, WordLeaf b) { return m ? a : b; }
// Of words below 2^31.
SLIMGRAD_INLINE WordLeaf larger(WordLeaf a, WordLeaf b) {
#if defined(SLIMGRAD_ISA_avx512)
  return (WordLeaf)_mm512_maskz_max_epi32(kAllLanes, (__m512i)a, (__m512i)b);
#elif defined(SLIMGRAD_ISA_avx2)
  return (WordLeaf)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
  return (MaskLeaf)((MaskLeaf)a > (MaskLeaf)b) ? a : b;
#endif
}
// Of words below 2^31.
SLIMGRAD_INLINE FloatLeaf to_floats(WordLeaf a) {
  return __builtin_convertvector((MaskLeaf)a, FloatLeaf);
}
// Shifts that copy the sign.
SLIMGRAD_INLINE WordLeaf shifted_right_signed(WordLeaf a, int count) {
  return (WordLeaf)((MaskLeaf)a >> count);
}
// Magnitudes of signed words.
SLIMGRAD_INLINE WordLeaf absolute(WordLeaf a) {
#if defined(SLIMGRAD_ISA_avx512)
  return (WordLeaf)_mm512_maskz_abs_epi32(kAllLanes, (__m512i)a);
#elif defined(SLIMGRAD_ISA_avx2)
  return (WordLeaf)_mm256_abs_epi32((__m256i)a);
#else
  const WordLeaf sign = shifted_right_signed(a, 31);
  return (a ^ sign) - sign;
#endif
}
// The nearest integers, ties to even, as signed words; of magnitudes below 2^31.
SLIMGRAD_INLINE WordLeaf nearest_integers(FloatLeaf a) {
#if defined(SLIMGRAD_ISA_avx512)
  return (WordLeaf)_mm512_maskz_cvtps_epi32(kAllLanes, a);
#elif defined(SLIMGRAD_ISA_avx2)
  return (WordLeaf)_mm256_cvtps_epi32(a);
#elif defined(__SSE2__)
  return (WordLeaf)_mm_cvtps_epi32(a);
#else
  MaskLeaf nearest;
  for (int i = 0; i < kLeafBytes / 4; ++i)
    nearest[i] = static_cast<int32_t>(__builtin_rintf(a[i]));
  return (WordLeaf)nearest;
#endif
}
// (a & mask) | b
SLIMGRAD_INLINE WordLeaf masked_or(WordLeaf a, WordLeaf mask, WordLeaf b) {
#if defined(SLIMGRAD_ISA_avx512)
  return (WordLeaf)_mm512_ternarylogic_epi32((__m512i)a, (__m512i)mask, (__m512i)b, 0xEA);
#else
  return (a & mask) | b;
#endif
}
SLIMGRAD_INLINE FloatLeaf larger(FloatLeaf a, FloatLeaf b) {
#if defined(SLIMGRAD_ISA_avx512)
  return _mm512_maskz_max_ps(kAllLanes, a, b);
#elif defined(SLIMGRAD_ISA_avx2)
  return _mm256_max_ps(a, b);
#elif defined(__SSE2__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
#if defined(SLIMGRAD_ISA_avx512)
// The larger magnitude of the two, with the sign of `a`.
SLIMGRAD_INLINE FloatLeaf larger_magnitude(FloatLeaf a, FloatLeaf b) {
  return _mm512_maskz_range_ps(kAllLanes, a, b, 3);
}
#endif
template <typename T>
SLIMGRAD_INLINE auto as_words(Pair<T> a) -> Pair<decltype(as_words(a.low))> {
  return {as_words(a.low), as_words(a.high)};
}
template <typename T>
SLIMGRAD_INLINE auto as_floats(Pair<T> a) -> Pair<decltype(as_floats(a.low))> {
  return {as_floats(a.low), as_floats(a.high)};
}
template <typename T>
SLIMGRAD_INLINE auto to_floats(Pair<T> a) -> Pair<decltype(to_floats(a.low))> {
  return {to_floats(a.low), to_floats(a.high)};
}
template <typename T>
SLIMGRAD_INLINE Pair<T> shifted_right_signed(Pair<T> a, int count) {
  return {shifted_right_signed(a.low, count), shifted_right_signed(a.high, count)};
}
template <typename T>
SLIMGRAD_INLINE Pair<T> absolute(Pair<T> a) {
  return {absolute(a.low), absolute(a.high)};
}
template <typename T>
SLIMGRAD_INLINE auto nearest_integers(Pair<T> a) -> Pair<decltype(nearest_integers(a.low))> {
  return {nearest_integers(a.low), nearest_integers(a.high)};
}
template <typename T>
SLIMGRAD_INLINE auto nonzero(Pair<T> a) -> Pair<decltype(nonzero(a.low))> {
  return {nonzero(a.low), nonzero(a.high)};
}
template <typename T>
SLIMGRAD_INLINE auto less(Pair<T> a, Pair<T> b) -> Pair<decltype(less(a.low, b.low))> {
  return {less(a.low, b.low), less(a.high, b.high)};
}
template <typename T>
SLIMGRAD_INLINE auto less_equal(Pair<T> a, Pair<T> b) -> Pair<decltype(less_equal(a.low, b.low))> {
  return {less_equal(a.low, b.low), less_equal(a.high, b.high)};
}
template <typename T>
SLIMGRAD_INLINE Pair<T> larger(Pair<T> a, Pair<T> b) {
  return {larger(a.low, b.low), larger(a.high, b.high)};
}
template <typename T>
SLIMGRAD_INLINE Pair<T> masked_or(Pair<T> a, Pair<T> mask, Pair<T> b) {
  return {masked_or(a.low, mask.low, b.low), masked_or(a.high, mask.high, b.high)};
}
template <typename M, typename T>
SLIMGRAD_INLINE Pair<T> select(Pair<M> m, Pair<T> a, Pair<T> b) {
  return {select(m.low, a.low, b.low), select(m.high, a.high, b.high)};
}

// Moves bit `from` of every lane to bit `to`.
template <int From, int To, typename V>
SLIMGRAD_INLINE V moved(V a) {
  if constexpr (From > To) return a >> (From - To);
  if constexpr (From < To) return a << (To - From);
  return a;
}

template <typename V>
struct Lanes {
  template <typename S>
  static SLIMGRAD_INLINE V load(const S* from) {
    V v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
  template <typename S>
  static SLIMGRAD_INLINE void store(S* to, V v) {
    __builtin_memcpy(to, &v, sizeof v);
  }
  template <typename S>
  static SLIMGRAD_INLINE V all(S x) {
    return x - V{};  // unlike x + 0, keeps a negative zero
  }
};
template <typename T>
struct Lanes<Pair<T>> {
  template <typename S>
  static SLIMGRAD_INLINE Pair<T> load(const S* from) {
    return {Lanes<T>::load(from), Lanes<T>::load(from + sizeof(T) / sizeof(S))};
  }
  template <typename S>
  static SLIMGRAD_INLINE void store(S* to, Pair<T> v) {
    Lanes<T>::store(to, v.low);
    Lanes<T>::store(to + sizeof(T) / sizeof(S), v.high);
  }
  template <typename S>
  static SLIMGRAD_INLINE Pair<T> all(S x) {
    return {Lanes<T>::all(x), Lanes<T>::all(x)};
  }
};

SLIMGRAD_INLINE Floats load_floats(const float* from) { return Lanes<Floats>::load(from); }
SLIMGRAD_INLINE Words load_words(const uint8_t* from) { return Lanes<Words>::load(from); }
SLIMGRAD_INLINE Words load_words(const uint32_t* from) { return Lanes<Words>::load(from); }
SLIMGRAD_INLINE void store(float* to, Floats v) { Lanes<Floats>::store(to, v); }
SLIMGRAD_INLINE void store(uint8_t* to, Words v) { Lanes<Words>::store(to, v); }
SLIMGRAD_INLINE void store(uint32_t* to, Words v) { Lanes<Words>::store(to, v); }
SLIMGRAD_INLINE Floats all_floats(float x) { return Lanes<Floats>::all(x); }
SLIMGRAD_INLINE Words all_words(uint32_t x) { return Lanes<Words>::all(x); }

// Hints only: the address may lie beyond the array, so no pointer is formed from it.
SLIMGRAD_INLINE const void* address_ahead(const float* from, int64_t components) {
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(from) + 4 * components);
}
// Into the second-level cache: what lies in the first is still to be used.
SLIMGRAD_INLINE void prefetch(const float* from, int64_t ahead) {
  __builtin_prefetch(address_ahead(from, ahead), 0, 2);
}
SLIMGRAD_INLINE void prefetch_to_write(const float* from, int64_t ahead) {
  __builtin_prefetch(address_ahead(from, ahead), 1);
}

// A table of Size floats, Size a power of two, indexed lane by lane. Bits of the index above
// log2(Size) are ignored. Small tables live in registers.
template <int Size>
struct Lookup {
  static constexpr int kLeaf = kLeafBytes / 4;
#if defined(SLIMGRAD_ISA_avx512)
  static constexpr int kRegisters = Size <= kLeaf ? 1 : 0;
#elif defined(SLIMGRAD_ISA_avx2)
  static constexpr int kRegisters = Size <= kLeaf ? 1 : Size == 2 * kLeaf ? 2 : 0;
#else
  static constexpr int kRegisters = 0;
#endif
  FloatLeaf part[kRegisters == 0 ? 1 : kRegisters]{};
  const float* memory;

  explicit SLIMGRAD_INLINE Lookup(const float* table) : memory(table) {
    if constexpr (kRegisters != 0) {
      float wide[kRegisters * kLeaf];
      for (int i = 0; i < kRegisters * kLeaf; ++i) wide[i] = table[i & (Size - 1)];
      for (int i = 0; i < kRegisters; ++i) part[i] = Lanes<FloatLeaf>::load(wide + i * kLeaf);
    }
  }

  SLIMGRAD_INLINE FloatLeaf operator[](WordLeaf index) const {
#if defined(SLIMGRAD_ISA_avx512)
    if constexpr (kRegisters == 1)
      return _mm512_maskz_permutexvar_ps(kAllLanes, (__m512i)index, part[0]);
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), kAllLanes, (__m512i)(index & (Size - 1)),
                                    memory, 4);
#elif defined(SLIMGRAD_ISA_avx2)
    const __m256i i = (__m256i)index;
    if constexpr (kRegisters == 1) return _mm256_permutevar8x32_ps(part[0], i);
    if constexpr (kRegisters == 2)
      return _mm256_blendv_ps(_mm256_permutevar8x32_ps(part[0], i),
                              _mm256_permutevar8x32_ps(part[kRegisters - 1], i),
                              (__m256)(index << 28));  // bit 3 chooses the upper eight
    return _mm256_i32gather_ps(memory, (__m256i)(index & (Size - 1)), 4);
#else
    FloatLeaf found;
    for (int i = 0; i < kLeaf; ++i) found[i] = memory[index[i] & (Size - 1)];
    return found;
#endif
  }
  template <typename T>
  SLIMGRAD_INLINE auto operator[](Pair<T> index) const -> Pair<decltype((*this)[index.low])> {
    return {(*this)[index.low], (*this)[index.high]};
  }
};

// Rounding to nearest with denormals kept, whatever the calling thread had set: torch lets users
// flush denormals, on x86 and on Arm, and does so for one thread only.
class IeeeArithmetic {
 public:
#if defined(__SSE2__)
  using Control = unsigned;
  static Control read() { return _mm_getcsr(); }
  static void write(Control control) { _mm_setcsr(control); }
  static constexpr Control kIeee = 0x1F80;  // exceptions masked
#elif defined(__aarch64__)
  using Control = uint64_t;
  static Control read() {
    Control control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void write(Control control) { asm volatile("msr fpcr, %0" : : "r"(control) : "memory"); }
  static constexpr Control kIeee = 0;
#else  // torch cannot flush denormals there
  using Control = int;
  static Control read() { return 0; }
  static void write(Control) {}
  static constexpr Control kIeee = 0;
#endif
  IeeeArithmetic() : before_(read()) { write(kIeee); }
  ~IeeeArithmetic() { write(before_); }
  IeeeArithmetic(const IeeeArithmetic&) = delete;
  IeeeArithmetic& operator=(const IeeeArithmetic&) = delete;

 private:
  Control before_;
};

}  // namespace
}  // namespace SLIMGRAD_ISA
}  // namespace slimgrad
