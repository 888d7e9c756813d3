from collections.abc import Callable
from typing import Any

from probe_patch.runtime.capture.functions.seen import SeenCalls

class QuickMode:
    seen: SeenCalls
    def __call__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any: ...
