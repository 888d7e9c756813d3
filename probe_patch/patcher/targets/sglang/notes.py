"""What the user of a patched SGLang should know before a run costs money."""

from typing import Final

SGLANG_NOTES: Final = ("what its server must be started with for a complete dump: probe-patch launch-args",)
