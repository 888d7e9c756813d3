"""``PrecisionDebugger``, a drop-in for msProbe's."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from probe_patch.config import Overrides
from probe_patch.runtime.capture.names import Model
from probe_patch.runtime.capture.slices import token_slice
from probe_patch.runtime.made import MADE, nothing, on_class_too
from probe_patch.runtime.occasion import BY_HAND
from probe_patch.runtime.phases import recorded_phase
from probe_patch.runtime.ranks import identify
from probe_patch.runtime.service import Service
from probe_patch.runtime.settings import DumpSettings, read_settings
from probe_patch.runtime.tokens import ChosenTokens, token_range_of

_NO_TOKENS: Final = (
    "config.json asks for request_id {}, and start() was given no scheduled_tokens to find it by; all tokens are "
    "recorded"
)


def _unrecorded() -> AbstractContextManager[None]:
    return nullcontext()


class PrecisionDebugger:
    """Records the inputs, outputs and parameters of modules and functions, and their gradients.

    Unlike msProbe's, it is no singleton: each object has its own settings, counters and folder. As with msProbe's, its
    methods may be called on the class as well, which means the debugger of a process that has just one.

    What it writes goes to ``{dump_path}/step{N}/rank{R}``; a dump path assigned to ``config`` or ``service.config``
    counts from the next ``start``, which then counts its entries from 0.

    But for the constructor, nothing here raises: what fails is said in the log, and in meta.json.

    Args:
        config_path: a config.json; without one, step 0 is recorded into ``probe_patch_dump`` in the working directory.
        task, dump_path, level, step: replace the config's values when given.

    Raises:
        ConfigError: the config cannot be read or served, its dump path cannot be written, or the environment asks for a
            statistics backend that is not there.
    """

    def __init__(
        self,
        config_path: str | Path | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        step: Sequence[int | str] | None = None,
    ) -> None:
        self.service = Service(read_settings(config_path, Overrides(task, dump_path, level, step)))
        MADE.add(self)

    @property
    def config(self) -> DumpSettings:
        """What is asked for now: where config.json has ``dump_enable``, it is read again when it changes."""
        return self.service.config

    @on_class_too(otherwise=nothing)
    def start(
        self,
        model: Model | None = None,
        token_range: Sequence[int] | None = None,
        rank_id: int | None = None,
        scheduled_tokens: Mapping[str, int] | None = None,
    ) -> None:
        """Begin to record ``model``, or a list of its chunks. A second start changes nothing.

        Args:
            token_range: the first and the last forward of the model to record, counted from this start, from 0.
            rank_id: this process's rank, when it is not torch.distributed's.
            scheduled_tokens: how many tokens each request has in this forward, in the order in which they lie along
                dim 0. With ``request_id`` in config.json, only that request's part of each tensor is looked at, and
                nothing when it has none. Without, it has no effect.
        """
        service = self.service
        try:
            service.look_again()
            if service.is_idle:
                return
            tokens = self._tokens(token_range, scheduled_tokens)
            folder, identity = service.config.folder(), identify(rank_id)
        except Exception as error:
            service.note("starting", error)
            return
        if tokens is not None:
            service.start(model, identity, folder, BY_HAND, tokens)

    @on_class_too(otherwise=nothing)
    def stop(self) -> None:
        """Stop recording and write the files. Without a start, nothing."""
        self.service.stop(None)

    @on_class_too(otherwise=nothing)
    def step(self) -> None:
        """Go on to the next step."""
        self.service.step()

    @on_class_too(otherwise=nothing)
    def set_init_step(self, number: int) -> None:
        """Count steps from this number instead of 0."""
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            self.service.note("set_init_step", f"the first step is {number!r}; pass a whole number, at least 0")
        else:
            self.service.set_init_step(number)

    @on_class_too(otherwise=nothing)
    def save(self, variable: object, name: str, save_backward: bool = True) -> None:
        """At level debug: record a value of any nesting into debug.json, as ``{name}.{k}.debug``.

        With ``save_backward``, the gradients that its tensors get before the step ends are recorded too, as
        ``{name}_grad.{k}.debug``. debug.json is written by ``step``. At other levels, nothing.
        """
        self.service.save(variable, name, save_backward)

    @on_class_too(otherwise=nothing)
    def register_custom_api(self, module: object, api: str, api_prefix: str | None = None) -> None:
        """From the next start on, record calls of ``module.api`` as ``{api_prefix}.{api}``, where levels
        record functions. Without a prefix, it is the module's name."""
        refusal = self.service.custom_apis.add(module, api, api_prefix)
        if refusal is not None:
            self.service.note("registering a function", refusal)

    @on_class_too(otherwise=nothing)
    def restore_custom_api(self, module: object, api: str) -> None:
        """Undo ``register_custom_api``, from the next start on."""
        self.service.custom_apis.remove(module, api)

    @on_class_too(otherwise=_unrecorded)
    def phase(self, name: str, model: Model | None = None) -> AbstractContextManager[None]:
        """``with debugger.phase("ref", model): …`` records the block into ``{dump_path}/ref/step{N}/rank{R}``.

        Each name has its own entries and counters. One that was there already in this step is gone on with. Inside
        another phase, or between start and stop, that one is stopped meanwhile. An exception that ends the block is
        written down and passes on.

        Args:
            name: up to 60 letters, digits, ``_``, ``-`` and ``.``; with any other the block runs unrecorded, which is
                said.
            model: as for ``start``.
        """
        return recorded_phase(self.service, name, model)

    def _tokens(self, token_range: object, scheduled_tokens: Mapping[str, int] | None) -> ChosenTokens | None:
        """None where the request that is asked for has no tokens in this forward."""
        forwards = token_range_of(token_range)
        request = self.service.config.request_id
        if request is None:
            return ChosenTokens(forwards)
        if scheduled_tokens is None:
            self.service.note("choosing tokens", _NO_TOKENS.format(request))
            return ChosenTokens(forwards)
        part = token_slice(request, scheduled_tokens)
        if part is None:
            self.service.note("choosing a request", f"request {request} has no tokens here, so nothing is recorded")
            return None
        return ChosenTokens(forwards, part)
