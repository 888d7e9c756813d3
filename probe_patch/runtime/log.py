"""The one logger of everything that runs inside the user's processes."""

import logging
from typing import Final

LOGGER: Final = logging.getLogger("probe_patch")
