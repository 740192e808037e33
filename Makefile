# Two commands: `make demo` runs the main job on the embedded model, `make test` runs every check.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow claims docs-numbers clean

demo: .venv/.run
	$(BIN)/iclgd compare --out runs/demo --overwrite

test: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

slow: .venv/.test
	$(BIN)/pytest -m "slow or not slow"

claims: .venv/.run
	$(BIN)/iclgd claims run --tier seconds,minutes

# numbers in the README and the docs, from docs/results/data and the claims' verdicts
docs-numbers: .venv/.run
	$(BIN)/python docs/fill.py

.venv/.run: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/.test: .venv/.run
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@

clean:
	rm -rf .venv runs build
