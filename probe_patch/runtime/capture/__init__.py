"""From a running model to records: names, call stacks, nesting and values."""
