# Every target makes and fills the virtual environment it needs; a fresh machine needs Python >= 3.11, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The lowest versions have no builds for the newest Python: 3.11 is taken if it is there.
PYTHON_LOWEST ?= $(or $(shell command -v python3.11),$(PYTHON))
LOWEST := .venv-lowest
JOBS ?= 2
# The order of `make gpu`: what is quick and most important comes first.
GPU_PARTS := gpu-tests gpu-passes gpu-fits gpu-equality gpu-million gpu-equality-float32 gpu-equality-float64
# Likewise for `make cores`, measurements on a machine with many cores.
CORES_PARTS := cores-pubmed cores-fits cores-small cores-larger cores-cost
CORES := many_cores
# With the packages of the machine: builds of torch for GPUs are too large for an environment of their own.
ON_MACHINE := PYTHONPATH=src PYTHONUNBUFFERED=1 $(PYTHON)
PYTEST_OPTIONS := -n $(JOBS) --dist worksteal -q

.PHONY: help demo test test-quick test-lowest test-browser lint format docs bench cores $(CORES_PARTS) gpu $(GPU_PARTS) reproduce clean

help:
	@echo "make demo          fit the embedded digits graph and draw demo/demo.png"
	@echo "make test          run the test suite"
	@echo "make test-quick    run a few tests of every package (under a minute)"
	@echo "make test-lowest   run the core of the tests with the lowest versions of all dependencies"
	@echo "make test-browser  use the report page in Chromium, installed from the system's packages if possible"
	@echo "make lint          ruff, mypy and oxlint"
	@echo "make format        format the code with ruff"
	@echo "make docs          build the documentation into docs/_build/html"
	@echo "make bench         print the benchmark tables (minutes)"
	@echo "make cores         fits of large graphs on many cores into results/scaling and results/cost, by the machine's"
	@echo "                   python3 (minutes); its parts: $(CORES_PARTS:cores-%=%)"
	@echo "make gpu           tests and measurements on an NVIDIA GPU into results/gpu (minutes), by the machine's python3"
	@echo "                   with torch and triton; its parts: $(GPU_PARTS:gpu-%=%)"
	@echo "make reproduce     the paper's experiments into results/ (hours; real data from \$$SYMRELU_DATA)"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "symrelu needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp for each extra: a target installs only what it needs, and only once.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

# A new environment whenever a bound changes: pip would keep versions that are still allowed.
$(LOWEST)/.installed: pyproject.toml tests/lower_bounds.py
	@$(PYTHON_LOWEST) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' || \
		{ echo "The lowest versions need Python 3.11 or 3.12; set PYTHON_LOWEST=/path/to/python3.11"; exit 1; }
	$(PYTHON_LOWEST) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python tests/lower_bounds.py test-core > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/constraints.txt --editable '.[test-core]'
	@touch $@

demo: $(VENV)/.installed-cli,plot,tables,graph
	@mkdir -p demo
	$(BIN)/symrelu demo --output demo/demo.png

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PYTEST_OPTIONS)

test-quick: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PYTEST_OPTIONS) -m quick tests

# Its own cache: each version of numba would discard the machine code of the other.
test-lowest: $(LOWEST)/.installed
	NUMBA_CACHE_DIR=$(abspath $(LOWEST))/numba $(LOWEST)/bin/python -m pytest $(PYTEST_OPTIONS) -m core tests

test-browser: $(VENV)/.installed-test-browser
	.ci/install-chromium
	SYMRELU_BROWSER=1 $(BIN)/python -m pytest -q tests/browser

lint: $(VENV)/.installed-lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/oxlint --deny-warnings src/symrelu

format: $(VENV)/.installed-lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed-docs
	rm -rf docs/generated
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/transform.py

# All parts are run, also if one fails. On sixteen cores, those of `cores` take up to 200 seconds, on an H200 those
# of `gpu` about 150.
cores: PARTS := $(CORES_PARTS)
gpu: PARTS := $(GPU_PARTS)
cores gpu:
	@failed=; for part in $(PARTS); do \
		$(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# The first way of each problem is what the others are compared with.
SCALING = $(ON_MACHINE) benchmarks/scaling.py --output results/scaling/$(CORES)

cores-pubmed:
	$(SCALING) --problems PubMed:0:1e-3 --rank 33 --ways imputed+sparse imputed+active

cores-fits:
	$(SCALING) --problems plane:50000:1e-3 blobs:50000:1e-3 --ways imputed+sparse multilevel+active

cores-small:
	$(SCALING) --problems plane:2000:1e-3 plane:4000:1e-3 plane:8000:1e-3 blobs:4000:1e-3 blobs:8000:1e-3 \
		sphere:8000:1e-3 sphere:32000:1e-3 blocks:8000:.2 'power law:8000:.4'

cores-larger:
	$(SCALING) --problems plane:100000:1e-2 --ways imputed+sparse multilevel+active

cores-cost:
	$(ON_MACHINE) benchmarks/cost.py --sizes 20000 60000 --output results/cost/$(CORES).json

gpu-tests: SHELL := bash
gpu-tests: .SHELLFLAGS := -o pipefail -c
gpu-tests:
	@mkdir -p results/gpu
	{ git describe --always --dirty 2>/dev/null; $(ON_MACHINE) benchmarks/gpu.py environment && CI=1 $(ON_MACHINE) -m pytest -q -rs \
		--durations=10 -k "cuda or device or precision" tests/operators tests/solvers tests/kernels tests/fitted \
		tests/test_metrics.py; } 2>&1 | tee results/gpu/tests.log

gpu-passes:
	$(ON_MACHINE) benchmarks/gpu.py passes --sizes 1000000 100000 --ranks 64 32 --output results/gpu

gpu-fits:
	$(ON_MACHINE) benchmarks/gpu.py fits --problems plane:64000:1e-4 plane:262144:1e-3 blobs:64000:1e-4 \
		blobs:262144:1e-3 --most 75 --output results/gpu

gpu-million:
	$(ON_MACHINE) benchmarks/gpu.py fits --problems plane:1000000:1e-2 --most 120 --output results/gpu

gpu-equality:
	$(ON_MACHINE) benchmarks/gpu_equality.py --backends cuda --output results/gpu

gpu-equality-float32 gpu-equality-float64: gpu-equality-%:
	$(ON_MACHINE) benchmarks/gpu_equality.py --backends torch --dtypes $* --output results/gpu

reproduce: $(VENV)/.installed-cli,report
	$(BIN)/symrelu reproduce synthetic --jobs $(JOBS) --output results/synthetic
	$(BIN)/symrelu reproduce real --output results/real
	$(BIN)/symrelu reproduce ablation --output results/ablation
	$(BIN)/symrelu reproduce signed --output results/signed

clean:
	rm -rf $(VENV) $(LOWEST) build dist demo docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst
