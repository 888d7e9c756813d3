"""``start.py TREE PLAN.json LOADED.json RESULT.json``: one process of the SGLang in TREE, started as SGLang does."""

import json
import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    tree, plan_file, loaded_file, result_file = sys.argv[1:]
    sys.path[0] = tree
    plugins = import_module("sglang.srt.plugins")

    before, finders = set(sys.modules), len(sys.meta_path)
    plugins.load_plugins()
    new = sorted(set(sys.modules) - before)
    loaded = {
        "packages": sorted({name.partition(".")[0] for name in new}),
        "ours": [name for name in new if name.partition(".")[0] == "probe_patch"],
        "finders_added": len(sys.meta_path) - finders,
        "model_runner_imported": "sglang.srt.model_executor.model_runner" in sys.modules,
    }
    Path(loaded_file).write_text(json.dumps(loaded))
    sys.exit(import_module("sglang.driver.command").main(plan_file, result_file))
