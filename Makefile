# Two commands for a fresh machine: `make demo` shows the main job, `make test` proves it.
PYTHON ?= python3
VENV := .venv
MSPROBE_VENV := .venv-msprobe
SGLANG_VENV := .venv-sglang
ASCEND_FOLDER := .venv-ascend
TRITON_VENV := .venv-triton
SGLANG_VERSIONS := 0.5.9 0.5.10.post1 0.5.12.post1
SGLANG_NEWEST := 0.5.23
RUN := $(VENV)/bin/
# An editable install has the library that was built from them. What Cython compiles is known by its contents instead.
LIBRARY_SOURCES := hatch_build.py $(wildcard probe_patch/runtime/stats/backends/native/*.[ch])
PYTEST_FLAGS ?=
BENCH_FLAGS ?=

.DEFAULT_GOAL := help
.PHONY: help compiled venv venv-msprobe venv-sglang venv-triton venv-ascend demo test test-interpreted test-kernels
.PHONY: matrix bench bench-gpu kernels-report lint format wheel clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

venv: $(VENV)/.made compiled ## everything that demo, tests and lint need, in .venv; quick when nothing changed
$(VENV)/.made: pyproject.toml constraints/dev.txt $(LIBRARY_SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints/dev.txt torch -e '.[dev,demo]'
	@touch $@

# Without a C compiler the tests go on with plain Python; CI does not.
compiled: $(VENV)/.made
	-@$(RUN)python hatch_build.py

venv-msprobe: $(MSPROBE_VENV)/.made ## msProbe in an environment of its own: what our dumps are read by and measured against
$(MSPROBE_VENV)/.made: pyproject.toml constraints/msprobe.txt constraints/dev.txt $(LIBRARY_SOURCES)
	$(PYTHON) -m venv $(MSPROBE_VENV)
	$(MSPROBE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r constraints/msprobe.txt
	$(MSPROBE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints/dev.txt -e '.[fast]'
	@touch $@

# Without their dependencies, most of which need a GPU: what a CPU needs is pinned, the rest has stand-ins in the tests.
# The newest release has some packages beside it that the others cannot use.
venv-sglang: $(SGLANG_VENV)/.made ## four releases of SGLang, each in a folder of its own, and what they need to run on a CPU
$(SGLANG_VENV)/.made: pyproject.toml constraints/sglang.txt constraints/sglang-newest.txt constraints/dev.txt
	$(PYTHON) -m venv --clear $(SGLANG_VENV)
	$(SGLANG_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r constraints/sglang.txt
	$(SGLANG_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints/dev.txt -e .
	set -e; for version in $(SGLANG_VERSIONS); do \
		$(SGLANG_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
			--target $(SGLANG_VENV)/sglang/$$version sglang==$$version; \
	done
	$(SGLANG_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--target $(SGLANG_VENV)/sglang/$(SGLANG_NEWEST) -r constraints/sglang-newest.txt
	@touch $@

# Triton beside what .venv has: the rest of the tests, and torch itself, do otherwise with Triton than without.
venv-triton: $(TRITON_VENV)/.made ## Triton, for the tests of its kernels, which need no GPU
$(TRITON_VENV)/.made: $(VENV)/.made constraints/triton.txt
	$(PYTHON) -m venv --clear $(TRITON_VENV)
	$(TRITON_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r constraints/triton.txt
	$(RUN)python -c 'from sysconfig import get_path; purelib = get_path("purelib"); print(f"import site; site.addsitedir({purelib!r})")' \
		> "$$($(TRITON_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
	@touch $@

# It is imported as triton, so that it has a folder of its own, which the tests put in front of .venv's.
venv-ascend: $(ASCEND_FOLDER)/.made ## triton-ascend, which lowers our kernels for NPUs as far as that goes without one
$(ASCEND_FOLDER)/.made: constraints/ascend.txt | $(VENV)/.made
	rm -rf $(ASCEND_FOLDER)
	$(RUN)python -m pip install --quiet --disable-pip-version-check --no-deps --target $(ASCEND_FOLDER) \
		-r constraints/ascend.txt
	@touch $@

demo: venv ## patch, run and undo a small slime under Ray and megatron-core
	$(RUN)probe-patch demo

test: venv venv-msprobe venv-sglang venv-ascend test-kernels test-interpreted ## every test that needs no clone of slime
	$(RUN)python -m pytest $(PYTEST_FLAGS)

# A tree of its own, as its processes too are to find nothing compiled.
test-interpreted: venv ## what is compiled, as the plain Python that it is without a C compiler
	rm -rf build/interpreted && mkdir -p build/interpreted
	cp -R probe_patch tests templates fixtures constraints hatch_build.py pyproject.toml build/interpreted
	find build/interpreted/probe_patch -name '*.cpython-*' -delete
	cd build/interpreted && PYTHONPATH=$(CURDIR)/build/interpreted $(CURDIR)/$(RUN)python -m pytest $(PYTEST_FLAGS) \
		--interpreted tests/runtime

test-kernels: venv-triton ## the Triton kernels, in its interpreter and compiled for three architectures
	TRITON_INTERPRET=1 $(TRITON_VENV)/bin/python -m pytest $(PYTEST_FLAGS) tests/kernels/triton/interpreted tests/kernels/checksums/interpreted
	$(TRITON_VENV)/bin/python -m pytest $(PYTEST_FLAGS) tests/kernels/triton/compiled tests/kernels/checksums/compiled

matrix: venv ## the patcher on every release of SGLang from 0.2.0 to 0.5.23, 450 MB of wheels kept in the user's cache
	$(RUN)python -m pytest $(PYTEST_FLAGS) tests/patcher/sglang --sglang-matrix

bench: venv-msprobe compiled ## what a dump costs, next to msProbe's, in one run
	$(MSPROBE_VENV)/bin/python -m tests.bench.report $(BENCH_FLAGS)

bench-gpu: ## on a machine with a GPU, torch and Triton: right, and how quick? Under five minutes
	$(PYTHON) -m tests.bench.gpu

kernels-report: venv-triton ## registers, spills and loads of every Triton kernel, by architecture
	$(TRITON_VENV)/bin/python -m tests.bench.kernels_report

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
	rm -rf $(VENV) $(MSPROBE_VENV) $(SGLANG_VENV) $(TRITON_VENV) $(ASCEND_FOLDER) dist build
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
