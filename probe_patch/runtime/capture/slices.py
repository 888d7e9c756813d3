"""Which part of each tensor is looked at: config.json's ``slice``, and the tokens of one request."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from probe_patch.config.sections import Slice
from probe_patch.errors import WrongUsage


def sliced(values: Tensor, slices: Sequence[Slice]) -> Tensor:
    """A view of the part that all items together leave.

    An item for a dimension that the tensor has not, or that is not as long as the item says, is passed over. Of two for
    one dimension the later counts, as with msProbe.
    """
    kept = {item.dim: slice(item.begin, item.end) for item in slices if _fits(item, values)}
    if not kept:
        return values
    return values[tuple(kept.get(dim, slice(None)) for dim in range(values.dim()))]


def token_slice(request_id: str, scheduled_tokens: Mapping[str, int]) -> Slice | None:
    """The part of a batch that belongs to one request, or None when it has none.

    Args:
        scheduled_tokens: how many tokens of each request are in the batch, in the order in which they stand there, one
            request behind the other along dimension 0.

    Raises:
        WrongUsage: it is no mapping from names to whole numbers above 0.
    """
    if not isinstance(scheduled_tokens, Mapping):
        raise WrongUsage(f"scheduled_tokens is {scheduled_tokens!r}; pass a dict of request id to number of tokens")
    for request, tokens in scheduled_tokens.items():
        if not isinstance(request, str) or type(tokens) is not int or tokens < 1:
            raise WrongUsage(
                f"scheduled_tokens holds {request!r}: {tokens!r}; pass a dict of request id to number of tokens"
            )
    if request_id not in scheduled_tokens:
        return None
    ids = list(scheduled_tokens)
    begin = sum(scheduled_tokens[request] for request in ids[: ids.index(request_id)])
    end = begin + scheduled_tokens[request_id]
    return Slice(dim=0, size=sum(scheduled_tokens.values()), begin=begin, end=end)


def _fits(item: Slice, values: Tensor) -> bool:
    return item.dim < values.dim() and item.size in (None, values.shape[item.dim])
