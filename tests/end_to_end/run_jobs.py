"""Run many jobs on example trees, without Ray: importing megatron-core once is most of the time.

    python run_jobs.py JOBS.json

A job is ``{"tree", "flags", "env", "rollouts", "result"}``. It goes through the tree's own ``train.py --local``, unless
``rollouts`` is a list: then it has one entry per rollout, the arguments that this rollout changes, and a rollout that
raises does not end the job. What became of it goes to ``result``, with what the logger ``probe_patch`` said, and for a
list with the number of forward hooks that are left on the model.
"""

import json
import logging
import os
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.end_to_end.children import in_a_child

GATE = ("DUMP_ON", "PROBE_PATCH_CONFIG", "PROBE_PATCH_TRAIN_CONFIG", "MSPROBE_CONFIG_PATH")


class Listener(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def run_job(job: dict[str, Any]) -> None:
    tree = Path(job["tree"])
    for name in GATE:
        os.environ.pop(name, None)
    os.environ.update(job["env"])
    listener = Listener()
    logging.getLogger("probe_patch").addHandler(listener)
    sys.path.insert(0, str(tree))
    try:
        result = through_train_py(tree, job) if job["rollouts"] is None else one_by_one(tree, job)
    finally:
        logging.getLogger("probe_patch").removeHandler(listener)
        sys.path[:] = [path for path in sys.path if path != str(tree)]
    Path(job["result"]).write_text(json.dumps({**result, "said": listener.said}))


def through_train_py(tree: Path, job: dict[str, Any]) -> dict[str, Any]:
    sys.argv = ["train.py", "--local", *job["flags"], "--result", job["result"]]
    try:
        runpy.run_path(str(tree / "train.py"), run_name="__main__")
    except SystemExit as end:
        # 1 says that a rollout raised, which some of the jobs ask for.
        if end.code not in (0, 1):
            raise
    result: dict[str, Any] = json.loads(Path(job["result"]).read_text())
    return result


def one_by_one(tree: Path, job: dict[str, Any]) -> dict[str, Any]:
    (actor,) = tree.glob("*/backends/megatron_utils/actor.py")
    package = actor.relative_to(tree).parts[0]
    args = import_module(f"{package}.driver.options").parse([*job["flags"], "--local"])
    generate = import_module(f"{package}.driver.rollout").generate
    actor_class = import_module(f"{package}.backends.megatron_utils.actor").MegatronTrainRayActor
    group = import_module(f"{package}.ray.local_group").LocalTrainGroup(actor_class, args)
    group.init(args, args.role)
    before = dict(vars(args))
    rollouts = []
    for rollout_id, changes in enumerate(job["rollouts"]):
        vars(args).update({**before, **changes})
        error = None
        try:
            group.train(rollout_id, generate(args, rollout_id))
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        rollouts.append({"rollout_id": rollout_id, "ranks": group.reports(), "error": error})
    modules = [module for chunk in group._actor.model for module in chunk.modules()]
    hooks = sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in modules)
    return {"role": args.role, "rollouts": rollouts, "error": None, "hooks": hooks}


if __name__ == "__main__":
    import_module("megatron.core")
    for each in json.loads(Path(sys.argv[1]).read_text()):
        in_a_child(run_job, each)
