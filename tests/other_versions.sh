#!/usr/bin/env bash
# The suite under other versions than the lock's Python: the lock under 3.12, and under 3.13 the newest jax that
# requirements.in allows, both without the longest tests of whole commands; and the lock under 3.13, commands alone.
# A Python that is not installed is an error: name one with PYTHON312=... PYTHON313=...
set -euo pipefail
cd "$(dirname "$0")/.."
COMMANDS=tests/integration/test_commands.py
PARTS="tests/data tests/model tests/train tests/configs tests/experiments $COMMANDS"

suite() { # name, python, tests, requirements
    echo "== $1"
    rm -rf ".venv-$1"
    "$2" -m venv ".venv-$1"
    ".venv-$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:4}"
    ".venv-$1/bin/python" -c 'import sys, jax; print("Python", sys.version.split()[0], "jax", jax.__version__)'
    # shellcheck disable=SC2086 # several paths
    ".venv-$1/bin/python" -m pytest $3
    rm -rf ".venv-$1"
}

suite py312 "${PYTHON312:-python3.12}" "$PARTS" -r requirements.txt -r requirements-dev.txt
suite py313 "${PYTHON313:-python3.13}" "$COMMANDS" -r requirements.txt -r requirements-dev.txt
suite newest "${PYTHON313:-python3.13}" "$PARTS" --upgrade -r requirements.in -r requirements-dev.in
