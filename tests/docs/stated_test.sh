#!/usr/bin/env bash
# Every result that README.md and the comments in examples/ state is one that was measured. Usage: stated_test.sh SOTTO_SOURCES
set -euo pipefail
cd "$1"
measured=tests/docs/measured.tsv
failed=0
fail() {
  echo "$1" >&2
  failed=1
}

known=$(grep -v '^#' "$measured" | cut -f1 | tr ' ' '\n')
# Percentages, and what stands behind ± and "worst".
stated() { grep -hoE '[0-9]+\.[0-9]+ %|(±|worst|and) [0-9]+\.[0-9]+' "$@" | grep -oE '[0-9]+\.[0-9]+' | sort -u; }
for figure in $(stated README.md examples/[0-9]*.toml); do
  grep -qxF "$figure" <<<"$known" || fail "$figure is stated and not measured: $(grep -lF "$figure" README.md examples/[0-9]*.toml | tr '\n' ' ')"
done
for figure in $known; do
  grep -qF "$figure" README.md examples/[0-9]*.toml || fail "$measured has $figure, which nothing states any more"
done

# An example states its own figure, not another's.
while IFS=$'\t' read -r figures _ arguments; do
  config=${arguments%% *}
  [ "$config" = - ] || grep -qF "${figures%% *}" "$config" || fail "$config does not state its ${figures%% *} %"
done < <(grep -v '^#' "$measured")

# Rows of README's table of audits stand in docs/audit.md.
rows=0
while IFS='|' read -r _ method as claimed proven audited verdict _; do
  variant=sound
  [[ $as == *printed* ]] && variant=paper
  pattern="^\|$method\| $variant \|.*\|$claimed\|$proven\|$audited\|.*\|$verdict\|"
  grep -qE "$pattern" docs/audit.md || fail "docs/audit.md has no row like README's: $method $as"
  rows=$((rows + 1))
done < <(grep -E '^\| `[a-z-]+` \| (sound|printed)' README.md)
[ $rows -ge 4 ] || fail "README.md has no table of audits"
[ $failed = 0 ] && echo "$(wc -w <<<"$known") figures and $rows audits are stated as they were measured"
exit $failed
