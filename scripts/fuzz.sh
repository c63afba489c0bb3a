#!/usr/bin/env bash
# Runs the fuzzers of tests/fuzz with sanitizers, one after the other. Usage: scripts/fuzz.sh [SECONDS=3600] [NAME…]
#
# Inputs that reach something new are kept in build/fuzz/NAME, and used the next time. What breaks a decoder lies in
# build/fuzz as NAME-crash-…; build/asan/fuzz_NAME FILE runs it again. Ends with 1 if anything did.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-3600}
shift || true
if [ $# -gt 0 ]; then names=("$@"); else mapfile -t names < <(sed -n 's/^sotto_fuzzer(\([a-z_]*\).*/\1/p' tests/fuzz/CMakeLists.txt); fi
scripts/build.sh asan "${names[@]/#/fuzz_}"

failed=0
for name in "${names[@]}"; do
  mkdir -p "build/fuzz/$name"
  echo "fuzz: $name for $seconds s"
  ASAN_OPTIONS=detect_leaks=1 "build/asan/fuzz_$name" "build/fuzz/$name" -max_total_time="$seconds" -timeout=5 -malloc_limit_mb=256 \
    -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" >"build/fuzz/$name.log" 2>&1 || { failed=1; tail -n 40 "build/fuzz/$name.log"; }
  grep -E "stat::number_of_executed_units|inputs of" "build/fuzz/$name.log" || true
done
exit $failed
