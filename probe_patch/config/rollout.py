"""Our own section ``rollout``: which forwards of an inference server are recorded, and what besides."""

from typing import Literal, TypeAlias

from pydantic import Field

from probe_patch.config.sections import Section
from probe_patch.dump_format import PdRole

ForwardKind: TypeAlias = Literal["extend", "decode", "all"]
RecordedInputs: TypeAlias = Literal["tensor", "hash", "none"]


class ForwardsSection(Section):
    """Ours: which forward passes of an inference server count.

    Attributes:
        modes: extend (prompts, or parts of them), decode (a token per sequence), or all that run the model.
        min_tokens: extend forwards of fewer tokens do not count; health probes and cache hits have one.
        max_forwards: how many forwards a process records at most; null for no limit.
    """

    modes: list[ForwardKind] = Field(default=["extend"], min_length=1)
    min_tokens: int = Field(default=2, ge=1)
    max_forwards: int | None = Field(default=None, ge=1)


class RolloutSection(ForwardsSection):
    """Ours: what is recorded on the inference side.

    Attributes:
        inputs: token ids, positions and lengths as a tensor file (inputs.pt), as hashes in meta.json, or not at all.
        draft: whether the draft models of speculative decoding are recorded too.
        prefill, decode: what else holds for the prefill and the decode servers of a disaggregated setup.
    """

    inputs: RecordedInputs = "tensor"
    draft: bool = False
    prefill: ForwardsSection = ForwardsSection()
    decode: ForwardsSection = ForwardsSection()

    def for_role(self, role: PdRole) -> ForwardsSection:
        """What holds for a server of this role: the keys of its own section, else those of this one.

        A decode server runs no extend forwards, so ``["extend"]`` from here would record nothing there: unless its own
        section names modes, it then stands for its decode forwards.
        """
        own = {"null": ForwardsSection(), "prefill": self.prefill, "decode": self.decode}[role]
        merged = self.model_dump(include=set(ForwardsSection.model_fields)) | own.model_dump(exclude_unset=True)
        if role == "decode" and "modes" not in own.model_fields_set and merged["modes"] == ["extend"]:
            merged["modes"] = ["decode"]
        return ForwardsSection.model_validate(merged)
