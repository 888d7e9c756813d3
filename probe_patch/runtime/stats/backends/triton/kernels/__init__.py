"""What runs on the device. Nothing here is called by the host but ``measure_one``, ``measure_several`` and ``merge_partials``."""
