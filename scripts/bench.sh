#!/usr/bin/env bash
# Builds and runs the benchmarks: ratios within one run, so that a noisy machine still gives stable figures.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
cmake --preset release -DSOTTO_BUILD_BENCH=ON >/dev/null
cmake --build build/release --parallel "$(nproc)"
build/release/sotto bench simulate
build/release/sotto_microbench "$@"
