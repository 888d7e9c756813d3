/* What Python calls: tensors of any layout, cut into runs for the kernels, and their numbers as one row. */
#include <math.h>
#include <string.h>

#include "statistics.h"

#define ABI 1
#define EXPORTED __attribute__((visibility("default")))

#define WITH_COUNTS (1 << 8)
#define NEGATED (1 << 9)

#define MOST_DIMENSIONS 64
#define GATHERED_BYTES 16384
#define LONG_RUN 64

float probe_patch_float8[5][256];

run_function probe_patch_run_baseline;
#ifdef HAS_V3
run_function probe_patch_run_v3;
#endif
#ifdef HAS_V4
run_function probe_patch_run_v4;
#endif

static run_function *run = probe_patch_run_baseline;

static const uint8_t BYTES[DTYPES] = {4, 2, 2, 8, 8, 16, 4, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 1, 1, 1, 1};

/* A float of eight bits: exponent, mantissa, and the bias of the exponent. */
static float small_float(int bits, int mantissa_bits, int bias)
{
    int mantissa = bits & ((1 << mantissa_bits) - 1), exponent = (bits & 0x7f) >> mantissa_bits;
    double magnitude = exponent == 0 ? ldexp(mantissa, 1 - bias - mantissa_bits)
                                     : ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return (float)(bits & 0x80 ? -magnitude : magnitude);
}

static void fill_tables(void)
{
    for (int bits = 0; bits < 256; bits++) {
        int magnitude = bits & 0x7f;
        probe_patch_float8[0][bits] = magnitude == 0x7f ? NAN : small_float(bits, 3, 7);
        probe_patch_float8[1][bits] = magnitude > 0x7c    ? NAN
                                      : magnitude < 0x7c  ? small_float(bits, 2, 15)
                                      : bits & 0x80       ? -INFINITY
                                                          : INFINITY;
        probe_patch_float8[2][bits] = bits == 0x80 ? NAN : small_float(bits, 3, 8);
        probe_patch_float8[3][bits] = bits == 0x80 ? NAN : small_float(bits, 2, 16);
        probe_patch_float8[4][bits] = bits == 0xff ? NAN : (float)ldexp(1, bits - 127);
    }
}

__attribute__((constructor)) static void choose(void)
{
    fill_tables();
#ifdef HAS_V3
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        run = probe_patch_run_v3;
#ifdef HAS_V4
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd") && run == probe_patch_run_v3)
        run = probe_patch_run_v4;
#endif
#endif
}

static void begin(struct state states[2])
{
    memset(states, 0, 2 * sizeof *states);
    states->high = -INFINITY;
    states->low = INFINITY;
    states->integer_high = INT64_MIN;
    states->integer_low = INT64_MAX;
}

static double norm_of(const struct state *state)
{
    if (state->shrunk_squares > 0)
        return sqrt(state->shrunk_squares + state->squares * SHRINK_WIDE * SHRINK_WIDE) * GROW_WIDE;
    if (state->squares > 0)
        return sqrt(state->squares + state->grown_squares * SHRINK_WIDE * SHRINK_WIDE);
    return sqrt(state->grown_squares) * SHRINK_WIDE;
}

/* Each of the values that were seen is there that many times. */
static void write_row(const struct state states[2], int flags, int64_t seen, double times, int64_t *row)
{
    enum dtype dtype = flags & 0xff;
    int is_complex = dtype >= COMPLEX64 && dtype <= COMPLEX32, is_integer = dtype >= INT8 && dtype <= BOOL;
    const struct state *counted = is_complex ? states + 1 : states;
    double mean = states->sum / (double)seen;
    if (!isfinite(mean) && (dtype == FLOAT64 || is_complex))
        mean = states->shrunk_sum / (double)seen / SHRINK;
    double numbers[4] = {states->high, states->low, mean, norm_of(states) * sqrt(times)};
    int64_t positive = counted->positive, negative = counted->negative;
    if (flags & NEGATED) {
        numbers[0] = -states->low, numbers[1] = -states->high, numbers[2] = -mean;
        positive = counted->negative, negative = counted->positive;
    }
    if (states->nan)
        numbers[0] = numbers[1] = numbers[2] = numbers[3] = NAN;
    memcpy(row, numbers, sizeof numbers);
    row[4] = is_integer ? states->integer_high : 0;
    row[5] = is_integer ? states->integer_low : 0;
    row[6] = counted->nan * (int64_t)times;
    row[7] = positive * (int64_t)times;
    row[8] = negative * (int64_t)times;
    row[9] = counted->zero * (int64_t)times;
}

EXPORTED int64_t probe_patch_abi(void) { return ABI; }

/* The instruction set that is used, for tests and benchmarks: 1 is the least that the platform has. */
EXPORTED int64_t probe_patch_level(void)
{
#ifdef HAS_V4
    if (run == probe_patch_run_v4)
        return 4;
#endif
#ifdef HAS_V3
    if (run == probe_patch_run_v3)
        return 3;
#endif
    return 1;
}

/* Use no more than this instruction set from now on. */
EXPORTED void probe_patch_limit(int64_t level)
{
    choose();
#ifdef HAS_V3
    if (level < 4 && run != probe_patch_run_baseline)
        run = probe_patch_run_v3;
#endif
    if (level < 3)
        run = probe_patch_run_baseline;
}

/* n values one behind the other. flags: a dtype, WITH_COUNTS, NEGATED. row: 10 words. */
EXPORTED void probe_patch_measure(const void *values, int64_t n, int64_t flags, int64_t *row)
{
    struct state states[2];
    begin(states);
    run(flags & 0xff, values, n, (flags & WITH_COUNTS) != 0, states);
    write_row(states, (int)flags, n, 1, row);
}

/* Several: data, n, flags and row of each. */
EXPORTED void probe_patch_measure_many(const int64_t *calls, int64_t count)
{
    for (const int64_t *call = calls; call < calls + 4 * count; call += 4)
        probe_patch_measure((const void *)(intptr_t)call[0], call[1], call[2], (int64_t *)(intptr_t)call[3]);
}

struct dimension {
    int64_t length, stride;
};

/* The dimensions that lead to other places, widest stride first, adjacent ones as one; returns how many. */
static int compacted(int dimensions, const int64_t *shape, const int64_t *strides, struct dimension *to, double *times)
{
    int used = 0;
    *times = 1;
    for (int i = 0; i < dimensions; i++) {
        if (shape[i] == 1)
            continue;
        if (strides[i] == 0) {
            *times *= (double)shape[i];
            continue;
        }
        int place = used++;
        for (; place > 0 && to[place - 1].stride < strides[i]; place--)
            to[place] = to[place - 1];
        to[place] = (struct dimension){shape[i], strides[i]};
    }
    int merged = 0;
    for (int i = 0; i < used; i++) {
        if (merged > 0 && to[merged - 1].stride == to[i].length * to[i].stride) {
            to[merged - 1].length *= to[i].length;
            to[merged - 1].stride = to[i].stride;
        } else
            to[merged++] = to[i];
    }
    return merged;
}

static char *copy_line(char *to, const char *from, int64_t n, int64_t stride, int bytes)
{
    switch (stride == 1 ? 0 : bytes) {
    case 1: for (int64_t i = 0; i < n; i++) to[i] = from[i * stride]; break;
    case 2: for (int64_t i = 0; i < n; i++) memcpy(to + 2 * i, from + 2 * i * stride, 2); break;
    case 4: for (int64_t i = 0; i < n; i++) memcpy(to + 4 * i, from + 4 * i * stride, 4); break;
    case 8: for (int64_t i = 0; i < n; i++) memcpy(to + 8 * i, from + 8 * i * stride, 8); break;
    case 16: for (int64_t i = 0; i < n; i++) memcpy(to + 16 * i, from + 16 * i * stride, 16); break;
    default: memcpy(to, from, (size_t)(n * bytes));
    }
    return to + n * bytes;
}

/* Values of any layout: shape and strides, in elements, of up to MOST_DIMENSIONS dimensions; returns 0, or 1 where there
 * are more. */
EXPORTED int64_t probe_patch_measure_strided(
    const void *values, int64_t dimensions, const int64_t *shape_and_strides, int64_t flags, int64_t *row)
{
    struct dimension of[MOST_DIMENSIONS];
    struct state states[2];
    int64_t index[MOST_DIMENSIONS] = {0};
    _Alignas(64) char gathered[GATHERED_BYTES];
    enum dtype dtype = flags & 0xff;
    int counts = (flags & WITH_COUNTS) != 0, bytes = BYTES[dtype];
    double times;

    if (dimensions > MOST_DIMENSIONS)
        return 1;
    int used = compacted((int)dimensions, shape_and_strides, shape_and_strides + dimensions, of, &times);
    if (used == 0)
        of[used++] = (struct dimension){1, 1};
    struct dimension line = of[--used];
    const char *place = values;
    char *filled = gathered;
    int64_t seen = 0, room = GATHERED_BYTES / bytes;
    int is_direct = line.stride == 1 && line.length >= LONG_RUN;
    begin(states);
    for (;;) {
        if (is_direct)
            run(dtype, place, line.length, counts, states);
        else
            for (int64_t done = 0, length; done < line.length; done += length) {
                int64_t free = room - (filled - gathered) / bytes;
                length = line.length - done < free ? line.length - done : free;
                filled = copy_line(filled, place + done * line.stride * bytes, length, line.stride, bytes);
                if (length == free) {
                    run(dtype, gathered, room, counts, states);
                    filled = gathered;
                }
            }
        seen += line.length;
        int dimension = used - 1;
        for (; dimension >= 0; dimension--) {
            place += of[dimension].stride * bytes;
            if (++index[dimension] < of[dimension].length)
                break;
            place -= of[dimension].length * of[dimension].stride * bytes;
            index[dimension] = 0;
        }
        if (dimension < 0)
            break;
    }
    if (filled > gathered)
        run(dtype, gathered, (filled - gathered) / bytes, counts, states);
    write_row(states, (int)flags, seen, times, row);
    return 0;
}
