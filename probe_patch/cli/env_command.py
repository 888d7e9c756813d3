"""``env``: what to put into a run's environment."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import click

from probe_patch.cli.errors import say_note
from probe_patch.cli.named_config import checked_config_of
from probe_patch.cli.options import PATH, debugger_option
from probe_patch.cli.output import echo
from probe_patch.debuggers import BUILTIN, DebuggerName
from probe_patch.errors import WrongUsage

_PLUGINS = "SGLANG_PLUGINS"


@click.command()
@click.option("--config", metavar="FILE", type=PATH, help="The config.json for both sides.")
@click.option("--train-config", metavar="FILE", type=PATH, help="The config.json for the training side.")
@click.option("--rollout-config", metavar="FILE", type=PATH, help="The config.json for the generating side.")
@debugger_option
@click.option("--merge", metavar="JSON", help="A runtime env of yours to add the variables to.")
@click.option("--off", is_flag=True, help="Print the variables that keep the dump off.")
@click.option("--export", is_flag=True, help="Print export lines for a shell instead of JSON.")
def env(
    config: Path | None,
    train_config: Path | None,
    rollout_config: Path | None,
    debugger: DebuggerName | None,
    merge: str | None,
    off: bool,
    export: bool,
) -> None:
    """Print the runtime env for ray job submit that turns the dump on.

    \b
      ray job submit --runtime-env-json "$(probe-patch env --config config.json)" -- python3 train.py …
      eval "$(probe-patch env --config config.json --export)"
    """
    variables = {"DUMP_ON": "0" if off else "1"}
    named = {
        "PROBE_PATCH_CONFIG": config,
        "PROBE_PATCH_TRAIN_CONFIG": train_config,
        "PROBE_PATCH_ROLLOUT_CONFIG": rollout_config,
    }
    for variable, path in named.items():
        if path is not None:
            checked_config_of(debugger or BUILTIN, path)
            variables[variable] = str(path.absolute())
    if export:
        if merge is not None:
            raise WrongUsage("--merge adds to a JSON runtime env; it has no meaning with --export")
        _say_if_our_plugin_is_skipped(os.environ.get(_PLUGINS, ""), off)
        for name, value in variables.items():
            echo(f"export {name}={shlex.quote(value)}")
        return
    merged = _merged(merge, variables)
    for side in ("PROBE_PATCH_TRAIN_CONFIG", "PROBE_PATCH_ROLLOUT_CONFIG"):
        if config is not None and side in merged["env_vars"] and side not in variables:
            say_note(f"--merge already sets {side}, which that side reads instead of --config")
    _say_if_our_plugin_is_skipped(merged["env_vars"].get(_PLUGINS, ""), off)
    click.echo(json.dumps(merged))


def _say_if_our_plugin_is_skipped(plugins: str, off: bool) -> None:
    """``SGLANG_PLUGINS``, where it is not empty, lists with commas the only plugins that SGLang loads."""
    if plugins and not off and "probe-patch" not in [name.strip() for name in plugins.split(",")]:
        say_note(
            f"{_PLUGINS} is {plugins} and does not name probe-patch: SGLang 0.5.11 and later then skips its plugin, "
            f"and nothing of the inference side is dumped; set it to {plugins},probe-patch"
        )


def _merged(merge: str | None, variables: dict[str, str]) -> dict[str, Any]:
    try:
        runtime_env = {} if merge is None else json.loads(merge)
    except (ValueError, RecursionError) as error:
        raise WrongUsage(f"--merge: not JSON ({error})") from None
    if not isinstance(runtime_env, dict) or not isinstance(env_vars := runtime_env.get("env_vars", {}), dict):
        raise WrongUsage('--merge: give a runtime env, that is an object such as {"env_vars": {"NAME": "value"}}')
    for name, value in env_vars.items():
        if not isinstance(value, str):
            raise WrongUsage(f"--merge: env_vars.{name} is {json.dumps(value)}; Ray takes strings only, so quote it")
    return {**runtime_env, "env_vars": {**env_vars, **variables}}
