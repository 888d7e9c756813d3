"""Names of the dump on disk, shared by what writes it and what reads it.

    ${dump_path}/{PHASE_FOLDERS[phase]}/step{N}/rank{R}/dump.json  stack.json  construct.json  meta.json
    ${dump_path}/{rollout_folder(…)}/step{N}/rank{R}/…  inputs.pt

The first three files are msProbe's (mindstudio-probe 26.2.0), so that its ``compare`` and
``graph_visualize`` read them.
"""

from typing import Final, Literal, TypeAlias

Phase: TypeAlias = Literal["ref", "old", "actor"]

PHASE_FOLDERS: Final[dict[Phase, str]] = {
    "ref": "ref_compute_log_prob",
    "old": "old_log_prob",
    "actor": "actor_train",
}

DUMP_FILE: Final = "dump.json"
STACK_FILE: Final = "stack.json"
CONSTRUCT_FILE: Final = "construct.json"
DEBUG_FILE: Final = "debug.json"
META_FILE: Final = "meta.json"
INPUTS_FILE: Final = "inputs.pt"
TENSOR_FOLDER: Final = "dump_tensor_data"

LAST_MICRO_BATCH: Final = "megatron_micro_step_number"
"""construct.json's key for the last micro-batch; where it is there, values are pairs of a parent and a micro-batch."""

PdRole: TypeAlias = Literal["null", "prefill", "decode"]
"""What SGLang's ``disaggregation_mode`` says: whether a server does only the prefill or the decode of each request."""

PD_ROLES: Final[tuple[PdRole, ...]] = ("null", "prefill", "decode")


def rollout_folder(role: PdRole, draft: bool) -> str:
    """The folder of the inference side: each kind of server and of model has its own, as their forwards differ."""
    return "_".join(["rollout", *([] if role == "null" else [role]), *(["draft"] if draft else [])])


def step_folder(step: int) -> str:
    """The folder of one step, which is one rollout in training and one forward in inference."""
    return f"step{step}"


def rank_folder(rank: int) -> str:
    """The folder of a process that has a rank."""
    return f"rank{rank}"


def process_folder(pid: int) -> str:
    """The folder of a process that has no rank; readers that pair ranks leave it out."""
    return f"proc{pid}"
