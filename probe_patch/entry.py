"""Where the ``probe-patch`` command begins: light enough that Ctrl-C is heard from its first moment to its last."""

import signal
import sys

INTERRUPTED = 130
INTERRUPTED_SENTENCE = "probe-patch: interrupted; no file is half done"


def main() -> None:
    """Run the command line; importing it takes a while, and the end of the process must not be interrupted."""
    try:
        from probe_patch.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.stderr.write(f"{INTERRUPTED_SENTENCE}\n")
        sys.exit(INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
