"""From the text of a config.json to a checked ``Config``, or to one sentence that says what is wrong."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from probe_patch.config.model import Config
from probe_patch.config.notes import notes
from probe_patch.config.support import first_unsupported
from probe_patch.config.unknown import unknown_keys
from probe_patch.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)

_WANTED: Final = {
    "model_type": "must be an object {...}",
    "dict_type": "must be an object {...}",
    "list_type": "must be a list [...]",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "too_short": "must hold at least one item",
    "string_too_short": "must not be empty",
}
# Without those that are refused.
_SERVED: Final = {
    "task": "must be 'statistics', 'tensor', 'structure' or 'nan_check'",
    "level": "must be 'L0', 'L1', 'mix' or 'debug'",
}


@dataclass(frozen=True)
class LoadedConfig:
    """A config that can be served, and what its user should know about it."""

    config: Config
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Overrides:
    """Constructor arguments of ``PrecisionDebugger``; what is not None replaces the file's value."""

    task: str | None = None
    dump_path: str | None = None
    level: str | None = None
    step: Sequence[int | str] | None = None

    def as_document(self) -> dict[str, object]:
        step = list(self.step) if isinstance(self.step, tuple | range) else self.step
        given = {"task": self.task, "dump_path": self.dump_path, "level": self.level, "step": step}
        return {key: value for key, value in given.items() if value is not None}


def load_config(path: Path, overrides: Overrides | None = None) -> LoadedConfig:
    """Read and check a config.json.

    Raises:
        ConfigError: the file cannot be read, is no JSON object, has a key twice or of the wrong type, or asks for
            what does not exist yet.
    """
    return parse_config(read_text(path), str(path), overrides)


def read_text(path: Path) -> str:
    """The text of a config.json.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; `probe-patch config init` writes a starter config.json") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def parse_config(text: str, where: str, overrides: Overrides | None = None) -> LoadedConfig:
    """Check the text of a config.json; ``where`` names it in errors.

    Raises:
        ConfigError: as for ``load_config``.
    """
    document = decode(text, where) | (overrides or Overrides()).as_document()
    config = validated(Config, document, where)
    refusal = first_unsupported(config)
    if refusal is not None:
        raise ConfigError(f"{where}: {refusal}")
    return LoadedConfig(config, unknown_keys(document) + tuple(notes(config)))


def default_config(dump_path: str, overrides: Overrides | None = None) -> LoadedConfig:
    """The config used when there is no config.json: statistics of every module in step 0, under ``dump_path``.

    Raises:
        ConfigError: an override of the wrong type, or one that asks for what does not exist yet.
    """
    return parse_config(default_text(dump_path), "the settings given", overrides)


def default_text(dump_path: str) -> str:
    """The text of the config.json that stands in for one."""
    return json.dumps({"task": "statistics", "level": "L0", "step": [0], "dump_path": dump_path})


def validated(model: type[Model], document: Mapping[str, object], where: str) -> Model:
    """``document`` as a ``model``.

    Raises:
        ConfigError: a key is missing or has a value of the wrong type.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ConfigError(f"{where}: {_sentence(error.errors()[0])}") from None


def decode(text: str, where: str) -> dict[str, object]:
    """The JSON object in the text of a config.json; ``where`` names it in errors.

    Raises:
        ConfigError: it is no JSON object, or has a key twice.
    """

    def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigError(f"{where}: the key {json.dumps(key)} stands there twice; keep one")
            found[key] = value
        return found

    try:
        document = json.loads(text, object_pairs_hook=refuse_repeats)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ConfigError(f"{where}: nested too deeply to be a config.json") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{where}: must hold a JSON object {{...}}, not {json.dumps(document)[:40]}")
    return document


def _sentence(error: ErrorDetails) -> str:
    key = ".".join(str(part) for part in error["loc"] if part not in {"str", "list[str]", "int"})
    if error["type"] == "missing":
        return f"{key} is missing; write where the dump shall go"
    if key == "dump_path" and error["type"] == "string_too_short":
        return "dump_path is empty; write where the dump shall go"
    if error["type"] == "value_error":
        return f"{key}: {error['ctx']['error']}"
    wanted = _SERVED.get(key) or _WANTED.get(error["type"]) or error["msg"].replace("Input should be", "must be")
    return f"{key} {wanted}, not {json.dumps(error['input'], default=repr)}"
