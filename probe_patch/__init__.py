"""Patch slime so that ``DUMP_ON=1`` writes every module's statistics to disk, and undo it to the byte."""

__version__ = "0.1.0"
