#!/usr/bin/env bash
# Runs the commands of README.md in order, and the configs of the pages for those who come from elsewhere, on few records
# and for one round. Usage: readme_test.sh SOTTO_SOURCES PROGRAM WORK
#
# The scripts that install, build and test everything are left out: they are what runs this.
set -euo pipefail
root=$1 program=$2 work=$3
rm -rf "$work"
mkdir -p "$work/blocks" "$work/tree/build/release"
awk -v out="$work/blocks" -f "$root/tests/docs/blocks.awk" "$root/README.md"
cp -r "$root/examples" "$work/tree/"
cat >"$work/tree/build/release/sotto" <<EOF
#!/bin/sh
case \$1 in
  run | plan) exec '$program' "\$@" --set rounds=1 --set data.limit=2000 ;;
  *) exec '$program' "\$@" ;;
esac
EOF
chmod +x "$work/tree/build/release/sotto"
cd "$work/tree"
ran=0
while read -r name language _; do
  [ "$language" = sh ] || continue
  sed '/^\.\/scripts\//d' "$work/blocks/$name" >"$work/commands"
  [ -s "$work/commands" ] || continue
  if ! bash -eux "$work/commands" >"$work/output" 2>&1; then
    cat "$work/output" >&2
    exit 1
  fi
  ran=$((ran + 1))
done <"$work/blocks/index"
[ $ran -ge 2 ] || { echo "README.md has no commands left to run" >&2; exit 1; }

configs=0
for page in "$root"/docs/from-*.md; do
  rm -rf "$work/blocks"
  mkdir "$work/blocks"
  awk -v out="$work/blocks" -f "$root/tests/docs/blocks.awk" "$page"
  while read -r name language _; do
    [ "$language" = toml ] || continue
    cp "$work/blocks/$name" config.toml
    configs=$((configs + 1))
    if ! build/release/sotto run config.toml --quiet --out "from-$configs" >"$work/output" 2>&1; then
      echo "a config of $page does not run:" >&2
      cat "$work/output" >&2
      exit 1
    fi
  done <"$work/blocks/index"
done
[ $configs -ge 3 ] || { echo "the pages docs/from-*.md have no configs left to run" >&2; exit 1; }

# The table of commands names commands that there are.
while read -r command; do
  "$program" $command --help >/dev/null || { echo "README.md lists 'sotto $command', which is not there" >&2; exit 1; }
done < <(grep -oE '^\| `sotto [a-z]+' "$root/README.md" | sed 's/^| `sotto //' | sort -u)
echo "README: $ran blocks of commands run, and $configs configs of other pages"
