/* What the kernels, which are compiled once per instruction set, and the library around them share. */
#ifndef PROBE_PATCH_STATISTICS_H
#define PROBE_PATCH_STATISTICS_H

#include <stdint.h>

/* In the order of library.py. */
enum dtype {
    FLOAT32, BFLOAT16, FLOAT16, FLOAT64,
    COMPLEX64, COMPLEX128, COMPLEX32,
    INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, BOOL,
    FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ, FLOAT8_E8M0FNU,
    DTYPES
};

/* Of the values seen so far. Infinite and NaN ones are counted even where nobody asks, zeros are not. */
struct state {
    double high, low;
    double sum;
    double shrunk_sum;      /* times SHRINK, which keeps it finite */
    double squares;
    double shrunk_squares;  /* of float64 values whose squares overflow, times SHRINK_WIDE first */
    double grown_squares;   /* of those whose squares vanish, times GROW_WIDE first */
    int64_t integer_high, integer_low;
    int64_t nan, positive, negative, zero;
};

#define SHRINK 0x1p-64
#define SHRINK_WIDE 0x1p-600
#define GROW_WIDE 0x1p600

/* Adds n values that lie one behind the other; with counts, zeros too. */
typedef void run_function(enum dtype dtype, const void *values, int64_t n, int counts, struct state *state);

extern float probe_patch_float8[5][256];

#endif
