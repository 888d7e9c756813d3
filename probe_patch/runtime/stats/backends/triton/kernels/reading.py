"""Values of any dtype, loaded as words the device can load anywhere and decoded there.

Eight-bit floats are decoded from their bits, since sm_80 converts only one of them; bit layouts as in the OCP
specification of 8-bit floats, of microscaling formats (e8m0), and, for the fnuz forms, as in LLVM's APFloat.
"""

import triton
import triton.language as tl


@triton.jit
def load(pointer, offsets, keep, CODE: tl.constexpr, MASKED: tl.constexpr):
    """The words at these elements; of complex128 the real parts, and the imaginary ones behind them."""
    if CODE == "complex128":
        # Both parts of a value lie side by side: read together, so that one load serves both.
        offsets = tl.expand_dims(offsets * 2, -1) + tl.arange(0, 2)
        keep = tl.expand_dims(keep, -1)
    if MASKED:
        words = tl.load(pointer + offsets, mask=keep)
    else:
        words = tl.load(pointer + offsets)
    if CODE == "complex128":
        words, more = tl.split(words)
    else:
        more = words
    return words, more


@triton.jit
def decode(words, CODE: tl.constexpr, DTYPE: tl.constexpr):
    """Real words as numbers of this dtype, which is wide enough for each of them but perhaps the integers."""
    # One return: Triton wants all of them to be of one type.
    if CODE == "bool":
        value = words != 0
    elif CODE == "uint64":
        value = words.to(tl.uint64, bitcast=True)
    elif CODE == "e5m2":
        # The upper half of a float16.
        value = (words.to(tl.int16) << 8).to(tl.float16, bitcast=True)
    elif CODE == "e4m3fn":
        value = _decode_small(words, 3, 7, 0x7F, 0x7F)
    elif CODE == "e4m3fnuz":
        value = _decode_small(words, 3, 8, 0xFF, 0x80)
    elif CODE == "e5m2fnuz":
        value = _decode_small(words, 2, 16, 0xFF, 0x80)
    elif CODE == "e8m0":
        # Nothing but an exponent: that of float32, whose 2**-127 is a subnormal number.
        bits = words.to(tl.int32)
        known = tl.where(bits == 0, 1 << 22, bits << 23)
        value = tl.where(bits == 0xFF, 0x7FC00000, known).to(tl.float32, bitcast=True)
    else:
        value = words
    return value.to(DTYPE)


@triton.jit
def split(words, more, CODE: tl.constexpr, DTYPE: tl.constexpr):
    """The real and the imaginary parts of complex words."""
    if CODE == "complex32":
        real = words.to(tl.int16).to(tl.float16, bitcast=True)
        imaginary = (words >> 16).to(tl.int16).to(tl.float16, bitcast=True)
    elif CODE == "complex64":
        real = words.to(tl.int32).to(tl.float32, bitcast=True)
        imaginary = (words >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    else:
        real = words
        imaginary = more
    return real.to(DTYPE), imaginary.to(DTYPE)


@triton.jit
def magnitude(real, imaginary, SCALED: tl.constexpr):
    """|z|, infinite if either part is, whatever the other.

    Args:
        SCALED: whether a square may be beyond the dtype.
    """
    a = tl.abs(real)
    b = tl.abs(imaginary)
    if SCALED:
        large = tl.maximum(a, b)
        ratio = tl.minimum(a, b) / tl.where(large > 0, large, 1.0)
        found = large * tl.sqrt(1.0 + ratio * ratio)
        # A maximum leaves NaN out.
        found = tl.where((a != a) | (b != b), a + b, found)
    else:
        found = tl.sqrt(a * a + b * b)
    infinity = float("inf")
    return tl.where((a == infinity) | (b == infinity), infinity, found)


@triton.jit
def _decode_small(words, MANTISSA: tl.constexpr, BIAS: tl.constexpr, UNDER: tl.constexpr, NAN: tl.constexpr):
    """An eight-bit float as float32; a word is NaN if its bits under a mask are these."""
    bits = words.to(tl.int32)
    exponent = (bits & 0x7F) >> MANTISSA
    fraction = bits & ((1 << MANTISSA) - 1)
    normal = ((exponent + (127 - BIAS)) << 23) | (fraction << (23 - MANTISSA))
    small = fraction.to(tl.float32) * (2.0 ** (1 - BIAS - MANTISSA))
    value = tl.where(exponent == 0, small, normal.to(tl.float32, bitcast=True))
    value = tl.where(bits >= 128, -value, value)
    return tl.where((bits & UNDER) == NAN, float("nan"), value)
