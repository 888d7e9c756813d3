"""A rank of its own for each process that shares a dump path, where torch.distributed's ranks repeat.

Several engines are process groups of their own, and so are data-parallel replicas.
"""

import itertools
import json
import os
import secrets
import socket
from pathlib import Path

from probe_patch.dump_format import rank_folder
from probe_patch.runtime.beside import locks_folder
from probe_patch.runtime.claims import Claim, claim_if_free
from probe_patch.runtime.files import write_atomically


class RankClaim:
    """This process's right to one rank below a dump path; it ends with the object, or with the process.

    The lock is what counts. As locks may not reach other nodes, ``rank{R}.owner`` beside it tells who took the rank
    last.

    Attributes:
        claim: to the rank's folder.
    """

    def __init__(self, rank: int, claim: Claim) -> None:
        self.rank = rank
        self.claim = claim
        self._owner_file = locks_folder(claim.dump_path) / f"{claim.name}.owner"
        owner = {"host": socket.gethostname(), "pid": os.getpid(), "token": secrets.token_hex(8)}
        self._owner = json.dumps(owner)
        write_atomically(self._owner_file, [self._owner])

    def is_ours(self) -> bool:
        """False once a process that does not see our lock has taken the rank."""
        try:
            return self._owner_file.read_text() == self._owner
        except OSError:
            return True


def claim_free_rank(dump_path: Path, first: int, stride: int) -> RankClaim:
    """Claim the first of the ranks ``first``, ``first + stride``, … that nobody alive has, this process included.

    Raises:
        OSError: the folder cannot be made or written.
    """
    for rank in itertools.count(first, stride):
        claim = claim_if_free(dump_path, rank_folder(rank))
        if claim is not None:
            return RankClaim(rank, claim)
    raise AssertionError("there is always a further rank")
