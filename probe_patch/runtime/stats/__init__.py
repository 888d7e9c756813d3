"""One tensor in, one row of numbers out, without waiting for the device."""
