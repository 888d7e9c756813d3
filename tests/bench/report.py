"""`make bench`: one report, as markdown. With ``--readme`` the README's table is written anew from the same run."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import torch

from tests.bench.kernels import kernel_rows
from tests.bench.machine import machine
from tests.bench.memory import memory_of_a_recording
from tests.bench.steps import ROUNDS, Step, steps

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- make bench -->\n", "<!-- end of make bench -->"

_PLACE = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def step_table(measured: list[Step]) -> Iterator[str]:
    yield "| training step | mode | plain | added by probe-patch | added by msProbe | CPU ratio | entries | files |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for step in measured:
        ours, theirs = step.peers["probe-patch"], step.peers["msProbe"]
        yield (
            f"| {step.shape} | {step.mode} | {ours.plain:.1f} "
            f"| {ours.cpu:.1f} ({ours.wall:.1f}) | {theirs.cpu:.1f} ({theirs.wall:.1f}) | 1/{step.ratio:.1f} "
            f"| {ours.entries} / {theirs.entries} | {ours.kilobytes:.0f} / {theirs.kilobytes:.0f} KB |"
        )


def remarks(measured: list[Step]) -> Iterator[str]:
    idle = max(step.peers["probe-patch"].idle for step in measured)
    yield f"- In a step that is not selected, start, stop and step take at most {100 * idle:.1f} % of its CPU time."
    by_name = {(step.shape, step.mode): step for step in measured}
    for (shape, mode), step in by_name.items():
        small = next((other for (named, also), other in by_name.items() if also == mode and named != shape), step)
        ours, less = step.peers["probe-patch"], small.peers["probe-patch"]
        if (shape.hidden, shape.length) == (small.shape.hidden, small.shape.length) and ours.entries > less.entries:
            yield f"- {mode}: {ours.entries / less.entries:.1f} times the entries cost {ours.cpu / less.cpu:.1f} times."
    memory = memory_of_a_recording()
    yield f"- Memory while recording, until the stop: {memory.besides} MiB, and {memory.per_entry} bytes per entry."


def readme_block(measured: list[Step]) -> str:
    about = (
        f"{machine(['mindstudio-probe'])}; one torch thread. Milliseconds of CPU time (of wall-clock time), medians of "
        f"{ROUNDS} steps that take turns; files and entries are ours / msProbe's."
    )
    return "\n".join([about, "", *step_table(measured), "", *remarks(measured)]) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--readme", action="store_true", help="write the README's table anew")
    writes_readme = arguments.parse_args().readme
    torch.set_num_threads(1)
    for row in kernel_rows():
        print(row, flush=True)
    print(flush=True)
    block = readme_block(list(steps()))
    print(block)
    if writes_readme:
        README.write_text(_PLACE.sub(lambda _: f"{BEGIN}{block}{END}", README.read_text()))


if __name__ == "__main__":
    main()
