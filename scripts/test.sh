#!/usr/bin/env bash
# Installs, builds, runs every test. Usage: scripts/test.sh [PRESET]   (release by default; asan, tsan)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/setup.sh
scripts/build.sh "$preset"
cd "build/$preset"
# ctest begins with what took longest the last time; suites that measure time run alone.
ctest --output-on-failure --parallel "$(nproc)"
