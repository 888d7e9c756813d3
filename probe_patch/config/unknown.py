"""Keys of a config.json that nobody reads: each becomes a warning that names the nearest key that is read."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from pydantic import BaseModel

from probe_patch.config.model import Config
from probe_patch.config.sections import Slice


def unknown_keys(document: Mapping[str, object]) -> tuple[str, ...]:
    """One warning for each unknown key, at the top level and in the sections, in the order they stand."""
    return tuple(_unknown(document, Config, ""))


def _unknown(document: Mapping[str, object], model: type[BaseModel], prefix: str) -> Iterator[str]:
    known = {field.alias or name: field.default for name, field in model.model_fields.items()}
    for key, value in document.items():
        if key not in known:
            yield f"unknown key {prefix}{key}{_nearest(key, known)}: it is ignored"
        elif isinstance(value, Mapping) and isinstance(known[key], BaseModel):
            yield from _unknown(value, type(known[key]), f"{prefix}{key}.")
        elif key == "slice" and isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, Mapping):
                    yield from _unknown(item, Slice, f"{prefix}{key}.{index}.")


def _nearest(key: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(key, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
