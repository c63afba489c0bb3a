#!/usr/bin/env bash
# The files that a reader of docs/tutorial.md has after its last section, for the build to compile.
# Usage: tutorial_sources.sh SOTTO_SOURCES OUT
#
# OUT gets copies of the files that the page edits, the files whose blocks have a title, and the page's edits (the blocks
# of sed commands).
set -euo pipefail
root=$1 out=$2
rm -rf "$out"
mkdir -p "$out/blocks" "$out/src/methods"
cp "$root"/src/methods/{catalogue.cc,CMakeLists.txt} "$out/src/methods/"
awk -v out="$out/blocks" -f "$root/tests/docs/blocks.awk" "$root/docs/tutorial.md"
cd "$out"
while read -r name language path; do
  if [ "$path" != - ]; then
    cp "blocks/$name" "$path"
  elif [ "$language" = sh ] && grep -q '^sed -i' "blocks/$name"; then
    bash -eu "blocks/$name"
  fi
done <blocks/index
