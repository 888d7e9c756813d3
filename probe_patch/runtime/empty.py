"""Why a dump lacks all forwards, or has no entries at all."""

from typing import Final

from probe_patch.runtime.occasion import Occasion
from probe_patch.runtime.store import Store

NOTHING_FLOWED_BACK: Final = (
    "forwards ran, but nothing flowed back through what is chosen before the stop; data_mode asks for backward only"
)
NOTHING_CHOSEN: Final = "forwards ran, but scope and list choose none of their entries"


def why_empty(store: Store, occasion: Occasion) -> str | None:
    """The sentence for a dump that was flushed without an entry, or without a module where these are asked for.

    None for one that has some.
    """
    if store.entries:
        # Gradients of parameters alone tell of a model that ran unseen.
        is_unseen = store.wanted.modules and not store.saw_a_module and store.recomputed == 0
        return occasion.nothing_ran if is_unseen and not store.saved else None
    if store.saw_a_call:
        return NOTHING_CHOSEN if store.wanted.forward else NOTHING_FLOWED_BACK
    return occasion.nothing_ran if store.recomputed == 0 else None
