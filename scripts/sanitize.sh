#!/usr/bin/env bash
# Tests under sanitizers. Usage: scripts/sanitize.sh [address|thread] [FOLDER…]
#
#   address   addresses, leaks and undefined behaviour, in all folders of tests/ by default
#   thread    data races, in those where threads meet: base, serve, remote, transport, federation, ui
#
# What others leak or race over stands in tests/support/*.supp, each with a reason.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-address}
shift || true
support=$PWD/tests/support
case $what in
  address)
    preset=asan
    export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=0
    export LSAN_OPTIONS=suppressions=$support/leaks.supp:print_suppressions=0
    export UBSAN_OPTIONS=print_stacktrace=1
    folders=("$@")
    [ $# -gt 0 ] || mapfile -t folders < <(sed -n '/^[a-z]/p' src/folders.txt | while read -r folder; do [ -e "tests/$folder/CMakeLists.txt" ] && echo "$folder"; done) ;;
  thread)
    preset=tsan
    export TSAN_OPTIONS=suppressions=$support/races.supp:history_size=4:second_deadlock_stack=1
    folders=("$@")
    [ $# -gt 0 ] || folders=(base serve remote transport federation ui) ;;
  *) echo "usage: scripts/sanitize.sh [address|thread] [FOLDER…]" >&2; exit 2 ;;
esac

# Programs that have other names than their folders, and folders without one of their own.
targets=() pattern=
for folder in "${folders[@]}"; do
  [ -e "tests/$folder/CMakeLists.txt" ] || { echo "sanitize: tests/$folder does not exist: passed over"; continue; }
  mapfile -t names < <(sed -n 's/^sotto_test(\([a-z_]*\).*/\1/p' "tests/$folder/CMakeLists.txt")
  for name in "${names[@]}"; do
    targets+=("test_$name")
    pattern+="${pattern:+|}^$name\\."
  done
done
scripts/build.sh "$preset" "${targets[@]}"
cd "build/$preset"
ctest --output-on-failure -R "$pattern" --timeout 3600
