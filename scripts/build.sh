#!/usr/bin/env bash
# Configures and builds one preset (default: release). Usage: scripts/build.sh [PRESET] [TARGET…]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
generator=()
if [ ! -f "build/$preset/CMakeCache.txt" ] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" "${generator[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
targets=()
[ $# -gt 0 ] && targets=(--target "$@")
cmake --build "build/$preset" --parallel "$(nproc)" "${targets[@]}"
