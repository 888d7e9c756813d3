"""What runs on the device. The host calls ``measure_one``, ``measure_several`` and ``merge_partials`` only."""
