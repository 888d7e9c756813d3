"""Where there is no Triton, its backend says so in a sentence, and the automatic choice does without it."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["triton"] = None
import torch
from probe_patch.errors import BackendUnavailable
from probe_patch.runtime.stats.backends.registry import Backends
try:
    import probe_patch.runtime.stats.backends.triton
except BackendUnavailable as error:
    print(error)
found = Backends().on(torch.device("cuda"), False)
print(found.backend.name)
print(found.shortcoming)
"""


def test_the_sentence_and_the_fallback() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    sentence, name, shortcoming = done.stdout.splitlines()
    assert sentence.startswith("Triton cannot be imported")
    assert "pip install triton" in sentence
    assert name == "reference"
    assert sentence in shortcoming
