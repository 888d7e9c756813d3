/* One pass over values that lie one behind the other. Compiled once per instruction set, as RUN.
 *
 * Floats of up to 32 bits are added up in float32 lanes, a few values each, and then in float64. A lane takes 8 values
 * and two more additions merge it with others, so that a sum is within 11 half units, 7e-7, of sum|x|, and a norm is
 * nearer. Squares overflow above 1.8e19 and vanish below 1e-19, and NaN and infinities spoil a sum; all of these show in
 * the sum of squares of a piece, which is then added up again, carefully.
 */
#include <math.h>
#include <string.h>

#include "statistics.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#define WIDTH 64
#elif defined(__AVX2__)
#include <immintrin.h>
#define WIDTH 32
#elif defined(__SSE2__)
#include <emmintrin.h>
#define WIDTH 16
#else
#define WIDTH 16
#endif

#define INLINE static inline __attribute__((always_inline))

#define LANES (WIDTH / 4)
#define WIDE_LANES (WIDTH / 8)

typedef float floats __attribute__((vector_size(WIDTH)));
typedef float unaligned_floats __attribute__((vector_size(WIDTH), aligned(4), may_alias));
typedef double doubles __attribute__((vector_size(WIDTH)));
typedef double unaligned_doubles __attribute__((vector_size(WIDTH), aligned(8), may_alias));
typedef float half_floats __attribute__((vector_size(WIDTH / 2)));
typedef uint32_t words __attribute__((vector_size(WIDTH)));
typedef uint16_t half_words __attribute__((vector_size(WIDTH / 2)));
typedef uint16_t unaligned_half_words __attribute__((vector_size(WIDTH / 2), aligned(2), may_alias));

/* Where the careful paths need no more than a fixed width. */
typedef float floats8 __attribute__((vector_size(32)));
typedef float unaligned_floats8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double doubles8 __attribute__((vector_size(64)));
typedef int32_t ints8 __attribute__((vector_size(32)));
typedef int32_t unaligned_ints8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t unaligned_words8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int64_t unaligned_longs8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint64_t unaligned_ulongs8 __attribute__((vector_size(64), aligned(8), may_alias));

/* Values between two looks at the sum of squares; small enough to be still in the nearest cache when read again. */
#define PIECE 4096
#define PER_LANE 8
#define GROUP (4 * LANES)
#define WIDE_GROUP (4 * WIDE_LANES)

/* Of PIECE squares below 2**-126 at most that much is lost: 2**-21 of this. */
#define LEAST_SQUARES 0x1p-93
#define LEAST_WIDE_SQUARES 0x1p-900

/* The new values come first: where they are NaN, x86 keeps what was there. */
#if WIDTH == 64
INLINE floats higher(floats x, floats high) { return (floats)_mm512_max_ps((__m512)x, (__m512)high); }
INLINE floats lower(floats x, floats low) { return (floats)_mm512_min_ps((__m512)x, (__m512)low); }
INLINE doubles wide_higher(doubles x, doubles high) { return (doubles)_mm512_max_pd((__m512d)x, (__m512d)high); }
INLINE doubles wide_lower(doubles x, doubles low) { return (doubles)_mm512_min_pd((__m512d)x, (__m512d)low); }
#elif WIDTH == 32
INLINE floats higher(floats x, floats high) { return (floats)_mm256_max_ps((__m256)x, (__m256)high); }
INLINE floats lower(floats x, floats low) { return (floats)_mm256_min_ps((__m256)x, (__m256)low); }
INLINE doubles wide_higher(doubles x, doubles high) { return (doubles)_mm256_max_pd((__m256d)x, (__m256d)high); }
INLINE doubles wide_lower(doubles x, doubles low) { return (doubles)_mm256_min_pd((__m256d)x, (__m256d)low); }
#elif defined(__SSE2__)
INLINE floats higher(floats x, floats high) { return (floats)_mm_max_ps((__m128)x, (__m128)high); }
INLINE floats lower(floats x, floats low) { return (floats)_mm_min_ps((__m128)x, (__m128)low); }
INLINE doubles wide_higher(doubles x, doubles high) { return (doubles)_mm_max_pd((__m128d)x, (__m128d)high); }
INLINE doubles wide_lower(doubles x, doubles low) { return (doubles)_mm_min_pd((__m128d)x, (__m128d)low); }
#else
#define PICK(type, bits, x, y, mask) ((type)(((bits)(x) & (bits)(mask)) | ((bits)(y) & ~(bits)(mask))))
typedef int64_t longs __attribute__((vector_size(WIDTH)));
INLINE floats higher(floats x, floats high) { return PICK(floats, words, x, high, x > high); }
INLINE floats lower(floats x, floats low) { return PICK(floats, words, x, low, x < low); }
INLINE doubles wide_higher(doubles x, doubles high) { return PICK(doubles, longs, x, high, x > high); }
INLINE doubles wide_lower(doubles x, doubles low) { return PICK(doubles, longs, x, low, x < low); }
#endif

INLINE doubles widened(floats x)
{
    half_floats low, high;
    memcpy(&low, &x, sizeof low);
    memcpy(&high, (const char *)&x + sizeof low, sizeof high);
    return __builtin_convertvector(low, doubles) + __builtin_convertvector(high, doubles);
}

INLINE double total(doubles x)
{
    double sum = 0;
    for (int lane = 0; lane < WIDE_LANES; lane++)
        sum += x[lane];
    return sum;
}

INLINE float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff, bits;
    float value;
    if (magnitude >= 0x7c00)
        bits = 0x7f800000 | (magnitude & 0x3ff) << 13;
    else if (magnitude >= 0x400)
        bits = (magnitude << 13) + (112u << 23);
    else {
        value = (float)magnitude * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE float from_bfloat16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE floats load_float32(const float *values) { return *(const unaligned_floats *)values; }
INLINE float one_float32(const float *value) { return *value; }

INLINE floats load_bfloat16(const uint16_t *values)
{
#if WIDTH == 64
    return (floats)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)values)), 16);
#elif WIDTH == 32
    return (floats)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)values)), 16);
#else
    half_words bits = *(const unaligned_half_words *)values;
    return (floats)(__builtin_convertvector(bits, words) << 16);
#endif
}
INLINE float one_bfloat16(const uint16_t *value) { return from_bfloat16(*value); }

INLINE floats load_float16(const uint16_t *values)
{
#if WIDTH == 64
    return (floats)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)values));
#elif WIDTH == 32 && defined(__F16C__)
    return (floats)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)values));
#else
    floats x;
    for (int lane = 0; lane < LANES; lane++)
        x[lane] = from_half(values[lane]);
    return x;
#endif
}
INLINE float one_float16(const uint16_t *value) { return from_half(*value); }

INLINE void see(double x, struct state *state)
{
    state->high = x > state->high ? x : state->high;
    state->low = x < state->low ? x : state->low;
    state->nan += isnan(x) != 0;
    state->positive += x == INFINITY;
    state->negative += x == -INFINITY;
}

/* Adds up in float64, 8 at a time, and counts what is not finite; n is a multiple of 8. */
static void add_carefully(const float *values, int64_t n, struct state *state)
{
    doubles8 sum = {0}, squares = {0};
    ints8 nan = {0}, positive = {0}, negative = {0};
    for (int64_t i = 0; i < n; i += 8) {
        floats8 x = *(const unaligned_floats8 *)(values + i);
        doubles8 wide = __builtin_convertvector(x, doubles8);
        sum += wide;
        squares += wide * wide;
        nan -= x != x;
        positive -= x == INFINITY;
        negative -= x == -INFINITY;
    }
    for (int lane = 0; lane < 8; lane++) {
        state->sum += sum[lane];
        state->squares += squares[lane];
        state->nan += nan[lane];
        state->positive += positive[lane];
        state->negative += negative[lane];
    }
}

#define DEFINE_FLOATS(NAME, TYPE, BITS, WITHOUT_SIGN)                                                                  \
    static int64_t zeros_##NAME(const TYPE *values, int64_t n)                                                         \
    {                                                                                                                  \
        int64_t found = 0;                                                                                             \
        for (int64_t begin = 0; begin < n; begin += PIECE) {                                                           \
            int64_t length = n - begin < PIECE ? n - begin : PIECE;                                                    \
            BITS in_piece = 0;                                                                                         \
            for (int64_t i = 0; i < length; i++) {                                                                     \
                BITS bits;                                                                                             \
                memcpy(&bits, values + begin + i, sizeof bits);                                                        \
                in_piece += (BITS)(bits & WITHOUT_SIGN) == 0;                                                          \
            }                                                                                                          \
            found += in_piece;                                                                                         \
        }                                                                                                              \
        return found;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static void careful_##NAME(const TYPE *values, int64_t n, struct state *state)                                     \
    {                                                                                                                  \
        float wide[GROUP];                                                                                             \
        for (int64_t begin = 0; begin < n; begin += GROUP) {                                                           \
            for (int i = 0; i < GROUP; i += LANES) {                                                                   \
                floats x = load_##NAME(values + begin + i);                                                            \
                memcpy(wide + i, &x, sizeof x);                                                                        \
            }                                                                                                          \
            add_carefully(wide, GROUP, state);                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void run_##NAME(const TYPE *values, int64_t n, int counts, struct state *state)                             \
    {                                                                                                                  \
        floats high0, high1, low0, low1;                                                                               \
        int64_t whole = n - n % GROUP;                                                                                 \
        for (int64_t i = whole; i < n; i++) {                                                                          \
            double x = one_##NAME(values + i);                                                                         \
            see(x, state);                                                                                             \
            state->sum += x;                                                                                           \
            state->squares += x * x;                                                                                   \
        }                                                                                                              \
        if (counts)                                                                                                    \
            state->zero += zeros_##NAME(values + whole, n - whole);                                                    \
        if (whole == 0)                                                                                                \
            return;                                                                                                    \
        high0 = high1 = low0 = low1 = load_##NAME(values);                                                             \
        for (int64_t begin = 0; begin < whole; begin += PIECE) {                                                       \
            const TYPE *piece = values + begin;                                                                        \
            int64_t length = whole - begin < PIECE ? whole - begin : PIECE;                                            \
            doubles sum = {0}, squares = {0};                                                                          \
            for (int64_t i = 0; i < length;) {                                                                         \
                int64_t end = i + PER_LANE * GROUP < length ? i + PER_LANE * GROUP : length;                           \
                floats s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, q0 = {0}, q1 = {0}, q2 = {0}, q3 = {0};                 \
                for (; i < end; i += GROUP) {                                                                          \
                    floats x0 = load_##NAME(piece + i), x1 = load_##NAME(piece + i + LANES);                           \
                    floats x2 = load_##NAME(piece + i + 2 * LANES), x3 = load_##NAME(piece + i + 3 * LANES);           \
                    s0 += x0, s1 += x1, s2 += x2, s3 += x3;                                                            \
                    q0 += x0 * x0, q1 += x1 * x1, q2 += x2 * x2, q3 += x3 * x3;                                        \
                    high0 = higher(x0, high0), high1 = higher(x1, high1);                                              \
                    high0 = higher(x2, high0), high1 = higher(x3, high1);                                              \
                    low0 = lower(x0, low0), low1 = lower(x1, low1);                                                    \
                    low0 = lower(x2, low0), low1 = lower(x3, low1);                                                    \
                }                                                                                                      \
                sum += widened((s0 + s1) + (s2 + s3));                                                                 \
                squares += widened((q0 + q1) + (q2 + q3));                                                             \
            }                                                                                                          \
            double piece_squares = total(squares);                                                                     \
            int64_t zeros = counts || piece_squares == 0 ? zeros_##NAME(piece, length) : 0;                            \
            state->zero += counts ? zeros : 0;                                                                         \
            if (piece_squares >= LEAST_SQUARES && piece_squares < INFINITY) {                                          \
                state->sum += total(sum);                                                                              \
                state->squares += piece_squares;                                                                       \
            } else if (piece_squares != 0 || zeros < length)                                                           \
                careful_##NAME(piece, length, state);                                                                  \
        }                                                                                                              \
        high0 = higher(high1, high0), low0 = lower(low1, low0);                                                        \
        for (int lane = 0; lane < LANES; lane++) {                                                                     \
            state->high = high0[lane] > state->high ? high0[lane] : state->high;                                       \
            state->low = low0[lane] < state->low ? low0[lane] : state->low;                                            \
        }                                                                                                              \
    }

DEFINE_FLOATS(float32, float, uint32_t, 0x7fffffff)
DEFINE_FLOATS(bfloat16, uint16_t, uint16_t, 0x7fff)
DEFINE_FLOATS(float16, uint16_t, uint16_t, 0x7fff)

/* Squares of float64 may overflow and vanish too: those that might are added up at another scale. */
static void add_wide_carefully(const double *values, int64_t n, struct state *state)
{
    for (int64_t i = 0; i < n; i++) {
        double x = values[i], magnitude = fabs(x);
        see(x, state);
        state->sum += x;
        state->shrunk_sum += x * SHRINK;
        if (magnitude > 0x1p500)
            state->shrunk_squares += (x * SHRINK_WIDE) * (x * SHRINK_WIDE);
        else if (magnitude < 0x1p-450)
            state->grown_squares += (x * GROW_WIDE) * (x * GROW_WIDE);
        else
            state->squares += x * x;
    }
}

static int64_t zeros_float64(const double *values, int64_t n)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        found += values[i] == 0;
    return found;
}

static void run_float64(const double *values, int64_t n, int counts, struct state *state)
{
    int64_t whole = n - n % WIDE_GROUP;
    add_wide_carefully(values + whole, n - whole, state);
    if (counts)
        state->zero += zeros_float64(values + whole, n - whole);
    if (whole == 0)
        return;
    doubles high0, high1, low0, low1;
    high0 = high1 = low0 = low1 = *(const unaligned_doubles *)values;
    for (int64_t begin = 0; begin < whole; begin += PIECE) {
        const double *piece = values + begin;
        int64_t length = whole - begin < PIECE ? whole - begin : PIECE;
        doubles s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, q0 = {0}, q1 = {0}, q2 = {0}, q3 = {0};
        for (int64_t i = 0; i < length; i += WIDE_GROUP) {
            doubles x0 = *(const unaligned_doubles *)(piece + i);
            doubles x1 = *(const unaligned_doubles *)(piece + i + WIDE_LANES);
            doubles x2 = *(const unaligned_doubles *)(piece + i + 2 * WIDE_LANES);
            doubles x3 = *(const unaligned_doubles *)(piece + i + 3 * WIDE_LANES);
            s0 += x0, s1 += x1, s2 += x2, s3 += x3;
            q0 += x0 * x0, q1 += x1 * x1, q2 += x2 * x2, q3 += x3 * x3;
            high0 = wide_higher(x0, high0), high1 = wide_higher(x1, high1);
            high0 = wide_higher(x2, high0), high1 = wide_higher(x3, high1);
            low0 = wide_lower(x0, low0), low1 = wide_lower(x1, low1);
            low0 = wide_lower(x2, low0), low1 = wide_lower(x3, low1);
        }
        double piece_squares = total((q0 + q1) + (q2 + q3));
        int64_t zeros = counts || piece_squares == 0 ? zeros_float64(piece, length) : 0;
        state->zero += counts ? zeros : 0;
        if (piece_squares >= LEAST_WIDE_SQUARES && piece_squares < INFINITY) {
            double sum = total((s0 + s1) + (s2 + s3));
            state->sum += sum;
            state->shrunk_sum += sum * SHRINK;
            state->squares += piece_squares;
        } else if (piece_squares != 0 || zeros < length)
            add_wide_carefully(piece, length, state);
    }
    high0 = wide_higher(high1, high0), low0 = wide_lower(low1, low0);
    for (int lane = 0; lane < WIDE_LANES; lane++) {
        state->high = high0[lane] > state->high ? high0[lane] : state->high;
        state->low = low0[lane] < state->low ? low0[lane] : state->low;
    }
}

/* Complex values are magnitudes, which float64 holds, and are counted by their parts. */
#define MAGNITUDES 512

INLINE void count_parts(double real, double imaginary, struct state *counts)
{
    counts->nan += isnan(real) || isnan(imaginary);
    counts->positive += isinf(real) || isinf(imaginary);
    counts->zero += real == 0 && imaginary == 0;
}

#define DEFINE_COMPLEX(NAME, TYPE, ONE, MAGNITUDE)                                                                     \
    static void run_##NAME(const TYPE *values, int64_t n, int counts, struct state *state)                             \
    {                                                                                                                  \
        double magnitudes[MAGNITUDES];                                                                                 \
        for (int64_t begin = 0; begin < n; begin += MAGNITUDES) {                                                      \
            const TYPE *piece = values + 2 * begin;                                                                    \
            int64_t length = n - begin < MAGNITUDES ? n - begin : MAGNITUDES;                                          \
            double check = 0;                                                                                          \
            for (int64_t i = 0; i < length; i++) {                                                                     \
                double real = ONE(piece + 2 * i), imaginary = ONE(piece + 2 * i + 1);                                  \
                magnitudes[i] = MAGNITUDE(real, imaginary);                                                            \
                check += magnitudes[i] - magnitudes[i];                                                                \
            }                                                                                                          \
            if (isnan(check))                                                                                          \
                for (int64_t i = 0; i < length; i++)                                                                   \
                    if (isinf(ONE(piece + 2 * i)) || isinf(ONE(piece + 2 * i + 1)))                                    \
                        magnitudes[i] = INFINITY;                                                                      \
            if (counts)                                                                                                \
                for (int64_t i = 0; i < length; i++)                                                                   \
                    count_parts(ONE(piece + 2 * i), ONE(piece + 2 * i + 1), state + 1);                                \
            run_float64(magnitudes, length, 0, state);                                                                 \
        }                                                                                                              \
    }

INLINE double one_float64(const double *value) { return *value; }
INLINE double root_of_squares(double real, double imaginary) { return sqrt(real * real + imaginary * imaginary); }
DEFINE_COMPLEX(complex64, float, one_float32, root_of_squares)
DEFINE_COMPLEX(complex32, uint16_t, one_float16, root_of_squares)
DEFINE_COMPLEX(complex128, double, one_float64, hypot)

static void run_float8(const uint8_t *values, const float *table, int64_t n, int counts, struct state *state)
{
    float wide[1024];
    for (int64_t begin = 0; begin < n; begin += 1024) {
        int64_t length = n - begin < 1024 ? n - begin : 1024;
        for (int64_t i = 0; i < length; i++)
            wide[i] = table[values[begin + i]];
        run_float32(wide, length, counts, state);
    }
}

/* Sums of a piece of integers are exact; SUM and SQUARES hold PIECE of them. */
#define FOR_PIECES(TYPE)                                                                                               \
    for (const TYPE *piece = values, *behind = values + n; piece < behind; piece += PIECE)

#define PIECE_LENGTH (behind - piece < PIECE ? behind - piece : PIECE)

#define COUNT_ZEROS                                                                                                    \
    if (counts) {                                                                                                      \
        int32_t zeros = 0;                                                                                             \
        for (int64_t i = 0; i < length; i++)                                                                           \
            zeros += piece[i] == 0;                                                                                    \
        state->zero += zeros;                                                                                          \
    }

#define KEEP_EXTREMES(HIGH, LOW)                                                                                       \
    state->integer_high = (HIGH) > state->integer_high ? (HIGH) : state->integer_high;                                 \
    state->integer_low = (LOW) < state->integer_low ? (LOW) : state->integer_low;

#define DEFINE_SMALL_INTEGERS(NAME, TYPE, SUM, PRODUCT, SQUARES)                                                       \
    static void run_##NAME(const TYPE *values, int64_t n, int counts, struct state *state)                             \
    {                                                                                                                  \
        FOR_PIECES(TYPE)                                                                                               \
        {                                                                                                              \
            int64_t length = PIECE_LENGTH;                                                                             \
            TYPE high = piece[0], low = piece[0];                                                                      \
            SUM sum = 0;                                                                                               \
            SQUARES squares = 0;                                                                                       \
            for (int64_t i = 0; i < length; i++) {                                                                     \
                TYPE x = piece[i];                                                                                     \
                high = x > high ? x : high;                                                                            \
                low = x < low ? x : low;                                                                               \
                sum += x;                                                                                              \
                squares += (PRODUCT)x * (PRODUCT)x;                                                                    \
            }                                                                                                          \
            KEEP_EXTREMES(high, low)                                                                                   \
            state->sum += (double)sum;                                                                                 \
            state->squares += (double)squares;                                                                         \
            COUNT_ZEROS                                                                                                \
        }                                                                                                              \
    }

DEFINE_SMALL_INTEGERS(int8, int8_t, int32_t, int32_t, uint32_t)
DEFINE_SMALL_INTEGERS(uint8, uint8_t, uint32_t, uint32_t, uint32_t)
DEFINE_SMALL_INTEGERS(int16, int16_t, int32_t, int32_t, uint64_t)
DEFINE_SMALL_INTEGERS(uint16, uint16_t, uint32_t, uint32_t, uint64_t)

/* FLIP maps the order of an unsigned type onto that of int64. */
#define DEFINE_LARGE_INTEGERS(NAME, TYPE, VECTOR, FLIP)                                                                \
    static void run_##NAME(const TYPE *values, int64_t n, int counts, struct state *state)                             \
    {                                                                                                                  \
        FOR_PIECES(TYPE)                                                                                               \
        {                                                                                                              \
            int64_t length = PIECE_LENGTH, whole = length - length % 32;                                               \
            TYPE high = piece[0], low = piece[0];                                                                      \
            for (int64_t i = 0; i < length; i++) {                                                                     \
                high = piece[i] > high ? piece[i] : high;                                                              \
                low = piece[i] < low ? piece[i] : low;                                                                 \
            }                                                                                                          \
            KEEP_EXTREMES((int64_t)FLIP(high), (int64_t)FLIP(low))                                                     \
            doubles8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, q0 = {0}, q1 = {0}, q2 = {0}, q3 = {0};                   \
            for (int64_t i = 0; i < whole; i += 32) {                                                                  \
                doubles8 x0 = __builtin_convertvector(*(const VECTOR *)(piece + i), doubles8);                         \
                doubles8 x1 = __builtin_convertvector(*(const VECTOR *)(piece + i + 8), doubles8);                     \
                doubles8 x2 = __builtin_convertvector(*(const VECTOR *)(piece + i + 16), doubles8);                    \
                doubles8 x3 = __builtin_convertvector(*(const VECTOR *)(piece + i + 24), doubles8);                    \
                s0 += x0, s1 += x1, s2 += x2, s3 += x3;                                                                \
                q0 += x0 * x0, q1 += x1 * x1, q2 += x2 * x2, q3 += x3 * x3;                                            \
            }                                                                                                          \
            doubles8 sum = (s0 + s1) + (s2 + s3), squares = (q0 + q1) + (q2 + q3);                                     \
            for (int64_t i = whole; i < length; i++) {                                                                 \
                sum[0] += (double)piece[i];                                                                            \
                squares[0] += (double)piece[i] * (double)piece[i];                                                     \
            }                                                                                                          \
            for (int lane = 0; lane < 8; lane++) {                                                                     \
                state->sum += sum[lane];                                                                               \
                state->squares += squares[lane];                                                                       \
            }                                                                                                          \
            COUNT_ZEROS                                                                                                \
        }                                                                                                              \
    }

#define AS_IT_IS(x) (x)
#define TOP_BIT_FLIPPED(x) ((x) ^ (UINT64_C(1) << 63))
DEFINE_LARGE_INTEGERS(int32, int32_t, unaligned_ints8, AS_IT_IS)
DEFINE_LARGE_INTEGERS(uint32, uint32_t, unaligned_words8, AS_IT_IS)
DEFINE_LARGE_INTEGERS(int64, int64_t, unaligned_longs8, AS_IT_IS)
DEFINE_LARGE_INTEGERS(uint64, uint64_t, unaligned_ulongs8, TOP_BIT_FLIPPED)

/* The extremes are any and all. */
static void run_bool(const uint8_t *values, int64_t n, struct state *state)
{
    int64_t zero = 0;
    FOR_PIECES(uint8_t)
    {
        int64_t length = PIECE_LENGTH;
        int32_t zeros = 0;
        for (int64_t i = 0; i < length; i++)
            zeros += piece[i] == 0;
        zero += zeros;
    }
    state->zero += zero;
    KEEP_EXTREMES(zero < n, zero == 0)
}

void RUN(enum dtype dtype, const void *values, int64_t n, int counts, struct state *state)
{
    switch (dtype) {
    case FLOAT32: run_float32(values, n, counts, state); break;
    case BFLOAT16: run_bfloat16(values, n, counts, state); break;
    case FLOAT16: run_float16(values, n, counts, state); break;
    case FLOAT64: run_float64(values, n, counts, state); break;
    case COMPLEX64: run_complex64(values, n, counts, state); break;
    case COMPLEX128: run_complex128(values, n, counts, state); break;
    case COMPLEX32: run_complex32(values, n, counts, state); break;
    case INT8: run_int8(values, n, counts, state); break;
    case UINT8: run_uint8(values, n, counts, state); break;
    case INT16: run_int16(values, n, counts, state); break;
    case UINT16: run_uint16(values, n, counts, state); break;
    case INT32: run_int32(values, n, counts, state); break;
    case UINT32: run_uint32(values, n, counts, state); break;
    case INT64: run_int64(values, n, counts, state); break;
    case UINT64: run_uint64(values, n, counts, state); break;
    case BOOL: run_bool(values, n, state); break;
    default: run_float8(values, probe_patch_float8[dtype - FLOAT8_E4M3FN], n, counts, state);
    }
}
