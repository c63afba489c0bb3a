#!/usr/bin/env bash
# The site builds; and it does not where a link leads nowhere or a page fetches something. Usage: site_test.sh SOTTO_SOURCES WORK
set -euo pipefail
root=$1 work=$2
rm -rf "$work"
mkdir -p "$work/tree/scripts"
cp -r "$root/docs" "$root/mkdocs.yml" "$work/tree/"
cp "$root/scripts/docs.sh" "$work/tree/scripts/"
cd "$work/tree"

scripts/docs.sh site
for page in docs/*.md docs/*/*.md; do
  html=site/${page#docs/}
  [ -s "${html%.md}.html" ] || { echo "$page is not on the site" >&2; exit 1; }
  grep -qE "(: |- )${page#docs/}\$" mkdocs.yml || { echo "$page is not in the nav of mkdocs.yml" >&2; exit 1; }
done
for term in 'prefers-color-scheme: dark' 'data-md-color-scheme="slate"'; do
  grep -q "$term" site/index.html || { echo "no dark scheme on the pages" >&2; exit 1; }
done

refuses() {
  cp -r docs kept
  printf '\n%s\n' "$2" >>docs/privacy.md
  if scripts/docs.sh site >/dev/null 2>&1; then echo "the site was built although $1" >&2; exit 1; fi
  rm -r docs
  mv kept docs
}
refuses "a link leads nowhere" '[nowhere](nowhere.md)'
refuses "a page fetches a picture" '![elsewhere](https://example.org/picture.png)'
refuses "a page fetches a script" '<script src="//example.org/script.js"></script>'
scripts/docs.sh site >/dev/null
