# Two commands: `make demo` runs the main job on the embedded model, `make test` runs every check.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow bench mutants claims docs docs-numbers clean

demo: .venv/.run
	$(BIN)/iclgd compare --out runs/demo --overwrite

test: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

slow: .venv/.test
	$(BIN)/pytest -m "slow or not slow"

# speed on this machine beside a plain port, BENCH="--model 1.3b --device cuda" for another model; small labs; whole cells
bench: .venv/.run
	$(BIN)/python benchmarks/bench.py $(BENCH)
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/growth.py

# how many small faults the tests notice: MODULE=src/iclgd/metrics, or, for docs/design.md, every package
mutants: .venv/.test
	$(BIN)/python tests/mutants.py $(if $(MODULE),--package $(MODULE),--out docs/results/data/mutants.json)

# the sentences of the papers that take seconds and minutes
claims: .venv/.run
	$(BIN)/iclgd claims run --tier seconds,minutes

# the documentation as a site with search: build/site/index.html
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

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

.venv/.docs: .venv/.run
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

clean:
	rm -rf .venv runs build
