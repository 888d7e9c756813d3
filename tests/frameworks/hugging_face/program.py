"""Trains every model, generates with it, copies and compiles it: unrecorded, observed, and recorded at each level."""

import json
from typing import Any

import torch

from tests.frameworks import fingerprints
from tests.frameworks.hugging_face.families import COPIES, FAMILIES
from tests.frameworks.hugging_face.training import build, generate, prompts, train
from tests.frameworks.leftovers import Before
from tests.frameworks.ranks import Job, Result, main
from tests.frameworks.recording import LEVELS, Observed, Recorded, dump_path_of


def run(job: Job) -> Result:
    return {family: _run_family(job, family) for family in FAMILIES} | {"copies": _run_copies(job)}


def _run_family(job: Job, family: str) -> dict[str, Any]:
    observed = Observed()
    runs = {"plain": train(family), "observed": train(family, observed)}
    generated = {"plain": generate(family)}
    before = Before()
    during, left = {}, {}
    for level in LEVELS:
        recorded = Recorded(job, family, level, before)
        runs[level] = train(family, recorded)
        generated[level] = generate(family, Recorded(job, f"{family} generating", level, before))
        during[level], left[level] = recorded.during, recorded.left
    return {
        "runs": runs,
        "generated": generated,
        "during": during,
        "left": left,
        "calls": observed.seen.calls,
        "gradients": observed.seen.gradients,
    }


def _run_copies(job: Job) -> dict[str, Any]:
    """Per level and way to copy: what the copy computes, made while recording and after the stop."""
    plain = _computed(build("Qwen2"))
    # Dynamo replaces some of torch's methods for good when it is first used.
    assert _computed(COPIES["torch.compile"](build("Qwen2"))) == plain
    before = Before()
    found: dict[str, Any] = {}
    for level in LEVELS:
        for way, made in COPIES.items():
            name = f"copied by {way}"
            recorded = Recorded(job, name, level, before)
            model = build("Qwen2")
            with recorded(model):
                during = _computed(made(model))
            dump = dump_path_of(job.folder, name, level) / "step0" / "rank0" / "dump.json"
            found[f"{level} {way}"] = {
                "during": during == plain,
                "entries": list(json.loads(dump.read_text())["data"]),
                "after": _computed(made(model)) == plain,
                "itself": _computed(model) == plain,
                "left": before.left([model]),
            }
            torch.compiler.reset()
    return found


def _computed(model: Any) -> dict[str, str]:
    """Digests of what a model gives and of its gradients."""
    fingerprints.seed(3)
    for parameter in model.parameters():
        parameter.grad = None
    output = model(input_ids=prompts(1), labels=prompts(1), use_cache=False)
    output.loss.backward()
    gradients = fingerprints.digest(parameter.grad for parameter in model.parameters())
    return {"output": fingerprints.digest([output.loss, output.logits]), "gradients": gradients}


if __name__ == "__main__":
    main(run)
