#!/usr/bin/env bash
# Formatting, include order between folders, and clang-tidy on what changed since $LINT_BASE (default: the commit before; all files:
# scripts/tidy.sh 0). Usage: scripts/lint.sh [--no-tidy]
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0

mapfile -t sources < <(git ls-files --cached --others --exclude-standard 'src/*.cc' 'src/*.h' 'tests/*.cc' 'tests/*.h' 'bench/*.cc' 'examples/*.cc' 'examples/*.h' 'include/*.h' 'src/*.inc')
if ! clang-format --dry-run --Werror "${sources[@]}" 2>/tmp/sotto-format.$$; then
  grep -o '^[^:]*' /tmp/sotto-format.$$ | sort -u | sed 's/^/not formatted (clang-format -i): /' >&2
  failed=1
fi
rm -f /tmp/sotto-format.$$

# A folder may include itself and the folders before it.
mapfile -t order < <(grep '^[a-z]' src/folders.txt)
declare -A rank
for i in "${!order[@]}"; do rank[${order[$i]}]=$i; done
while IFS=: read -r file _ line; do
  from=$(cut -d/ -f2 <<<"$file")
  to=$(sed -E 's/.*"([a-z_]+)\/.*/\1/' <<<"$line")
  [ -n "${rank[$to]:-}" ] || { echo "$file includes an unknown folder: $line" >&2; failed=1; continue; }
  if [ "${rank[$to]}" -gt "${rank[$from]}" ]; then
    echo "$file: $from must not include $to (the order is ${order[*]})" >&2
    failed=1
  fi
done < <(grep -rnE '^#include "[a-z_]+/' src --include='*.h' --include='*.cc' --include='*.inc')

# The door to private tensors stays inside privacy/.
if grep -rln '"privacy/access.h"' src | grep -v '^src/privacy/'; then
  echo "privacy/access.h may be included in src/privacy only" >&2
  failed=1
fi

if [ "${1:-}" != "--no-tidy" ]; then
  mapfile -t changed < <(git diff --name-only --diff-filter=d "${LINT_BASE:-HEAD~1}" -- 'src/*.cc' 2>/dev/null | grep -v /kernels_ || true)
  [ ${#changed[@]} -eq 0 ] || scripts/tidy.sh 0 "${changed[@]}" || failed=1
fi
[ $failed -eq 0 ] && echo "lint: clean" || exit 1
