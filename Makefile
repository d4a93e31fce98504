# Everything installs itself into .venv on the first call.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test lint docs results evidence clean

## Tune a real network on this machine with the shipped bundle.
demo: $(INSTALLED)
	rm -rf demo_run
	$(BIN)/costlib tune bert_tiny --trials 64 --seed 0 --out demo_run

## Run the whole test suite, after the linters; two processes, which must not fight for cores.
test: export OMP_NUM_THREADS = 1
test: export PYTHONDONTWRITEBYTECODE =  # Hundreds of processes import the same modules.
test: $(INSTALLED) lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

## Build the documentation into site/: nothing is fetched, and a broken link is an error.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict

## Write what the pages of results, the README and the changelog show of tools/results.
results: $(INSTALLED)
	$(BIN)/python -m tools.evidence.pages

## Measure anew all that the documentation claims: a night; with QUICK=1, half an hour.
evidence: export OMP_NUM_THREADS = 1
evidence: $(INSTALLED)
	$(BIN)/pip install --quiet -e '.[bench]' -c constraints.txt
	$(BIN)/python -m tools.evidence $(if $(QUICK),--quick)

clean:
	rm -rf $(VENV) demo_run site

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet torch -c constraints.txt
	$(BIN)/pip install --quiet -e '.[dev]' -c constraints.txt
	touch $@
