#!/usr/bin/env bash
# Runs what measured.tsv says of the examples again, and compares. Usage: examples_test.sh SOTTO_SOURCES PROGRAM WORK [COMMAND…]
#
# All of it, or only these arguments of `sotto run`. The mean accuracy may be half a point away from what was
# measured (noise of the operating system never repeats, and kernels differ between processors); ε must be printed as it was.
set -euo pipefail
root=$1 program=$2 work=$3
shift 3
rm -rf "$work"
mkdir -p "$work"
cd "$root"
wanted() {
  [ $# -gt 1 ] || return 0
  local command=$1 one
  shift
  for one in "$@"; do
    [ "$command" = "$one" ] && return 0
  done
  return 1
}
checked=0 failed=0
while IFS=$'\t' read -r figures epsilon arguments; do
  [ "$arguments" != - ] && wanted "$arguments" "$@" || continue
  checked=$((checked + 1))
  measured=${figures%% *}
  # shellcheck disable=SC2086  # several words
  output=$("$program" run $arguments --quiet --out "$work/$checked")
  printed=$(grep -oE '^accuracy +[0-9.]+' <<<"$output" | grep -oE '[0-9.]+$')
  if ! awk -v a="$measured" -v b="$printed" 'BEGIN { exit !(a - b <= 0.5 && b - a <= 0.5) }'; then
    echo "$arguments: measured $measured %, and now it is $printed %" >&2
    failed=1
  fi
  if [ "$epsilon" != - ] && ! tr -s ' \n' ' ' <<<"$output" | grep -qF "$epsilon"; then
    echo "$arguments: '$epsilon' is not in: $(grep -A2 '^privacy' <<<"$output")" >&2
    failed=1
  fi
  echo "$arguments: $printed %, $epsilon"
done < <(grep -v '^#' "$root/tests/docs/measured.tsv")
[ $checked -gt 0 ] || { echo "no such command in measured.tsv" >&2; exit 1; }
exit $failed
