#!/usr/bin/env bash
# Every page is listed in docs/index.md and in the nav of mkdocs.yml, and every relative link of every page leads to a
# file, and to a heading if it names one. Usage: links_test.sh SOTTO_SOURCES
set -euo pipefail
cd "$1"
failed=0
complain() { echo "$1" >&2; failed=1; }

pages=$(cd docs && find . -name '*.md' | sed 's|^\./||' | sort)
for page in $pages; do
  [ "$page" = index.md ] || grep -qF "]($page" docs/index.md || complain "docs/$page is not listed in docs/index.md"
  grep -qE "(: |- )$page\$" mkdocs.yml || complain "docs/$page is not in the nav of mkdocs.yml"
done

# Headings as anchors, in the way of GitHub and mkdocs: lower case, letters and digits, hyphens for spaces.
anchors() {
  grep -E '^#+ ' "$1" | sed -E 's/^#+ +//; s/`//g; s/\[([^]]*)\]\([^)]*\)/\1/g' | tr '[:upper:]' '[:lower:]' |
    sed -E 's/[^[:alnum:] _-]//g; s/ +/-/g'
}

links=0
for page in README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md $(echo "$pages" | sed 's|^|docs/|'); do
  while read -r link; do
    case $link in '' | http://* | https://* | mailto:*) continue ;; esac
    links=$((links + 1))
    file=${link%%#*}
    anchor=
    [ "$link" = "$file" ] || anchor=${link#*#}
    target=$page
    [ -z "$file" ] || target=$(dirname "$page")/$file
    if [ ! -e "$target" ]; then
      complain "$page links to $link, which is not there"
    elif [ -n "$anchor" ] && ! anchors "$target" | grep -qxF "$anchor"; then
      complain "$page links to $link, and $target has no such heading"
    fi
  done < <(awk '/^```/ { code = !code } !code' "$page" | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(//; s/\)$//')
done
[ $links -ge 100 ] || complain "only $links links found: is this the documentation?"
echo "links: $links"
exit $failed
