"""Which values of a well-formed config.json this version can serve; the rest are refused by name."""

import json
from collections.abc import Iterator
from typing import Final

from probe_patch.config.model import Config
from probe_patch.config.sections import is_module_entry

_INSTEAD_OF_TASK: Final = {
    "acc_check": 'write "task": "tensor" here and run `msprobe acc_check` on the dump',
    "diff_check": 'write "task": "statistics" with "summary_mode": "md5" and compare the two dumps',
    "exception_dump": 'it is MindSpore\'s; write "task": "nan_check"',
    "overflow_check": 'write "task": "nan_check"',
}


def first_unsupported(config: Config) -> str | None:
    """One sentence on the first value that asks for what does not exist, or None when all are served."""
    return next(_unsupported(config), None)


def _unsupported(config: Config) -> Iterator[str]:
    if config.task in _INSTEAD_OF_TASK:
        yield f'task is "{config.task}", which probe-patch does not do; {_INSTEAD_OF_TASK[config.task]}'
    if config.level == "L2":
        yield (
            'level is "L2", which records the kernels of an NPU and is msProbe\'s alone; write "mix" for modules and '
            "functions"
        )
    if config.task == "structure" and not config.extra_info:
        yield (
            'task "structure" is stack.json and construct.json, which "extra_info": false leaves out; write '
            '"extra_info": true'
        )
    if config.level == "debug" and config.task not in ("statistics", "tensor"):
        yield f'level "debug" goes with the tasks "statistics" and "tensor", not with "{config.task}"'
    if config.load is not None and config.load.path:
        yield _refusal("load.path", config.load.path, "no load section: probe-patch never changes what is computed")
    if config.is_deterministic:
        yield _refusal("is_deterministic", True, '"is_deterministic": false, and call seed_all(mode=True) yourself')
    if config.enable_dataloader:
        yield _refusal("enable_dataloader", True, '"enable_dataloader": false, and call start() and stop() yourself')
    yield from _unsupported_in_tensor(config)
    yield from _unfit_scope(config)


def _unsupported_in_tensor(config: Config) -> Iterator[str]:
    if config.task != "tensor":
        return
    section = config.tensor
    if section.bench_path:
        yield _refusal("tensor.bench_path", section.bench_path, "no bench_path, and compare the two dumps")
    if section.file_format is not None:
        yield _refusal("tensor.file_format", section.file_format, "no file_format; tensors are .pt files")


def _unfit_scope(config: Config) -> Iterator[str]:
    """A scope names entries of the level, and both of one kind, as only one of them could ever be met else."""
    scope = config.task_section.scope
    kinds = {is_module_entry(entry) for entry in scope}
    if len(kinds) == 2 and config.level != "mix":
        yield _scope_refusal(config, "one of a module and one of a function", "two of the level's entries")
    elif kinds == {True} and config.level == "L1":
        yield _scope_refusal(config, "modules", 'functions such as "Functional.linear.0.forward"')
    elif kinds == {False} and config.level == "L0":
        yield _scope_refusal(config, "functions", 'modules such as "Module.layers.0.Block.forward.0"')


def _scope_refusal(config: Config, found: str, instead: str) -> str:
    return f'{config.task}.scope names {found}, which level "{config.level}" does not record together; write {instead}'


def _refusal(key: str, value: object, instead: str) -> str:
    return f"{key} is {json.dumps(value)}, which probe-patch cannot do; write {instead}"
