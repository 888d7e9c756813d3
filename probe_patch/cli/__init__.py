"""The command line: thin verbs over the rest, and the only place that prints.

Data goes to stdout, everything else to stderr. Exit codes: 0 done or as expected; 1 ``check`` found a difference; 2
wrong usage; 3 refused, nothing written; 4 the system failed, rolled back; 128 and a signal's
number (130 for Ctrl-C) interrupted, rolled back.
"""

import click

from probe_patch import __version__
from probe_patch.cli.config_commands import config
from probe_patch.cli.demo_command import demo
from probe_patch.cli.env_command import env
from probe_patch.cli.errors import Commands
from probe_patch.cli.launch_command import launch_args
from probe_patch.cli.patch_commands import apply, check, revert, status


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done or as expected; 1 check found a difference; 2 wrong usage; 3 refused, nothing written; "
    "4 the system failed, rolled back.",
)
@click.version_option(__version__, prog_name="probe-patch")
def main() -> None:
    """Patch slime so that DUMP_ON=1 writes every module's statistics to disk, and undo it to the byte.

    \b
      probe-patch apply PATH/TO/slime      patch it
      DUMP_ON=1 … your training run …      dumps appear
      probe-patch revert PATH/TO/slime     byte for byte as before
    """


for command in (apply, revert, check, status, config, env, launch_args, demo):
    main.add_command(command)
