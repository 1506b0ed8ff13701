# Every target sets up what it needs in .venv and .cache; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
RIGHT_PYTHON := import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 11)))
PYTHON ?= $(shell for p in python3.11 python3.10 python3; do \
	command -v $$p >/dev/null && $$p -c '$(RIGHT_PYTHON)' >/dev/null 2>&1 && echo $$p && break; done)
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
export XDG_CACHE_HOME ?= $(CURDIR)/.cache
export UV_CACHE_DIR ?= $(XDG_CACHE_HOME)/uv
export PATH := $(BIN):$(PATH)
export AIRFLOW_HOME ?= $(XDG_CACHE_HOME)/airflow-tests
ARGS ?= --help

.PHONY: help demo demo-up demo-down test test-fast conformance soak lint format zip hudictl bench options lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.done: requirements-bootstrap.lock requirements.lock pyproject.toml spark_jobs/pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "Python 3.10 or 3.11 with venv is needed: install one, or say 'make PYTHON=/path/to/python3.11'" >&2; exit 2; fi
	@echo "setting up $(VENV) with $$($(PYTHON) --version)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "  the installer (uv)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bootstrap.lock
	@echo "  $$(grep -c '==' requirements.lock) packages, Airflow and Spark among them: a minute or more, 1 GB"
	@$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	@echo "  the engine and the provider"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable spark_jobs --editable .
	@touch $@

demo: $(VENV)/.done ## the main job, end to end: Airflow sees a requested compaction and a Spark job runs it
	@$(BIN)/python -m demo.run

demo-up: $(VENV)/.done ## Airflow's UI in the background, with a Hudi table and every DAG, to click through
	@$(BIN)/python -m demo.up up

demo-down: $(VENV)/.done ## stop what demo-up started, remove what it made
	@$(BIN)/python -m demo.up down

test: $(VENV)/.done ## lint and every test; what CI runs
	@bash tests/run.sh

test-fast: $(VENV)/.done ## the unit tests that take no second and need no Spark and no Airflow
	@bash tests/run_fast.sh

conformance: $(VENV)/.done ## every golden table, service, version and index, most of it with real Hudi as judge
	@$(BIN)/python -m benchmarks.sweeps conformance

soak: $(VENV)/.done ## damaged inputs, kills of every service, races on versitygw, the web UI, the demo, the first hour
	@$(BIN)/python -m benchmarks.fuzz
	@$(BIN)/python -m benchmarks.hostile
	@$(BIN)/python -m benchmarks.forms
	@$(BIN)/python -m benchmarks.sweeps soak
	@$(BIN)/python -m benchmarks.soak
	@$(BIN)/python -m benchmarks.soak_airflow
	@$(BIN)/python -m benchmarks.first_hour

lint: $(VENV)/.done ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --cache-dir $(XDG_CACHE_HOME)/import-linter

format: $(VENV)/.done ## rewrite the code as ruff wants it
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

zip: $(VENV)/.done ## build the job zip into dist/
	@$(BIN)/python -m hudi_submit.zip dist/airflow_hudi_job.zip

hudictl: $(VENV)/.done ## make hudictl ARGS='timeline /data/table'
	@$(BIN)/hudictl $(ARGS)

bench: $(VENV)/.done ## time and memory beside real Hudi and Hudi-rs; stores results as JSON
	@$(BIN)/python -m benchmarks.compaction
	@$(BIN)/python -m benchmarks.read
	@$(BIN)/python -m benchmarks.services
	@$(BIN)/python -m benchmarks.rewrites
	@$(BIN)/python -m benchmarks.write
	@$(BIN)/python -m benchmarks.plans
	@$(BIN)/python -m benchmarks.large_rewrites
	@$(BIN)/python -m benchmarks.metadata
	@$(BIN)/python -m benchmarks.fleet
	@$(BIN)/python -m benchmarks.requests
	@$(BIN)/python -m benchmarks.triggerer

options: $(VENV)/.done ## write docs/reference/options.md from the typed option keys
	@PYTHONPATH=spark_jobs $(BIN)/python docs/reference/make_options.py

# Every extra but spark4, which excludes spark3. The lock's versions are kept where the providers allow it.
CONSTRAINED := './spark_jobs[polars,spark3,java,s3,crc32c,isal,libdeflate,zookeeper,dynamodb]' \
	'.[spark3,java,amazon,google,azure]'
lock: $(VENV)/.done ## compile requirements.in into the hash-checked lock, and the constraints for users
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header requirements.in \
		-o requirements.lock
	@{ echo "# The installer itself: pip checks its hash before it installs requirements.lock."; \
		awk '/^uv==/{p=1} p&&/^    # via/{exit} p{print}' requirements.lock; } > requirements-bootstrap.lock
	@for python in 3.10 3.11; do \
		cp requirements.lock constraints/constraints-$$python.txt; \
		printf '%s\n' $(CONSTRAINED) | $(BIN)/uv pip compile --quiet --no-header --no-annotate \
			--python-version $$python --python-platform x86_64-unknown-linux-gnu \
			--no-emit-package airflow-hudi --no-emit-package airflow-hudi-engine - \
			-o constraints/constraints-$$python.txt || exit; done

clean: ## remove what the other targets made
	@if [ -d .demo-up ]; then $(MAKE) --no-print-directory demo-down; fi
	@rm -rf .venv .cache .demo dist
