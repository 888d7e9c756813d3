"""The demonstration: a small slime, laid out, patched, run and undone."""
