"""What the author of a config.json that is served should know about it all the same."""

from collections.abc import Iterator
from pathlib import Path

from probe_patch.config.model import Config


def notes(config: Config) -> Iterator[str]:
    """One sentence each."""
    if not Path(config.dump_path).is_absolute():
        yield (
            f'dump_path "{config.dump_path}" is relative: each process takes it from its own working directory; write '
            "the path in full"
        )
    if config.dump_enable is False:
        yield "dump_enable is false: nothing is recorded until it is true here, which running processes notice"
    if config.selects_by_name and "risk_level" in config.model_fields_set and config.level in ("L1", "mix"):
        yield "risk_level has no effect where scope or list choose what is recorded"
    if config.level == "debug":
        yield 'level "debug" records what save() is given and nothing else, and patched code calls no save()'
    if config.task == "tensor" and config.level != "debug" and not config.task_section.list_:
        yield "every tensor is saved, which can fill a disk in minutes; list names what you need, limits bounds it"
