"""Whether ``DUMP_ON`` asks for a dump: the rule of every patched file's prelude, for what needs no patch."""

from collections.abc import Mapping

from probe_patch.errors import WrongUsage


def dump_is_on(environ: Mapping[str, str]) -> bool:
    """True for 1, true, yes and on; False for 0, false, no, off, nothing and unset; whatever the case.

    Raises:
        WrongUsage: ``DUMP_ON`` is anything else.
    """
    written = environ.get("DUMP_ON", "")
    match written.strip().lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "" | "0" | "false" | "no" | "off":
            return False
        case _:
            raise WrongUsage(
                f"DUMP_ON is {written!r}: set it to 1, true, yes or on to dump, or to 0, false, no or off not to"
            )
