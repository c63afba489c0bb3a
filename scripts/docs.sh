#!/usr/bin/env bash
# Builds docs/ as a site, strictly: a broken link, or anything that a page would fetch from elsewhere, is an error.
# Usage: scripts/docs.sh [FOLDER] (default: build/site), or scripts/docs.sh --serve to read it while writing.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mkdocs >/dev/null || { echo "docs.sh: mkdocs is missing; scripts/setup.sh installs it" >&2; exit 2; }
if [ "${1:-}" = --serve ]; then exec mkdocs serve --strict; fi
site=$(realpath -m "${1:-build/site}")
mkdocs build --strict --quiet --clean --site-dir "$site"

fetched=$(grep -rnoE '<(script|link|img|iframe|source)[^>]* (src|href)="(https?:)?//[^"]*"' "$site" --include='*.html' || true)
fetched+=$(grep -rnoE '(url\(|@import )["'\'']?(https?:)?//[^)"'\'' ]*' "$site" --include='*.html' --include='*.css' || true)
if [ -n "$fetched" ]; then
  echo "docs.sh: pages must not fetch anything from elsewhere:" >&2
  echo "$fetched" >&2
  exit 1
fi
echo "$site/index.html"
