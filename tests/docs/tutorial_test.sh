#!/usr/bin/env bash
# Runs every command of docs/tutorial.md, in order, in one shell and in a copy of the source tree; then compares what the
# page shows with what was printed. Usage: tutorial_test.sh SOTTO_SOURCES PROGRAM TUTORIAL_PROGRAM TUTORIAL_SOURCES WORK
#
# Two things are stood in for: installing packages, and building. PROGRAM is what the reader would have built, and
# TUTORIAL_PROGRAM what they would have built after the page's edits: the build made it of TUTORIAL_SOURCES, and the
# stand-in refuses to hand it out unless those are the files that the commands have left behind.
set -euo pipefail
root=$1 program=$2 tutorial_program=$3 tutorial_sources=$4 work=$5

rm -rf "$work"
mkdir -p "$work/blocks" "$work/tree/build/release"
awk -v out="$work/blocks" -f "$root/tests/docs/blocks.awk" "$root/docs/tutorial.md"
cp -r "$root"/{scripts,examples,src,docs} "$work/tree/"
printf '#!/bin/sh\n' >"$work/tree/scripts/setup.sh"
cat >"$work/tree/scripts/build.sh" <<EOF
#!/bin/sh
set -e
if ! cmp -s src/methods/catalogue.cc '$root/src/methods/catalogue.cc'; then
  for file in \$(cd '$tutorial_sources' && find src -type f); do cmp "\$file" '$tutorial_sources'/"\$file"; done
  ln -sf '$tutorial_program' build/release/sotto
else
  ln -sf '$program' build/release/sotto
fi
EOF

{
  echo 'set -eu'
  echo "cd '$work/tree'"
  while read -r name language path; do
    if [ "$path" != - ]; then
      echo "cp '$work/blocks/$name' '$path'"
    elif [ "$language" = sh ]; then
      echo "exec >'$work/blocks/$name.out' 2>&1"
      cat "$work/blocks/$name"
    fi
  done <"$work/blocks/index"
} >"$work/commands"

if ! SOTTO_HOME="$work/home" bash "$work/commands"; then
  last=$(find "$work/blocks" -name '*.out' | sort | tail -1)
  echo "a command of docs/tutorial.md failed:" >&2
  cat "${last%.out}" "$last" >&2
  exit 1
fi

# A shown line must have been printed, in this order; a line of … stands for any that were left out. Times and speeds
# are the machine's own and may be any number, accuracies may differ a little from one processor to the next.
awk_compare='
function shape(line) { gsub(/[0-9]+(\.[0-9]+)?(e-?[0-9]+)?/, "#", line); gsub(/[ ]+/, " ", line); gsub(/(─)+/, "─", line); sub(/ $/, "", line); return line }
function percent(line) { return match(line, /^accuracy +[0-9.]+/) ? substr(line, RSTART + 8, RLENGTH - 8) + 0 : -1 }
NR == FNR { printed[++lines] = $0; next }
$0 == "…" || $0 == "" { next }
{
  wanted = shape($0)
  for (found = 0; at < lines && !found;) {
    ++at
    found = shape(printed[at]) == wanted
  }
  if (!found) { print "not printed: " $0; bad = 1; exit }
  shown = percent($0); real = percent(printed[at])
  if (shown >= 0 && (shown - real > 3 || real - shown > 3)) { print "shown: " $0 "\nprinted: " printed[at]; bad = 1; exit }
}
END { exit bad }'
failed=0 compared=0 last=
while read -r name language path; do
  if [ "$language" = sh ]; then last=$name; fi
  if [ "$language" = text ]; then
    compared=$((compared + 1))
    tr '\r' '\n' <"$work/blocks/$last.out" >"$work/blocks/$last.lines"
    if ! awk "$awk_compare" "$work/blocks/$last.lines" "$work/blocks/$name" >&2; then
      echo "… by this command of docs/tutorial.md:" >&2
      cat "$work/blocks/$last" >&2
      failed=1
    fi
  fi
done <"$work/blocks/index"
echo "tutorial: $(find "$work/blocks" -name '*.out' | wc -l) blocks of commands run, $compared outputs compared"
exit $failed
