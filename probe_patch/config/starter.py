"""The config.json that ``probe-patch config init`` writes."""

import json
from typing import Final

from probe_patch.resources import data_folder

_PLACEHOLDER: Final = '"{dump_path}"'


def starter_config(dump_path: str) -> str:
    """The text of a starter config.json whose dump goes to ``dump_path``.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    template = (data_folder("templates") / "config" / "statistics.json").read_text(encoding="utf-8")
    return template.replace(_PLACEHOLDER, json.dumps(dump_path))
