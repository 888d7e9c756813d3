#: The decorator nearest to the function that trains on one rollout: it stops what an exception left running and steps once.
@_probe_patch_rollout
