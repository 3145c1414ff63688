#!/usr/bin/env bash
# The suite, but for the longest tests of whole commands, under other versions than the lock's Python: the lock under 3.12
# and 3.13, and the newest jax that requirements.in allows. A Python that is not installed is an error: name one with
# PYTHON312=... PYTHON313=...
set -euo pipefail
cd "$(dirname "$0")/.."

suite() { # name, python, extra requirements
    echo "== $1"
    rm -rf ".venv-$1"
    "$2" -m venv ".venv-$1"
    ".venv-$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:3}"
    ".venv-$1/bin/python" -c 'import sys, jax; print("Python", sys.version.split()[0], "jax", jax.__version__)'
    ".venv-$1/bin/python" -m pytest tests/data tests/model tests/train tests/configs tests/experiments \
        tests/integration/test_commands.py
    rm -rf ".venv-$1"
}

suite py312 "${PYTHON312:-python3.12}" -r requirements.txt -r requirements-dev.txt
suite py313 "${PYTHON313:-python3.13}" -r requirements.txt -r requirements-dev.txt
suite newest "${PYTHON313:-python3.13}" --upgrade -r requirements.in -r requirements-dev.in
