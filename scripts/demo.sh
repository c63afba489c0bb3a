#!/usr/bin/env bash
# From a fresh machine to a private, personal federation: installs, builds, and runs example 10 on real images.
# Usage: scripts/demo.sh [FOLDER] (default: runs/demo). Stop it when you like; the same command goes on from there.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
scripts/build.sh release sotto
sotto=build/release/sotto
config=examples/10_private_and_personal.toml
out=${1:-runs/demo}

# Runs a config into a folder, or goes on where it was stopped.
run() {
  local folder=$1
  shift
  local resume=()
  [ -e "$folder" ] && resume=(--resume)
  "$sotto" run "$config" "$@" --out "$folder" "${resume[@]}"
}
step() { printf '\n%s\n' "== $1"; }

step "1/6 What will leave each client, and how much noise hides it"
"$sotto" plan "$config"

step "2/6 Every client alone: nothing is sent"
run "$out/alone" --set method.name=local-only --set federation.lr=10 \
  --set federation.fine_tune=0 --set federation.fine_tune_lr=0

step "3/6 All together: noisy steps over all records, then each client tunes the result at home"
run "$out/together"

step "4/6 Was it worth it? Each client's own accuracy"
"$sotto" report "$out/alone" "$out/together" --clients

step "5/6 The ledger: every release, recomputed; and an attack on what was sent"
"$sotto" ledger verify "$out/together"
"$sotto" audit "$out/together" --quick

step "6/6 The report"
"$sotto" report "$out/alone" "$out/together" -o "$out/report.html"
echo
echo "Open   $out/report.html"
echo "Next   $sotto predict $out/together --client 0 --test 5     client 0's own model on five images"
echo "       $sotto ledger show $out/together                    what each client was promised, and what it spent"
echo "       docs/tutorial.md"
