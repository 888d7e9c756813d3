"""What SGLang must be started with, held against a table of its own and against real releases."""
