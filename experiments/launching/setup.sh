#!/usr/bin/env bash
# On every worker, before the first start: a Python that Cloze runs on, its requirements, and the bucket as runs/.
#   setup.sh [BUCKET[/FOLDER]]
# Every step is left out where it is done already, so that it may be given again after a broken connection.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! [ -x .venv/bin/pip ]; then
  rm -rf .venv
  for python in python3.13 python3.12 python3.11 ''; do
    if [ -n "$python" ] && "$python" -c 'import ensurepip, venv' 2>/dev/null; then break; fi
  done
  if [ -n "$python" ]; then
    "$python" -m venv .venv
  else # The images of TPU machines are Ubuntu 22.04, which has Python 3.10.
    python3 -m pip install --quiet --user uv
    python3 -m uv venv --quiet --seed --python 3.12 .venv
  fi
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-tpu.txt

if [ -n "${1:-}" ] && ! mountpoint -q runs; then
  if ! command -v gcsfuse >/dev/null; then
    keys=/usr/share/keyrings/cloud.google.asc
    curl -fsS https://packages.cloud.google.com/apt/doc/apt-key.gpg | sudo tee "$keys" >/dev/null
    echo "deb [signed-by=$keys] https://packages.cloud.google.com/apt gcsfuse-$(lsb_release -cs) main" |
      sudo tee /etc/apt/sources.list.d/gcsfuse.list >/dev/null
    sudo apt-get update -q
    sudo apt-get install -qy gcsfuse
  fi
  mkdir -p runs
  bucket=${1%%/*}
  folder=${1#"$bucket"}
  # Nothing is remembered about files: what one host writes the others must see at once.
  gcsfuse --implicit-dirs --metadata-cache-ttl-secs=0 ${folder:+--only-dir="${folder#/}"} "$bucket" runs
fi
