# Everything is run from here; `make` alone prints the targets. Needs Python 3.11 or newer and make.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-print-directory
# Some machines set it: each worker and each program that a test starts would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --no-input
# A stamp is newer than the lock and the project file that it was installed from.
RUN := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed
UV_VERSION := 0.13.9
# Most tests wait for processes and for time: six at once keep two cores busy.
WORKERS ?= 6
PYTEST_ARGS ?=
# `make test DATABASES=both`: also the tests above the store run on each database.
DATABASES ?= in-turn
# `make mutations MUTATIONS=--contracts`: only those of the contracts, with the seconds.
MUTATIONS ?=

# `make soak NAME`: the words after "soak" are arguments, not targets.
ifeq (soak,$(firstword $(MAKECMDGOALS)))
SOAK_ARGS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
ifneq (,$(SOAK_ARGS))
.PHONY: $(SOAK_ARGS)
$(SOAK_ARGS): ; @:
endif
endif

.PHONY: help chat setup serve demo-channels demo-tools test coverage check pages format bench soak mutations contracts dist sbom site lock clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r name text; do \
	  printf '  make %-14s %s\n' "$$name" "$$text"; done

chat: $(RUN) ## talk to the agent in this terminal
	@exec $(BIN)/clew chat

setup: $(RUN) ## choose a model, try it, and talk
	@exec $(BIN)/clew setup

serve: $(RUN) ## run the gateway: channels and API
	@exec $(BIN)/clew serve

demo-channels: $(RUN) ## watch a conversation on a chat platform, without a token
	@exec $(BIN)/python -m clew.testing.demo

demo-tools: $(RUN) ## watch a task with tools that is killed in the middle, without a key
	@exec $(BIN)/python -m clew.testing.demo_tools

test: $(DEV) ## run all tests on SQLite and PostgreSQL
	@exec $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --databases $(DATABASES) $(PYTEST_ARGS)

coverage: $(DEV) ## run all tests and count the lines that they reach: takes twice as long
	@exec $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term $(PYTEST_ARGS)

check: $(DEV) ## formatting, lint, types, import rules, size budgets, generated pages
	@failed=; \
	step() { echo "$$1"; shift; "$$@" || failed=yes; }; \
	step "ruff format (make format mends it)" $(BIN)/ruff format --check --quiet .; \
	step "ruff check" $(BIN)/ruff check --quiet .; \
	step "basedpyright" $(BIN)/basedpyright; \
	step "tsc (the dashboard)" $(BIN)/python -m scripts.check_web; \
	step "lint-imports" $(BIN)/lint-imports --no-logo; \
	step "rules of the project: budgets, names, dependencies, sentences, waits, docs" $(BIN)/python -m pytest -q -p no:randomly $(PROMISES); \
	[ -z "$$failed" ]

# every test that reads only the source, and what clients see, so that what breaks a rule of the project is named here and not by the suite
PROMISES := $(addprefix tests/unit/test_,$(addsuffix .py,architecture budgets checks_reference commands_reference \
  contracts_page dependencies distribution_name docs exports find_your_way mutations no_sentences python_reference tools_reference tui_styles waits)) tests/golden

PAGES := clew.agent.failure_reference:errors.md clew.cli.tools_reference:tools.md clew.commands.reference:commands.md \
  clew.config.reference:settings.md clew.store.checks.reference:checks.md \
  clew.testing.provider.quirks.reference:provider-quirks.md tests.contracts_table:contracts.md

pages: $(DEV) ## write every generated page of the docs again
	@$(BIN)/python scripts/architecture.py docs/explanation/architecture.md
	@$(BIN)/python -m scripts.rpc_reference docs/reference
	@$(BIN)/python -m scripts.web_types src/clew/web
	@$(BIN)/python -m scripts.python_reference docs/reference/python.md
	@for page in $(PAGES); do $(BIN)/python -m $${page%%:*} docs/reference/$${page#*:}; done

format: $(DEV) ## rewrite the code in the project's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(DEV) ## measure, against the numbers to reach
	@exec $(BIN)/python -m bench

soak: $(DEV) ## make soak NAME: a long run under load and faults
	@exec $(BIN)/python -m tests.soak $(SOAK_ARGS)

mutations: $(DEV) ## remove each safeguard in turn; a test must notice
	@exec $(BIN)/python -m tests.mutations $(MUTATIONS)

contracts: $(DEV) ## only the contracts of the session lifecycle
	@exec $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --no-cov -p tests.contracts_table \
	  -k "test_s0_ or test_s1_ or test_s2_ or test_s3_ or test_s4_" $(PYTEST_ARGS)

dist: $(DEV) ## build sdist and wheel, twice, and compare their bytes
	@$(BIN)/python -m scripts.dist dist
	@$(BIN)/python -m scripts.sbom dist/sbom.cdx.json

site: .make/docs-installed ## build the documentation as a site, in site/; broken links fail
	@.make/docs/bin/python -m scripts.site .make/site
	@cd .make/site && ../docs/bin/zensical build --clean --strict
	@rm -rf site && mv .make/site/built site && echo "site/index.html"

.make/docs-installed: requirements/docs.lock
	@mkdir -p .make
	@$(FIND_PYTHON); "$$python" -m venv .make/docs
	@.make/docs/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --requirement $<
	@touch $@

sbom: $(DEV) ## write the software bill of materials (CycloneDX) from the lock file
	@$(BIN)/python -m scripts.sbom dist/sbom.cdx.json

lock: .make/uv-$(UV_VERSION) ## resolve the dependencies anew, to the newest that fit
	@.make/uv/bin/uv pip compile $(LOCK_OPTIONS) --group build --output-file requirements/run.lock pyproject.toml
	@.make/uv/bin/uv pip compile $(LOCK_OPTIONS) --group dev --constraint requirements/run.lock \
	  --output-file requirements/dev.lock pyproject.toml
	@.make/uv/bin/uv pip compile $(filter-out --extra all,$(LOCK_OPTIONS)) --group docs --output-file requirements/docs.lock
	@wc -l requirements/*.lock

# Locks name neither an index nor a host: where packages come from is the installing machine's affair.
LOCK_OPTIONS := --quiet --no-config --universal --python-version 3.11 --extra all --upgrade \
  --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links

.make/uv-$(UV_VERSION):
	@mkdir -p .make
	@$(FIND_PYTHON); "$$python" -m venv .make/uv
	@.make/uv/bin/python -m pip --disable-pip-version-check --quiet install uv==$(UV_VERSION)
	@touch $@

clean: ## remove the environment and every cache
	@rm -rf $(VENV) .make build dist site .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Sets $python to the first interpreter that starts and is new enough; PYTHON=... overrides the search.
PYTHON ?=
define FIND_PYTHON
python=; for name in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14 python); do \
  if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then \
    python="$$name"; break; fi; done; \
if [ -z "$$python" ]; then \
  echo "Clew needs Python 3.11 or newer; found: $$(python3 --version 2>&1 || echo none)." >&2; \
  echo "Install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; fi
endef

$(BIN)/python:
	@$(FIND_PYTHON); echo "creating $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(RUN): requirements/run.lock pyproject.toml | $(BIN)/python
	@echo "installing what Clew needs to run (once)"
	@$(PIP) install --require-hashes --requirement requirements/run.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# The development lock holds the run lock, so one installation serves both.
$(DEV): requirements/dev.lock requirements/run.lock pyproject.toml | $(BIN)/python
	@echo "installing what development needs (once)"
	@$(PIP) install --require-hashes --requirement requirements/dev.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $(RUN) $@
