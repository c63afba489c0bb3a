#!/usr/bin/env bash
# Federations whose processes are killed at random, until so many kills are done: each must end with the model, the states and the
# ledgers of an undisturbed one, to the last bit. Usage: scripts/kills.sh [N=200] [SEED=time]
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-200}
seed=${2:-$(date +%s)}
sotto=${SOTTO:-build/release/sotto}
[ -x "$sotto" ] || scripts/build.sh release
echo "kills: $kills, seed $seed"
exec python3 tests/remote/federation_test.py "$sotto" --only none --random "$kills" --seed "$seed"
