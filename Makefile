# Everything below makes its own environment: Python 3.11 or newer, git and make are all that is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Some machines tell Python to keep nothing compiled: every command that a test starts would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all nightly coverage oracles lint format bench performance mutants wheel flakes prose catalogues tables pictures screens constraints licences docs clean

demo: $(VENV)/.core
	$(BIN)/veilog demo demo --overwrite

# The laws with few examples, and one pass through every room: what people run after every change. P=ledger, or
# P=methods/evolve: all tests of one room.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 $(if $(P),tests/$(P) -m "not nightly",-m "not slow and not nightly")

# What the quick tests run of the code: it takes them twice the time.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -q -m "not slow and not nightly" --cov=veilog --cov-report=term:skip-covered

# Everything but what is for every night; VEILOG_LOGS=FOLDER adds what needs real logs.
test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not nightly" --durations=20

# For every night, not for every change: the browser on every page, clusters, servers, long audits, and the mutants of the
# kernel. It takes hours.
nightly: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m nightly --durations=20
	$(BIN)/python bench/mutants.py

# Packages that our numbers are held against, in an environment of their own: for VEILOG_ORACLES=.venv-oracles/bin/python.
oracles:
	$(PYTHON) -m venv .venv-oracles
	.venv-oracles/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement tests/measures/use_cases/oracles/requirements.txt

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests bench examples tools
	$(BIN)/ruff format --check src tests bench examples tools
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix src tests bench examples tools
	$(BIN)/ruff format src tests bench examples tools

bench: $(VENV)/.bench
	$(BIN)/python bench/run.py

# The page of performance from one run: 40 minutes, 10 GB of disk.
performance: $(VENV)/.dev
	$(BIN)/python bench/run.py performance --again
	$(BIN)/python bench/run.py --publish performance

# For every night, not for every change: it takes an hour or two.
mutants: $(VENV)/.dev
	$(BIN)/python bench/mutants.py

# The sdist and the wheel that it gives, checked, and installed where nothing else is: the command runs.
wheel: $(VENV)/.dev
	rm -rf $(VENV)/wheel dist && $(PYTHON) -m venv $(VENV)/wheel
	$(BIN)/python -m hatchling build --directory dist --target sdist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist dist/veilog-*.tar.gz
	$(BIN)/python tools/packages.py dist
	$(VENV)/wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/veilog-*.whl
	cd $(VENV) && wheel/bin/veilog --version && wheel/bin/veilog demo wheel/demo >wheel/demo.txt && tail -n 1 wheel/demo.txt

# Sentences of reports in each language: adds what is new, removes what nothing says any more.
catalogues: $(VENV)/.dev
	$(BIN)/python tools/catalogues.py

# The tests with chance in them, and how often a correct program fails them.
flakes: $(VENV)/.dev
	$(BIN)/python tools/false_alarms.py

# Sentences of the docs that are too long, and words that gave way to others.
prose:
	$(PYTHON) tools/prose.py

# What the docs say of the code in tables: commands, fields, findings, measures and others; and the keywords of the methods.
tables: $(VENV)/.dev
	$(BIN)/python tools/tables.py
	$(BIN)/python tools/keywords.py

# What the README shows; VEILOG_LOGS=FOLDER also draws who is found in a log without names.
pictures: $(VENV)/.core
	$(BIN)/python tools/pictures.py
	test -z "$(VEILOG_LOGS)" || $(BIN)/python tools/pictures.py --logs "$(VEILOG_LOGS)"

# What the docs show of the pages and of the report: it takes a minute, and Chromium.
screens: $(VENV)/.dev
	$(BIN)/python tools/pictures.py --screens

# The versions that are installed: PIP_CONSTRAINT=constraints.txt make test.
constraints: $(VENV)/.dev $(VENV)/.docs
	$(BIN)/python tools/dependencies.py constraints

# The table of licences in the docs.
licences: $(VENV)/.dev $(VENV)/.docs
	$(BIN)/python tools/dependencies.py licences

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W -b html docs docs/_build

clean:
	rm -rf $(VENV) .venv-oracles demo dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis

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
