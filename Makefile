# Everything a person or CI runs. Each target makes what it needs; nothing outside the repository is assumed but
# Python 3.11 or newer with venv, a C++ compiler (ggwave builds from source) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python scripts/pip-progress
# Folders of tests with packages of npm. They run on the Node.js of a wheel: that of Debian 12 is too old for them.
NODE_FOLDERS := tests/generators tests/oidc_provider
# Of Python clients; what it needs contradicts what we need, so it has an environment of its own.
GENERATORS := $(VENV)/generators
CHECKED := src sdk/python tests bench
# `make up PORT=8181 UP='--workers 2'`: the public port, and any other options of `soundmark up`.
PORT ?=
UP ?=

.PHONY: install up test bench fmt lint lock test-tools clean

install: $(VENV)/.runtime
test-install: $(VENV)/.test

$(VENV)/.runtime: requirements/build.txt requirements/runtime.txt pyproject.toml sdk/python/pyproject.toml
	@scripts/check-machine $(PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing from the hashed lock files into $(VENV) (a minute or two the first time) ..."
	@$(PIP) install --require-hashes --requirement requirements/build.txt
	@$(PIP) install --require-hashes --no-build-isolation --requirement requirements/runtime.txt
	@$(PIP) install --no-deps --no-build-isolation --editable sdk/python --editable .
	@$(BIN)/python -m compileall -q src sdk/python/src
	@touch $@

$(VENV)/.test: $(VENV)/.runtime requirements/test.txt
	@$(PIP) install --require-hashes --no-build-isolation --requirement requirements/test.txt
	@touch $@

up: install
	@$(BIN)/soundmark up --demo $(if $(PORT),--port $(PORT)) $(UP)

test: test-install test-tools lint
	@$(BIN)/python -m pytest --numprocesses=auto --dist=loadgroup

test-tools: $(NODE_FOLDERS:%=%/node_modules/.package-lock.json) $(GENERATORS)/.installed
	@scripts/install-tools redis-server curl chromium

%/node_modules/.package-lock.json: %/package.json %/package-lock.json $(VENV)/.test
	@scripts/install-node-packages $(BIN)/python $*

$(GENERATORS)/.installed: requirements/generators.txt $(VENV)/.runtime
	@$(BIN)/python -m venv $(GENERATORS)
	@$(GENERATORS)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --requirement $<
	@touch $@

lint: test-install
	@$(BIN)/ruff format --check --quiet $(CHECKED)
	@$(BIN)/ruff check --quiet $(CHECKED)
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

fmt: test-install
	@$(BIN)/ruff check --fix --quiet $(CHECKED) || true
	@$(BIN)/ruff format --quiet $(CHECKED)

bench: test-install
	@scripts/install-tools wrk
	@$(BIN)/python -m bench

lock:
	@requirements/lock

clean:
	@rm -rf $(VENV) $(NODE_FOLDERS:%=%/node_modules) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
