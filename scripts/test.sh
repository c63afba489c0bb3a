#!/usr/bin/env bash
# Installs, builds, runs every test. Usage: scripts/test.sh [PRESET]   (release by default; asan, tsan)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/setup.sh
scripts/build.sh "$preset"
cd "build/$preset"
# One after the other: many tests use all cores, and some measure time.
ctest --output-on-failure
