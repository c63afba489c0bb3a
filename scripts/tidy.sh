#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy. Usage: scripts/tidy.sh [SECONDS] [FILE…]
#
# clang-tidy walks libtorch's headers again for every file that includes them: 10 to 40 seconds each. So files that were found clean
# are remembered (by the content of file, header and checks), and after SECONDS (default 180; 0 = no limit) the rest is left for the
# next run.
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${1:-180}
shift || true
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sotto-tidy
mkdir -p "$cache"

flags=(-std=c++20 -Isrc -Iinclude -isystem /usr/include/torch/csrc/api/include -D_GLIBCXX_USE_CXX11_ABI=1 -DFMT_SHARED -DSPDLOG_COMPILED_LIB
       -DSPDLOG_FMT_EXTERNAL -DSPDLOG_SHARED_LIB "-DSOTTO_VERSION=\"\"" "-DSOTTO_LIBEXEC=\"\"" -w)
for package in cairo libturbojpeg libutf8proc freetype2; do
  read -ra more < <(pkg-config --cflags "$package") && flags+=("${more[@]}")
done
for folder in $(command -v mpicc >/dev/null && mpicc --showme:incdirs); do flags+=(-isystem "$folder"); done
# What the build generates, so that files which include it can be checked before there is a build.
mkdir -p "$cache/generated"
protoc --proto_path=src --cpp_out="$cache/generated" src/artifacts/events.proto
protoc --proto_path=src --cpp_out="$cache/generated" --grpc_out="$cache/generated" \
  --plugin=protoc-gen-grpc="$(command -v grpc_cpp_plugin)" src/remote/federation.proto
flags+=(-isystem "$cache/generated")
# clang 14 rejects a few lines of libtorch 1.13 in C++20 mode; nothing of ours depends on them.
flags+=(-ferror-limit=0)

key_of() { cat .clang-tidy "$1" "${1%.cc}.h" 2>/dev/null | sha256sum | cut -c1-40; }

check() {
  local out
  out=$(clang-tidy --quiet "$1" -- "${flags[@]}" 2>/dev/null | grep -E "^[^ ]*src/.*(warning|error):" || true)
  if [ -n "$out" ]; then echo "$out" >&2; return 1; fi
  touch "$cache/$(key_of "$1")"
}

if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files 'src/*.cc' | grep -v /kernels_); fi
open=()
for file in "${files[@]}"; do [ -e "$cache/$(key_of "$file")" ] || open+=("$file"); done

failed=0 running=0 checked=0
for file in "${open[@]}"; do
  [ "$budget" -eq 0 ] || [ $SECONDS -lt "$budget" ] || break
  check "$file" &
  running=$((running + 1)) checked=$((checked + 1))
  if [ $running -ge "$(nproc)" ]; then wait -n || failed=1; running=$((running - 1)); fi
done
while [ $running -gt 0 ]; do wait -n || failed=1; running=$((running - 1)); done
echo "tidy: $checked checked, $((${#files[@]} - ${#open[@]})) known clean, $((${#open[@]} - checked)) left for the next run"
exit $failed
