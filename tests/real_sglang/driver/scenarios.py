"""What is done with a runner, scenario by scenario; which forwards are dumped is the config's business."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tests.real_sglang.driver.engine import Pass, forwards, make_runner
from tests.real_sglang.driver.hooks import measuring
from tests.real_sglang.report import DECODE_STEPS, PROMPTS, Checkpoints, Generated, Measured, Outcome


def generate(checkpoints: Checkpoints) -> Outcome:
    return Outcome((_generated(_batch(make_runner(checkpoints.first))),))


def generate_measured(checkpoints: Checkpoints) -> Outcome:
    runner = make_runner(checkpoints.first)
    return Outcome((_generated(_batch(runner), runner),))


def one_token_first(checkpoints: Checkpoints) -> Outcome:
    runner = make_runner(checkpoints.first)
    return Outcome((_generated(forwards(runner, ((7,),), 0)), _generated(_batch(runner))))


def module_raises(checkpoints: Checkpoints) -> Outcome:
    """The second layer's feed-forward raises once, in the middle of the first batch."""
    runner = make_runner(checkpoints.first)
    broken = runner.model.model.layers[1].mlp.act_fn
    original = broken.forward

    def fail(*arguments: object) -> None:
        del broken.forward
        raise ArithmeticError("planned by the test")

    broken.forward = fail
    try:
        _generated(_batch(runner))
    except ArithmeticError as error:
        assert broken.forward == original
        return Outcome((_generated(_batch(runner)),), str(error))
    raise AssertionError("the exception did not come through")


def weights_change(checkpoints: Checkpoints) -> Outcome:
    """Other weights from disk into the same model; then ``runner.model`` is a new one, with the first weights."""
    runner = make_runner(checkpoints.first)
    before = _generated(_batch(runner), runner)
    done, said = runner.update_weights_from_disk(str(checkpoints.second), "auto")
    assert done, said
    loaded = _generated(_batch(runner), runner)
    model = runner.model
    runner.model_config.model_path = runner.server_args.model_path = str(checkpoints.first)
    runner.load_model()
    assert runner.model is not model
    return Outcome((before, loaded, _generated(_batch(runner), runner)))


def two_runners(checkpoints: Checkpoints) -> Outcome:
    """In one process: the second is made before the first has run, then they take turns."""
    first = make_runner(checkpoints.first)
    second = make_runner(checkpoints.second)
    return Outcome(tuple(_generated(_batch(runner), runner) for runner in (first, second, first)))


def interleaved_generators(checkpoints: Checkpoints) -> Outcome:
    """Two batches on two runners, each a generator that is resumed in turn; a third is dropped in the middle."""
    first, second = make_runner(checkpoints.first), make_runner(checkpoints.second)
    passes: tuple[list[Pass], list[Pass]] = ([], [])
    for one, other in zip(_batch(first), _batch(second), strict=True):
        passes[0].append(one)
        passes[1].append(other)
    dropped = _batch(first)
    kept = [next(dropped)]
    dropped.close()  # type: ignore[attr-defined]
    return Outcome(tuple(_generated(iter(batch)) for batch in (*passes, kept)))


def draft(checkpoints: Checkpoints) -> Outcome:
    """A target and its draft in one process, as speculative decoding has them."""
    target = make_runner(checkpoints.first)
    drafting = make_runner(checkpoints.second, is_draft_worker=True)
    return Outcome((_generated(_batch(drafting)), _generated(_batch(target))))


SCENARIOS: dict[str, Callable[[Checkpoints], Outcome]] = {
    "default": generate,
    "measured": generate_measured,
    "decode": generate,
    "all": generate,
    "capped": generate,
    "few_tokens": one_token_first,
    "raising": module_raises,
    "reloaded": weights_change,
    "two_runners": two_runners,
    "generators": interleaved_generators,
    "functions": generate,
    "draft": draft,
    "draft_asked": draft,
}


def _batch(runner: Any) -> Iterator[Pass]:
    return forwards(runner, PROMPTS, DECODE_STEPS)


def _generated(passes: Iterator[Pass], watched: Any = None) -> Generated:
    """All of the passes; with hooks on the model of ``watched``, a set of its own for each."""
    tokens: list[tuple[int, ...]] = []
    logits: list[str] = []
    measured: list[tuple[Measured, ...]] = []
    while True:
        with _hooks_on(watched) as records:
            done = next(passes, None)
        if done is None:
            return Generated(tuple(tokens), tuple(logits), tuple(measured) if watched else ())
        tokens.append(done[0])
        logits.append(done[1])
        measured.append(tuple(records))


def _hooks_on(watched: Any) -> AbstractContextManager[list[Measured]]:
    return measuring(watched.model) if watched else nullcontext([])
