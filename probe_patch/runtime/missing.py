"""Why a phase that was asked for did not run: slime's own settings tell."""

from probe_patch.dump_format import Phase


def why_missing(phase: Phase, args: object) -> str:
    """The likely reason, and what to change, from slime's parsed arguments; what they lack counts as off."""
    if phase != "actor" and getattr(args, "compute_advantages_and_returns", True) is False:
        return "compute_advantages_and_returns is off, as in supervised fine-tuning, so no log-probs are computed"
    if phase == "ref":
        return "there is no reference model; slime loads --ref-load when --kl-coef is not 0 or --use-kl-loss is given"
    if phase == "actor":
        return "the rollout returned before its training step"
    if getattr(args, "use_rollout_logprobs", False) and not getattr(args, "get_mismatch_metrics", False):
        return (
            "--use-rollout-logprobs takes the log-probs of the rollout; add --get-mismatch-metrics to compute them too"
        )
    return (
        "slime 0.3 and later take the log-probs from the training forward when a rollout has one optimizer step and "
        "--kl-coef is 0; use --num-steps-per-rollout 2, a --kl-coef other than 0, or --keep-old-actor"
    )
