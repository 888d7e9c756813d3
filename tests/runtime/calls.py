"""A call for tests that record its values themselves."""

from typing import Final

from probe_patch.runtime.capture.names import FunctionName
from probe_patch.runtime.capture.nesting import BEFORE_ANY_PASS, Call

CALL: Final = Call(FunctionName("Torch.x"), 0, None, BEFORE_ANY_PASS, None)
