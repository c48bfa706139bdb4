# Every target makes and fills the virtual environment it needs; a fresh machine needs Python >= 3.11, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: help demo test lint format docs bench reproduce clean

help:
	@echo "make demo    fit the embedded digits graph and draw demo/demo.png"
	@echo "make test    run the test suite"
	@echo "make lint    ruff and mypy"
	@echo "make docs    build the documentation into docs/_build/html"
	@echo "make bench   print the benchmark tables (minutes)"
	@echo "make reproduce    the paper's experiments into results/ (hours; real data from \$$SYMRELU_DATA)"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "symrelu needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp for each extra: a target installs only what it needs, and only once.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

demo: $(VENV)/.installed-cli,plot
	@mkdir -p demo
	$(BIN)/symrelu demo --output demo/demo.png

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

lint: $(VENV)/.installed-lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

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

reproduce: $(VENV)/.installed-cli,report
	$(BIN)/symrelu reproduce synthetic --jobs $(JOBS) --output results/synthetic
	$(BIN)/symrelu reproduce real --output results/real
	$(BIN)/symrelu reproduce ablation --output results/ablation
	$(BIN)/symrelu reproduce signed --output results/signed

clean:
	rm -rf $(VENV) build dist demo docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst
