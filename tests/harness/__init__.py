"""Runs the real source of slime's Megatron actor, any version, on a CPU and without torch, and says what it did."""
