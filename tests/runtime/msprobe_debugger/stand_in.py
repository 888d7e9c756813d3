"""A ``msprobe.pytorch`` that writes down what is asked of its debugger, which is one for the process, as msProbe's."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

Call = tuple[object, ...]


class StandInDebugger:
    """msProbe's interface as of 26.0.0; a subclass of its own for each process that is played.

    Attributes:
        made: whether one was made, if only half: msProbe then gives that one out again.
        calls: what was called, with what counts: a start tells the folder it goes to.
        failures: what a method raises from now on, by its name; ``config`` is the refusal of a config.json.
        rereads: the dump path that the next look at config.json brings back; None where it has not changed.
        config_text: what the config.json held when it was read.
    """

    made: bool
    calls: list[Call]
    failures: dict[str, Exception]
    rereads: str | None
    config_text: str
    service: Any
    _instance: "StandInDebugger | None"

    def __new__(cls, _config_path: str) -> "StandInDebugger":
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __init__(self, config_path: str) -> None:
        cls = type(self)
        if cls.made:
            return
        cls.made = True
        cls.calls.append(("config", config_path))
        self._fail("config")
        cls.config_text = Path(config_path).read_text()
        dump_path = json.loads(cls.config_text)["dump_path"]
        self.config = SimpleNamespace(dump_path=dump_path)
        self.service = SimpleNamespace(config=SimpleNamespace(dump_path=dump_path), reset_status=self._reset_status)

    def start(self, model: object = None, token_range: object = None, rank_id: int | None = None) -> None:
        self._look_again()
        self.calls.append(("start", self._folder(), rank_id))
        self._fail("start")

    def stop(self) -> None:
        self.calls.append(("stop",))
        self._look_again()
        self._fail("stop")

    def step(self) -> None:
        self.calls.append(("step",))
        self._fail("step")

    def set_init_step(self, step: int) -> None:
        self.calls.append(("number", step))

    def _reset_status(self) -> None:
        self.calls.append(("reset",))
        self._fail("reset")

    def _folder(self) -> str:
        return Path(self.service.config.dump_path).name

    def _look_again(self) -> None:
        cls = type(self)
        if cls.rereads is not None:
            self.service.config = SimpleNamespace(dump_path=cls.rereads)
            cls.rereads = None

    def _fail(self, name: str) -> None:
        if name in self.failures:
            raise self.failures[name]


class EarlyDebugger:
    """msProbe's interface before 26.0.0."""

    def __init__(self, _config_path: str) -> None: ...

    def start(self, model: object = None, token_range: object = None) -> None: ...

    def set_init_step(self, step: int) -> None: ...


def process_of_its_own() -> type[StandInDebugger]:
    """The debugger's class as a process finds it that has made none yet."""
    members: dict[str, object] = {
        "made": False,
        "calls": [],
        "failures": {},
        "rereads": None,
        "config_text": "",
        "service": None,
        "_instance": None,
    }
    return type("PrecisionDebugger", (StandInDebugger,), members)


def modules(debugger_class: type) -> Mapping[str, ModuleType]:
    """What to put into ``sys.modules``."""
    package, pytorch = ModuleType("msprobe"), ModuleType("msprobe.pytorch")
    vars(pytorch)["PrecisionDebugger"] = debugger_class
    return {"msprobe": package, "msprobe.pytorch": pytorch}
