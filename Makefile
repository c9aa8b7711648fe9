# Everything below makes its own environment: Python 3.11 or newer, git and make are all that is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint format bench mutants docs clean

demo: $(VENV)/.core
	$(BIN)/veilog demo demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix src tests bench
	$(BIN)/ruff format src tests bench

bench: $(VENV)/.bench
	$(BIN)/python bench/run.py

# For every night, not for every change: it takes hours.
mutants: $(VENV)/.dev
	$(BIN)/python bench/mutants.py

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W -b html docs docs/_build

clean:
	rm -rf $(VENV) demo docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.core: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("veilog needs Python 3.11 or newer: make PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=25.1"
	$(PIP) --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --group dev
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) --group bench
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --group docs
	touch $@
