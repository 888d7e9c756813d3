"""How torch's own sharding spreads a model over two ranks: what a test needs to know of the program."""

from typing import Final

FULLY_SHARDED: Final = ("fully_shard of blocks", "fully_shard of layers", "FullyShardedDataParallel")
LAYOUTS: Final = (*FULLY_SHARDED, "tensor parallel", "DistributedDataParallel")
