# Two commands for a fresh machine: `make demo` shows the main job, `make test` proves it.
PYTHON ?= python3
VENV := .venv
MSPROBE_VENV := .venv-msprobe
RUN := $(VENV)/bin/
PYTEST_FLAGS ?=

.DEFAULT_GOAL := help
.PHONY: help venv venv-msprobe demo test bench lint format wheel clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

venv: $(VENV)/.made ## everything that demo, tests and lint need, in .venv; quick when nothing changed
$(VENV)/.made: pyproject.toml constraints/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints/dev.txt torch -e '.[dev,demo]'
	@touch $@

venv-msprobe: $(MSPROBE_VENV)/.made ## msProbe in an environment of its own: what our dumps are read by and measured against
$(MSPROBE_VENV)/.made: pyproject.toml constraints/msprobe.txt constraints/dev.txt
	$(PYTHON) -m venv $(MSPROBE_VENV)
	$(MSPROBE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r constraints/msprobe.txt
	$(MSPROBE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints/dev.txt -e .
	@touch $@

demo: venv ## patch, run and undo a small slime under Ray and megatron-core
	$(RUN)probe-patch demo

test: venv venv-msprobe ## every test that needs no clone of slime
	$(RUN)python -m pytest $(PYTEST_FLAGS)

bench: venv-msprobe ## what a dump costs, next to msProbe's, in one run
	$(MSPROBE_VENV)/bin/python tests/bench/overhead.py

lint: venv ## ruff and mypy --strict
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy

format: venv ## what ruff can mend by itself
	$(RUN)ruff check --fix .
	$(RUN)ruff format .

wheel: venv ## dist/*.whl
	$(RUN)python -m build --wheel

clean: ## remove what make made
	rm -rf $(VENV) $(MSPROBE_VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
