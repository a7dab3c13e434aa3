# Quintet's commands. Every target sets up what it needs; `make help` lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Tests start hundreds of programs, and each would compile what it loads.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup tmux bubblewrap chromium postgresql demo unit test pytest test-anywhere check dist wheel-test browser e2e e2e-all e2e-long soak-real chaos fleet trust fuzz breaks attacks load bench bench-peers screenshots clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Quintet needs Python 3.11 or later: install it, or name one with make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	    { echo "Python cannot make a virtual environment: install its venv module (Debian: apt-get install python3-venv)"; exit 1; }
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

setup: $(READY) ## make the virtual environment with everything in it

tmux:
	@tools/ensure-program tmux tmux "tmux 3.2 or later"

bubblewrap:
	@[ "$$(uname)" != Linux ] || tools/ensure-program bwrap bubblewrap bubblewrap || \
	    echo "continuing without it: the tests of the sandbox are skipped"

chromium:
	@tools/ensure-chromium

# Debian keeps the server's programs out of the path, and has one more that only the server brings.
postgresql:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	    tools/ensure-program pg_ctlcluster postgresql "the server of PostgreSQL"

demo: $(READY) tmux ## the whole loop in under a minute, with scripted agents, without any account
	$(BIN)/quintet demo

check: $(READY) ## types and style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# One process without plugins: they take seconds to load, and a second process takes more than it saves.
unit: $(READY) ## the fast lane, in under 15 seconds: what needs no process, socket or tmux
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/pytest -q --unit

test: $(READY) tmux bubblewrap ## types, style and all tests but those of `make wheel-test`, `make browser` and `make e2e`
	@$(MAKE) --no-print-directory --jobs=2 check pytest  # side by side: pytest waits for processes now and then

pytest: $(READY)
	$(BIN)/pytest -q -n 6 --dist worksteal  # more workers than cores, because many tests wait for processes

test-anywhere: ## make demo and make test below /tmp, as another user, with a hostile configuration
	tools/test-anywhere

dist: $(READY) ## build the wheel and the sdist into dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

wheel-test: $(READY) tmux ## build the wheel, install it into an empty environment and use it there
	$(BIN)/pytest -q -m wheel tests/wheel

browser: $(READY) tmux chromium ## the dashboard in a real Chromium, installed where it is missing
	$(BIN)/pytest -q -n 2 --dist worksteal -m browser tests/browser

# Most of the time the agents start or wait, so each core has a test of its own.
e2e: $(READY) tmux bubblewrap postgresql ## each real agent CLI: a loop that is killed and resumed in the sandbox; a queue task
	$(BIN)/python -m tests.e2e.install
	$(BIN)/pytest -q -n 2 --dist worksteal -m e2e tests/e2e

e2e-all: $(READY) tmux bubblewrap postgresql ## all tests with the real agent CLIs, CAO and OpenSpec: older releases, dialogs, limits, kills, fleets
	$(BIN)/python -m tests.e2e.install --all
	$(BIN)/pytest -q -n 2 --dist loadgroup -m "e2e or e2e_all" tests/e2e

e2e-long: $(READY) tmux ## the real agent CLIs with a model that fails for minutes
	$(BIN)/pytest -q -m e2e_long tests/e2e

soak-real: $(READY) tmux ## five loops in a row with the real Codex and five with the real Claude Code
	$(BIN)/python -m tools.soak_real

chaos: $(READY) tmux ## over 200 runs on real tmux and 5,000 simulated ones, each with a fault
	$(BIN)/python -m harness.chaos

fleet: $(READY) tmux postgresql ## 40 batches of 20 tasks for four workers while machines, the database and the remote break
	$(BIN)/python -m harness.batches

trust: $(READY) tmux ## try every cheat and every honest behaviour of harness/trust, each in a run of its own
	$(BIN)/python -m harness.trust

fuzz: $(READY) ## hostile input of every kind, thousands of examples each, and its time at twice the size
	$(BIN)/python -m harness.fuzz
	$(BIN)/pytest -q -n 2 -m hypothesis --hypothesis-profile fuzz

attacks: $(READY) tmux bubblewrap postgresql ## attack runs, servers and queues in every way we know, beside what honest agents do
	$(BIN)/pytest -q -n 2 --dist worksteal -m "attacks or not attacks" tests/attacks

breaks: $(READY) tmux bubblewrap ## break the code on purpose in 25 places, and check that a test notices each
	$(BIN)/python -m harness.breaks

load: $(READY) tmux ## 1, 10 and 40 runs at once, then ten minutes of runs one after the other
	$(BIN)/python tools/load.py

bench: $(READY) tmux ## measure; the figures are in docs/benchmarks.md
	$(BIN)/python tools/bench.py
	$(BIN)/python tools/bench_loop.py
	$(BIN)/python -m tools.bench_screens
	$(BIN)/python tools/bench_watch.py
	$(BIN)/python tools/bench_guard.py
	$(BIN)/python -m tools.bench_handoffs
	$(BIN)/python -m tools.bench_workspace
	$(BIN)/python -m tools.bench_acp

bench-peers: $(READY) tmux ## Quintet's terminal server and CAO 2.5.4 side by side
	$(BIN)/python tools/bench_peers.py

screenshots: $(READY) tmux chromium ## make the pictures in docs/images
	$(BIN)/python tools/screenshots.py
	$(BIN)/python tools/record_terminal.py

clean: ## remove what the targets made
	rm -rf $(VENV) .e2e dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .schemathesis
