#!/usr/bin/env bash
# clang-tidy over src/, with the checks of .clang-tidy. libtorch's headers are parsed once, into a clang precompiled header; a file whose
# content, headers and checks have not changed since it was last found clean is not parsed again (build/tidy).
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${SOTTO_TIDY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sotto-tidy}
mkdir -p build/tidy "$cache"
scripts/build.sh release help >/dev/null 2>&1 || true
[ -f build/release/compile_commands.json ] || cmake --preset release >/dev/null

# The flags of any of our files, less gcc's precompiled header and what clang does not know.
flags=(-std=c++20 -Isrc -isystem /usr/include/torch/csrc/api/include -D_GLIBCXX_USE_CXX11_ABI=1 -DFMT_SHARED -DSPDLOG_COMPILED_LIB
       -DSPDLOG_FMT_EXTERNAL -DSPDLOG_SHARED_LIB -DSOTTO_VERSION='""' -w)
for package in cairo libturbojpeg libutf8proc; do read -ra more < <(pkg-config --cflags "$package"); flags+=("${more[@]}"); done
# clang 14 rejects a few lines of libtorch 1.13 in C++20 mode; nothing of ours depends on them.
tolerant=(-Xclang -fallow-pch-with-compiler-errors)
pch=build/tidy/precompiled.pch
if [ ! -f $pch ] || [ src/precompiled.h -nt $pch ]; then
  clang++ -x c++-header "${flags[@]}" "${tolerant[@]}" src/precompiled.h -o $pch 2>/dev/null || true
fi

check() {
  file=$1
  key=$( { cat .clang-tidy "$file"; find src -name '*.h' -print0 | sort -z | xargs -0 cat; } | sha256sum | cut -c1-40)
  [ -e "$cache/$key" ] && return 0
  out=$(clang-tidy --quiet "$file" -- "${flags[@]}" "${tolerant[@]}" -include-pch $pch 2>/dev/null | grep -E '^[^ ]*/?src/.*(warning|error):' || true)
  if [ -n "$out" ]; then echo "$out"; return 1; fi
  touch "$cache/$key"
}
failed=0
mapfile -t files < <(git ls-files --cached --others --exclude-standard 'src/*.cc' | grep -v 'kernels_')
running=0
for file in "${files[@]}"; do
  check "$file" &
  running=$((running + 1))
  if [ $running -ge "$(nproc)" ]; then wait -n || failed=1; running=$((running - 1)); fi
done
while [ $running -gt 0 ]; do wait -n || failed=1; running=$((running - 1)); done
exit $failed
