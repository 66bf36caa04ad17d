# One command per task. `make help` lists them. Everything runs in .venv, which the commands make
# themselves with the Python given by PYTHON and what PyPI has.
PYTHON ?= python3
# More options for `make bench` and `make bench-engine`, such as BENCH="--data DIR" with real data sets.
BENCH ?=
# Options for `make reproduce`, such as REPRODUCE=--quick or REPRODUCE="--data DIR --out DIR".
REPRODUCE ?=
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find cpp/engine cpp/paper cpp/bindings src experiments/src -name '*.cpp' -o -name '*.h' -o -name '*.py' -o -name '*.pyi' -o -name '*.css' -o -name '*.html' -o -name '*.js' -o -name '*.svg' -o -name '*.ts' -o -name '*.txt' | sort)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# On all CPUs; tests that share a build or a folder stay together. One thread for BLAS, since a
# process runs on each CPU already.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

.PHONY: help demo page reproduce test test-all test-cluster test-asan test-tsan tools bench bench-quick bench-engine docs lint stubs wheel clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

demo: $(VENV)/experiments ## search real documents by meaning, offline: ten queries, three ways side by side; a minute
	$(BIN)/python -m bitweigh_experiments.demo < /dev/null
	@echo 'The same documents in a browser, with why each hit is near: make page'

page: $(VENV)/server ## the documents of the demo in a browser, at http://127.0.0.1:8420; Ctrl-C ends it
	$(BIN)/python -m bitweigh_experiments.demo --serve

reproduce: $(VENV)/experiments ## the paper's experiments, repeated; writes a report into build/paper-reproduction
	$(BIN)/bitweigh paper reproduce --out build/paper-reproduction $(REPRODUCE)

test: $(VENV)/test ## all tests and checks that need nothing but pip and a compiler
	$(PYTEST) -m 'not tools and not long and not cluster'

test-all: $(VENV)/cluster-test $(VENV)/server-test ## the same, longer, and tests that need what `make tools` installs; fails without it
	BITWEIGH_LONG=1 BITWEIGH_REQUIRE_TOOLS=1 $(PYTEST)

test-cluster: $(VENV)/cluster-test ## shards on a Ray cluster of several nodes on this machine, and an object store
	$(BIN)/python -m pytest -m cluster

test-asan: $(VENV)/test ## damaged files and long lives, where a step out of bounds ends the run; some minutes
	BITWEIGH_REQUIRE_TOOLS=1 $(BIN)/python -m pytest -s tests/test_sanitizers.py -k bounds

test-tsan: $(VENV)/test ## threads that search beside a writer, where a race ends the run
	BITWEIGH_REQUIRE_TOOLS=1 $(BIN)/python -m pytest -s tests/test_sanitizers.py -k race

tools: ## install, by apt, what only the deeper tests need
	sh tools/install_tools.sh

bench: $(VENV)/bench ## all benchmarks up to a million codes, interleaved with the peers; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks --workloads all --out build/benchmarks.json --markdown docs/benchmarks.md $(BENCH)
	$(BIN)/python -m benchmarks.bandwidth --markdown docs/benchmarks.md

bench-quick: $(VENV)/bench ## some of them, in under five minutes
	$(BIN)/python -m benchmarks --workloads quick

bench-engine: $(VENV)/bench ## the engine by its own clock; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks.engine --out build/engine.json --markdown docs/benchmarks.md $(BENCH)

docs: $(VENV)/docs ## the documentation as a site, in build/docs
	$(BIN)/python -m sphinx -q -W --keep-going -n -c docs -d build/doctrees . build/docs
	@echo 'Open build/docs/index.html'

lint: $(VENV)/test ## format all sources and check those in Python
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(shell find cpp -name '*.cpp' -o -name '*.h')
	$(BIN)/ruff check --fix .
	$(BIN)/mypy

stubs: $(VENV)/test ## write src/bitweigh/_core.pyi and _paper.pyi again from the compiled modules
	$(BIN)/python tools/write_stubs.py

wheel: $(VENV)/test ## build a wheel into dist/
	$(BIN)/pip wheel --no-deps -w dist .

clean: ## remove everything that the commands here made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# One stamp for each set of optional packages, made again when a source file is newer. The library and
# the experiments are installed by one command: so pip does not look for bitweigh on PyPI.
$(BIN)/pip:
	$(PYTHON) -m venv --clear $(VENV)

INSTALL := $(BIN)/pip install --quiet --upgrade-strategy only-if-needed
NEEDED := $(BIN)/pip pyproject.toml experiments/pyproject.toml CMakeLists.txt $(SOURCES)

$(VENV)/experiments: $(NEEDED)
	$(INSTALL) . ./experiments
	@touch $@

$(VENV)/test $(VENV)/bench $(VENV)/docs $(VENV)/cluster-test $(VENV)/server $(VENV)/server-test: $(VENV)/%: $(NEEDED)
	$(INSTALL) '.[$*]' ./experiments
	@touch $@
