"""Executes one version of the actor's source, patched or not, and returns what happened."""

import builtins
import functools
from types import ModuleType
from typing import Any

from tests.harness.actor_source import FILE_NAME, ActorSource, read_actor
from tests.harness.outside import Importer, Outside
from tests.harness.process_state import borrowed_process
from tests.harness.recording_probe import ProbeMaker
from tests.harness.scenarios import Scenario
from tests.harness.slime_helpers import arguments, stand_ins
from tests.harness.trace import ROLLOUT, Recorder, Trace

SLIME_PACKAGE = "slime.backends.megatron_utils"
MILES_PACKAGE = "miles.backends.megatron_utils"


class PhaseFailed(Exception):
    """What a failing phase raises."""


def run_actor(
    source: bytes,
    scenario: Scenario,
    probe: ProbeMaker | None = None,
    *,
    dump_on: str | None = None,
    package: str = SLIME_PACKAGE,
) -> Trace:
    """Execute the file, create its actor, call ``init`` and then ``train`` once.

    Args:
        source: the file's bytes.
        scenario: how slime is configured.
        probe: what stands for ``Probe``, with ``DUMP_ON=1``; None runs with the dump off.
        dump_on: the value of ``DUMP_ON`` when ``probe`` is None; None leaves it unset.
        package: the package that the file's relative imports start from.

    Returns:
        the trace; it holds what ``init`` or ``train`` raised.

    Raises:
        Exception: whatever the file raises while it is imported.
    """
    actor_source = read_actor(source)
    recorder = Recorder()
    failure = PhaseFailed(scenario.fail_in)
    helpers = stand_ins(actor_source, scenario, failure, recorder)
    injected = None if probe is None else functools.partial(probe, recorder)
    with borrowed_process(dump_on if probe is None else "1", injected):
        actor_class = _execute(actor_source, package, Importer(helpers, recorder))
        actor = _observed(actor_class, actor_source.rollout_method, recorder)()
        # Other processes hand these to the actor between init and train.
        actor._actor_critic_groups = actor.data_buffer = Outside("set by another process", helpers)
        raised = _init_and_train(actor, actor_source, scenario)
    return Trace(
        events=tuple(recorder.events),
        raised=raised,
        failure=failure if scenario.fail_in else None,
        imports=tuple(recorder.imports),
        actor_class=actor_class,
        actor=actor,
    )


def _execute(source: ActorSource, package: str, importer: Importer) -> type:
    module = ModuleType(f"{package}.actor")
    module.__package__ = package
    module.__file__ = FILE_NAME
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": importer}
    exec(source.code, vars(module))
    actor_class: type = getattr(module, source.class_name)
    return actor_class


def _observed(actor_class: Any, rollout_method: str, recorder: Recorder) -> Any:
    """A subclass that records the calls of interest, so that the class under test stays as the file made it.

    The two methods' parameters changed through slime's history: whatever comes is passed on.
    """

    def compute_log_prob(self: object, *positional: object, store_prefix: str = "", **options: object) -> object:
        recorder.events.append(("compute_log_prob", store_prefix))
        inside = len(recorder.events)
        try:
            return actor_class.compute_log_prob(self, *positional, store_prefix=store_prefix, **options)
        finally:
            # Some versions change the weights inside the call, others before it; what happens inside is not recorded.
            del recorder.events[inside:]

    def rollout(self: object, *positional: object, **options: object) -> object:
        recorder.events.append(ROLLOUT)
        return getattr(actor_class, rollout_method)(self, *positional, **options)

    return type("Observed", (actor_class,), {"compute_log_prob": compute_log_prob, rollout_method: rollout})


def _init_and_train(actor: Any, source: ActorSource, scenario: Scenario) -> Exception | None:
    given: dict[str, object] = {
        "args": arguments(scenario),
        "role": scenario.role,
        "wandb_run_id": "none",
        "with_ref": scenario.with_ref,
        "with_opd_teacher": scenario.with_opd_teacher,
        "rollout_id": 0,
        "rollout_data_ref": None,
        "with_data_fetching": True,
        "external_data": None,
    }
    try:
        actor.init(**{name: given[name] for name in source.parameters["init"]})
        actor.train(**{name: given[name] for name in source.parameters["train"]})
    except Exception as error:
        return error
    return None
