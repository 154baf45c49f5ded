# Everything a person or CI runs. Each target makes what it needs; nothing outside the repository is assumed but
# Python 3.11 or newer with venv and make; the tests' ggwave is built from source, which takes a C++ compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := scripts/pip-progress
# A lock file is complete, so pip has nothing to resolve, and what is not in it is not installed. pip compiles with one
# process, so we do it afterwards; some packages hold files that no version of Python compiles.
LOCKED := $(PIP) install --no-deps --require-hashes --no-build-isolation --no-compile --requirement
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib src sdk/python/src || true
OURS := $(PIP) install --no-deps --no-build-isolation --editable sdk/python --editable .
# Folders of tests with packages of npm. They run on the Node.js of a wheel: that of Debian 12 is too old for them.
NODE_FOLDERS := tests/axe tests/deploy tests/generators tests/javascript tests/oidc_provider
# Of Python clients; what it needs contradicts what we need, so it has an environment of its own.
GENERATORS := $(VENV)/generators
# Of an independent implementation of transparency logs, whose metadata asks for a newer Python than ours.
VERIFIERS := $(VENV)/verifiers
# Of the builder of the documentation site, whose fourteen thousand icons nothing else needs.
DOCS := $(VENV)/docs
GUIDE := build/guide
GUIDE_SOURCES := $(shell find docs -type f -not -name '*.pyc') $(wildcard *.md sdk/*/README.md tools/*/README.md) examples/README.md $(wildcard bench/*.md)
# The oldest releases that we say we run on, and the tests that would notice.
FLOORS := $(VENV)/floors
FLOOR_TESTS := sdk/python/tests tests/kit tests/core tests/audience tests/audio tests/cli
BIOME := scripts/node $(BIN)/python tests/javascript/node_modules/@biomejs/biome/bin/biome
TSC := scripts/node $(BIN)/python tests/javascript/node_modules/typescript/bin/tsc
CHECKED := src sdk/python tests bench deploy docs/site examples scripts tools
# `make up PORT=8181 UP='--workers 2'`: the public port, and any other options of `soundmark up`.
PORT ?=
UP ?=
# Root may try a checkout in a folder of its own, where no other user can read it. With --host, others could reach it.
MAY_SERVE_AS_ROOT = $(if $(findstring --host,$(UP)),,--serve-as-root)
# What `make tests` and `make coverage` run, everything if empty, and the packages that the latter measures.
TESTS ?=
# Tests wait for processes and timeouts: on two processors, four workers are a tenth faster than three, and five a little.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 2 + 1)
MEASURED ?= soundmark soundmark_sdk

# Every worker of a test run imports the product and collects every test, which takes twice as long without bytecode.
unexport PYTHONDONTWRITEBYTECODE
# Every process that imports NumPy would start a thread for each processor, which take longer to start than they save.
tests coverage: export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := help

.PHONY: help install up dev docs t test suite tool-tests tests coverage collected mutants test-faults test-floors audit dist npm-package image test-deploy screenshots bench bench-short fmt lint lock test-tools system-tools generators verifiers clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-12s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.runtime-compiled docs  ## Create .venv with the `soundmark` command in it
test-install: $(VENV)/.test-compiled

$(BIN)/python:
	@scripts/check-machine $(PYTHON)
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python requirements/build.txt requirements/complete.txt pyproject.toml sdk/python/pyproject.toml
	@echo "Installing from the hashed lock files into $(VENV) (a minute or two the first time) ..."
	@$(BIN)/python $(LOCKED) requirements/build.txt
	@$(BIN)/python $(LOCKED) requirements/complete.txt
	@$(BIN)/python $(OURS)
	@touch $@

$(VENV)/.test: $(VENV)/.runtime requirements/test.txt
	@scripts/check-machine $(BIN)/python tests
	@$(BIN)/python $(LOCKED) requirements/test.txt
	@touch $@

# With --jobs, one compiles while the other installs, so what is half written is compiled again.
$(VENV)/.runtime-compiled: $(VENV)/.runtime
	@echo "  Compiling the Python files ..."
	@$(COMPILE)
	@touch $@

$(VENV)/.test-compiled: $(VENV)/.test $(VENV)/.runtime-compiled
	@$(COMPILE)
	@touch $@

# The documentation is built meanwhile, so that nobody waits for it.
up: $(VENV)/.runtime-compiled  ## Run everything on this machine and show the main job once (PORT=8181 UP=--sandbox)
	@(nice $(MAKE) --no-print-directory docs >$(VENV)/docs.log 2>&1 &)
	@$(BIN)/soundmark up --demo $(if $(PORT),--port $(PORT)) $(MAY_SERVE_AS_ROOT) $(UP)

dev: $(VENV)/.runtime-compiled  ## Like up, but restart whatever you change (PORT, UP)
	@$(BIN)/soundmark up --reload $(if $(PORT),--port $(PORT)) $(MAY_SERVE_AS_ROOT) $(UP)

docs: $(GUIDE).built  ## Build the documentation site into build/guide; the console serves it at /guide

$(GUIDE).built: $(DOCS)/.installed $(VENV)/.runtime $(GUIDE_SOURCES)
	@echo "  Building the documentation ..."
	@mkdir -p build
	@$(BIN)/python docs/site/collect.py build/pages
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --config-file docs/site/mkdocs.yml >build/docs.log 2>&1 || \
	    { grep -v '^INFO' build/docs.log; exit 1; }
	@touch $@

$(DOCS)/.installed: $(BIN)/python requirements/docs.txt
	@$(BIN)/python -m venv $(DOCS)
	@$(DOCS)/bin/python $(LOCKED) requirements/docs.txt
	@touch $@

test: lint  ## Check everything and run all tests, as CI does
	@$(MAKE) --no-print-directory suite

suite: tests tool-tests

# Those of tools/mutants, which is a distribution of its own, and the check of our table for it.
tool-tests: test-install
	@cd tools/mutants && $(abspath $(BIN))/python -m pytest -q

# In one process. Schemathesis, which one folder needs, takes a second to import.
t: test-install  ## Run one test file, fast: make t FILE=tests/kit/text (ARGS='-k name -x --pdb')
	@$(BIN)/python -m pytest -q $(if $(findstring published/contract,$(FILE)),,-p no:schemathesis) $(ARGS) $(FILE)

tests: test-install test-tools  ## Run tests by several workers (TESTS=tests/kit WORKERS=2)
	@$(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadgroup $(TESTS)

# A report and no gate: which branches the tests take. It costs half as much CPU again as the tests alone.
coverage: test-install test-tools  ## Run tests and report which branches they take (TESTS, MEASURED)
	@$(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadgroup \
	    $(MEASURED:%=--cov=%) --cov-branch --cov-report=term-missing:skip-covered $(TESTS)

# The bytecode of the tests, which pytest writes itself; otherwise each worker would compile all of them. If a module
# cannot be collected, the run of the tests says so.
collected: test-install
	@$(BIN)/python -m pytest --collect-only -qq $(TESTS) >/dev/null || true

test-tools: system-tools generators verifiers docs $(NODE_FOLDERS:%=%/node_modules/.package-lock.json)
generators: $(GENERATORS)/.installed
verifiers: $(VERIFIERS)/.installed

system-tools:
	@scripts/install-tools redis-server pgbouncer curl chromium chromium-headless-shell systemd-analyze=systemd promtool=prometheus haproxy kubectl=kubernetes-client

%/node_modules/.package-lock.json: %/package.json %/package-lock.json $(VENV)/.test
	@scripts/install-node-packages $(BIN)/python $*

$(GENERATORS)/.installed: $(BIN)/python requirements/generators.txt
	@$(BIN)/python -m venv $(GENERATORS)
	@$(GENERATORS)/bin/python $(LOCKED) requirements/generators.txt
	@touch $@

$(VERIFIERS)/.installed: $(BIN)/python requirements/verifiers.txt
	@$(BIN)/python $(LOCKED) requirements/verifiers.txt --ignore-requires-python --upgrade --target $(VERIFIERS)
	@touch $@

# Not in CI: it takes hours. `make mutants ONLY=quota` runs the modules whose path contains the word.
mutants: $(VENV)/.mutants test-tools  ## Change the rules one by one and see whether a test fails; takes hours (ONLY=quota)
	@$(BIN)/python -m forked_mutants tools/mutants/soundmark.toml $(if $(ONLY),--only $(ONLY))

$(VENV)/.mutants: $(VENV)/.test-compiled tools/mutants/pyproject.toml
	@$(BIN)/python $(PIP) install --no-deps --no-build-isolation --editable tools/mutants
	@touch $@

# Ten minutes of what `make test` does once. The seed decides what the clients do, and the order of the faults:
# `make test-faults FAULTS_SEED=7`.
test-faults: test-install  ## Kill, pause and cut servers under load for ten minutes (FAULTS_S, FAULTS_SEED)
	@FAULTS_S=$(or $(FAULTS_S),600) FAULTS_SEED=$(or $(FAULTS_SEED),1) $(BIN)/python -m pytest -q -s tests/faults

# Beside `make test`, after a change of a floor or of what rests on one: it takes as long, and fails for its own reasons.
test-floors: $(FLOORS)/.installed test-tools  ## Run the tests on the oldest supported releases of our dependencies
	@$(FLOORS)/bin/python -m pytest --numprocesses=$(WORKERS) --dist=loadgroup $(FLOOR_TESTS)

$(FLOORS)/.installed: requirements/build.txt requirements/floors.txt pyproject.toml sdk/python/pyproject.toml
	@scripts/check-machine $(PYTHON) tests
	@test -x $(FLOORS)/bin/python || $(PYTHON) -m venv $(FLOORS)
	@$(FLOORS)/bin/python $(LOCKED) requirements/build.txt
	@$(FLOORS)/bin/python $(LOCKED) requirements/floors.txt
	@$(FLOORS)/bin/python $(OURS)
	@touch $@

# The wheels and source archives of both distributions, the same bytes for the same commit.
dist: $(VENV)/.runtime-compiled  ## Build the wheels and source archives into dist/
	@rm -rf dist $(GUIDE).built
	@$(MAKE) --no-print-directory docs
	@cd sdk/python && $(abspath $(BIN))/python -m hatchling build --directory $(CURDIR)/dist
	@$(BIN)/python -m hatchling build --directory dist

npm-package: test-install  ## Pack the receiver for npm into dist/
	@mkdir -p dist
	@scripts/npm $(BIN)/python pack --silent --pack-destination dist ./sdk/js

# Without a daemon, from packages of Debian 12 and the lock file; the same bytes for the same commit and packages.
image: test-install dist  ## Build the OCI image into dist/ (on Debian 12)
	@$(BIN)/python deploy/image/build.py

# Beside `make test`: it takes minutes, and needs root for the root folder and the users of what it starts.
test-deploy: image  ## Run processes of the image, and a restore with pgBackRest (on Debian 12, as root)
	@scripts/install-tools pgbackrest /usr/lib/postgresql/15/bin/initdb=postgresql-15
	@$(BIN)/python -m pytest -q -s deploy

# What is known against what the lock files pin.
audit: test-install  ## Compare the lock files with known vulnerabilities
	@$(BIN)/python scripts/audit.py

lint: test-install tests/javascript/node_modules/.package-lock.json  ## Check format, style, types and imports
	@$(BIN)/ruff format --check --quiet $(CHECKED)
	@$(BIN)/ruff check --quiet $(CHECKED)
	@$(BIN)/mypy
	@MYPYPATH=docs/site $(BIN)/mypy --explicit-package-bases scripts/audit.py scripts/vendor_icons.py docs/site/*.py
	@MYPYPATH=tools/mutants/src $(BIN)/mypy tools/mutants/src tools/mutants/soundmark_cluster.py
	@$(BIN)/lint-imports --no-logo
	@$(BIOME) check --log-level=error
	@$(TSC) --project tests/javascript
	@$(TSC) --project tests/javascript/tsconfig.worklet.json

fmt: test-install tests/javascript/node_modules/.package-lock.json  ## Format the code
	@$(BIN)/ruff check --fix --quiet $(CHECKED) || true
	@$(BIN)/ruff format --quiet $(CHECKED)
	@$(BIOME) check --write --log-level=error

# The pictures of the console in the README, and the moving one.
screenshots: test-install test-tools  ## Take the pictures of the console in the README anew
	@SCREENSHOTS_INTO=docs/images $(BIN)/python -m pytest --quiet tests/console/browser/test_screenshots.py

bench: test-install  ## Measure speed and write bench/RESULTS.md
	@scripts/install-tools wrk
	@$(BIN)/python -m bench

# Before and after a change: a few parts, a few rounds of each, and RESULTS.md stays.
bench-short: test-install  ## Measure speed shortly, in a few minutes
	@scripts/install-tools wrk
	@$(BIN)/python -m bench --short

lock:  ## Resolve every dependency anew into the lock files (needs uv)
	@requirements/lock

clean:  ## Remove everything that the other targets made
	@rm -rf $(VENV) build dist $(NODE_FOLDERS:%=%/node_modules) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
