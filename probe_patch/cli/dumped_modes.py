"""Which forwards of SGLang a config.json asks for, whichever server runs them."""

from probe_patch.config.rollout import RolloutSection
from probe_patch.dump_format import PD_ROLES


def dumped_modes(rollout: RolloutSection) -> frozenset[str]:
    """The modes that any server is to dump; prefill and decode servers count where config.json speaks of them."""
    sections = [rollout.for_role(role) for role in PD_ROLES if role == "null" or role in rollout.model_fields_set]
    return frozenset(mode for section in sections for mode in section.modes)
