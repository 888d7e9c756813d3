"""One forward of one module or function, and the pass through the model that it is a part of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from probe_patch.runtime.capture.forms import WrittenRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from probe_patch.runtime.capture.backward import Backward
    from probe_patch.runtime.capture.forms import Record
    from probe_patch.runtime.capture.names import CallName


class ForwardPass:
    """One outermost pass through a root.

    Attributes:
        micro_batch: how many passes through this root the dump holds before it.
        has_gradients: whether it began with gradients enabled, so that something may flow back through it.
    """

    __slots__ = ("has_gradients", "micro_batch")

    def __init__(self, micro_batch: int, has_gradients: bool) -> None:
        self.micro_batch = micro_batch
        self.has_gradients = has_gradients


BEFORE_ANY_PASS: Final = ForwardPass(0, has_gradients=False)


class _Absent:
    """In the place of what a call has not come to, or was not asked for."""


ABSENT: Final[Any] = _Absent()


class Call:
    """One forward of one module or function, from its start to its end.

    Attributes:
        name: what is called.
        number: how many calls of that name were before it.
        parent: the module call that it runs in.
        during: the pass that it is a part of; outside of any, the last one that began.
        handled: the exception the thread was already handling when the call began.
        is_sealed: whether only torch's own code in C has run in it, so that nobody has a hook on what it has made.
        is_taken: whether its forward is recorded.
        has_backward: whether its backward is recorded, as something has flowed back through it.
        input_args, input_kwargs, output, parameters: what is known of it so far, as in dump.json; ``ABSENT`` where
            nothing is.
        stack: the number of its call stack; None where that is not recorded.
        frame: the identity of the frame that runs it, of a module; that frame lives as long as the call is open.
        flow: what flows back through it; None where nothing will, or where gradients are not recorded.
    """

    __slots__ = (
        "during",
        "flow",
        "frame",
        "handled",
        "has_backward",
        "input_args",
        "input_kwargs",
        "is_sealed",
        "is_taken",
        "name",
        "number",
        "output",
        "parameters",
        "parent",
        "stack",
    )

    def __init__(
        self, name: CallName, number: int, parent: Call | None, during: ForwardPass, handled: BaseException | None
    ) -> None:
        self.name = name
        self.number = number
        self.parent = parent
        self.during = during
        self.handled = handled
        self.is_sealed = False
        self.is_taken = True
        self.has_backward = False
        self.flow: Backward | None = None
        self.input_args: Record = ABSENT
        self.input_kwargs: Record = ABSENT
        self.output: Record = ABSENT
        self.parameters: Record = ABSENT
        self.stack: int | None = None
        self.frame = 0

    @property
    def entry(self) -> str:
        """The call's name in the dump."""
        return self.name.forward(self.number)

    @property
    def backward(self) -> str:
        """The name of its backward in the dump."""
        return self.name.backward(self.number)

    def end(self) -> None:
        """It is over, or never will be: what was only needed until then goes."""
        # Of one that has raised, ``flow`` still holds nodes. It is in a cycle with the call, and Python's collector of
        # garbage looks at neither, as there are many.
        self.flow = self.handled = None
        self.frame = 0

    def give_record(self) -> dict[str, Record]:
        """The record, which the call, kept for its place among the others, then lets go of."""
        record: dict[str, Record] = {}
        if self.input_args is not ABSENT:
            record["input_args"] = self.input_args
        if self.input_kwargs is not ABSENT:
            record["input_kwargs"] = self.input_kwargs
        if self.output is not ABSENT:
            record["output"] = self.output
        if self.parameters is not ABSENT:
            record["parameters"] = self.parameters
        self.input_args = self.input_kwargs = self.output = self.parameters = ABSENT
        self.flow = None
        return record

    def write(self, write: Callable[[Record], Record]) -> None:
        """Put what ``write`` makes of them in the place of the parts of the record."""
        for name in ("input_args", "input_kwargs", "output", "parameters"):
            part: Record = getattr(self, name)
            if part is not ABSENT and type(part) is not WrittenRecord:
                setattr(self, name, write(part))

    def around(self) -> Iterator[Call]:
        """The module calls that it runs in, innermost first."""
        call = self.parent
        while call is not None:
            yield call
            call = call.parent
