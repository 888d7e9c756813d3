"""Which values of a well-formed config.json this version can serve; the rest are refused by name."""

import json
from collections.abc import Iterator

from probe_patch.config.model import Config


def first_unsupported(config: Config) -> str | None:
    """One sentence on the first value that asks for what does not exist yet, or None when all are served."""
    return next(_unsupported(config), None)


def _unsupported(config: Config) -> Iterator[str]:
    if config.task != "statistics":
        yield _refusal("task", config.task, '"task": "statistics"')
    if config.level == "L2":
        yield (
            'level is "L2", which records the kernels of an NPU and is msProbe\'s alone; write "mix" for modules and '
            "functions"
        )
    if config.level == "debug":
        yield _refusal("level", config.level, '"L0" (modules), "L1" (functions) or "mix" (both)')
    if config.async_dump:
        yield _refusal("async_dump", True, '"async_dump": false')
    if config.dump_enable is False:
        yield _refusal("dump_enable", False, "nothing there, and turn the dump off with DUMP_ON=0")
    if config.load is not None and config.load.path:
        yield _refusal("load.path", config.load.path, "no load section")
    if config.is_deterministic:
        yield _refusal("is_deterministic", True, '"is_deterministic": false')
    if config.enable_dataloader:
        yield _refusal("enable_dataloader", True, '"enable_dataloader": false')
    yield from _unsupported_statistics(config)


def _unsupported_statistics(config: Config) -> Iterator[str]:
    section = config.statistics
    if section.scope:
        yield _refusal("statistics.scope", section.scope, '"scope": []')
    if section.list_:
        yield _refusal("statistics.list", section.list_, '"list": []')
    if section.tensor_list:
        yield _refusal("statistics.tensor_list", section.tensor_list, '"tensor_list": []')
    if {"input", "output"} & set(section.data_mode):
        yield _refusal("statistics.data_mode", section.data_mode, '"all", "forward" or "backward"')
    if section.summary_mode != "statistics":
        yield _refusal("statistics.summary_mode", section.summary_mode, '"summary_mode": "statistics"')
    if section.slice:
        parts = [part.model_dump(exclude_none=True) for part in section.slice]
        yield _refusal("statistics.slice", parts, '"slice": []')
    if section.request_id is not None:
        yield _refusal("statistics.request_id", section.request_id, "no request_id")


def _refusal(key: str, value: object, instead: str) -> str:
    return f"{key} is {json.dumps(value)}, which probe-patch cannot do yet; write {instead}"
