#!/usr/bin/env bash
# Debian packages of the program, the library, its headers and the Python package, in build/package/packages.
#   scripts/package.sh              builds them
#   scripts/package.sh --try        and installs them into a fresh Debian 12, where they are used; needs root and a Debian mirror
#   scripts/package.sh --try DIR    the same with packages that are there already
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$PWD/build/package/packages
try=false
if [ "${1:-}" = --try ]; then try=true; shift; fi

if [ $# -gt 0 ]; then
  packages=$(realpath "$1")
else
  cmake --preset package -G Ninja
  cmake --build build/package
  rm -rf "$packages"
  (cd build/package && cpack)
fi
ls "$packages"/*.deb
contents=$(mktemp -d)
for package in "$packages"/*.deb; do dpkg-deb -x "$package" "$contents"; done
named=$(grep -rlF -e "$PWD" "$contents" || true)
rm -rf "$contents"
if [ -n "$named" ]; then
  echo "package.sh: these files of the packages name the folder that they were built in: ${named//$contents/}" >&2
  exit 1
fi
$try || exit 0

why=
[ "$(id -u)" -eq 0 ] || why="it needs root"
command -v debootstrap >/dev/null || why="debootstrap is not installed"
root=$(mktemp -d "${TMPDIR:-/tmp}/sotto-package.XXXXXX")
cleanup() {
  mountpoint -q "$root/proc" && umount "$root/proc"
  rm -rf --one-file-system "$root"
}
trap cleanup EXIT
if [ -z "$why" ] && ! debootstrap --variant=minbase bookworm "$root" >"$root.log" 2>&1; then
  why="debootstrap found no Debian mirror (see $root.log)"
fi
if [ -n "$why" ]; then
  echo "skipped: the packages were not tried in a fresh Debian: $why" >&2
  exit 77
fi
rm -f "$root.log"

# As this machine reaches its mirror.
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
mount -t proc proc "$root/proc"
mkdir -p "$root/packages" "$root/examples" "$root/try"
cp "$packages"/*.deb "$root/packages/"
cp -a examples/embed "$root/examples/"

inside() { chroot "$root" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/try LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
install() {
  inside sh -c "apt-get install -y -qq --no-install-recommends $*" >"$root/apt.log" 2>&1 || { cat "$root/apt.log" >&2; exit 1; }
}
inside apt-get update -qq 2>/dev/null
install '/packages/sotto_*.deb'
echo "installed: $(inside sotto --version)"
cat >"$root/try/private.toml" <<'TOML'
rounds = 2
[data]
name = "synthetic-digits"
limit = 400
clients = 4
[model]
name = "logistic"
[method]
name = "ldp-fedavg"
[privacy]
epsilon = 4
delta = 1e-5
adjacency = "zero-out"
noise = "secure"
TOML
inside sotto run /try/private.toml --out /try/run --quiet
inside sotto ledger verify /try/run

if ls "$packages"/python3-sotto_*.deb >/dev/null 2>&1; then
  install '/packages/python3-sotto_*.deb'
  inside python3 -c 'import sotto; print("Python: ε", sotto.account(noise_multiplier=1.0, steps=100, sampling_rate=0.01, delta=1e-5, adjacency="add-remove").epsilon)'
fi

# From here on it is a programmer's machine.
install 'g++ cmake make /packages/libsotto*.deb'
inside cmake -S /examples/embed -B /try/embed -DCMAKE_BUILD_TYPE=Release >/dev/null
inside cmake --build /try/embed >/dev/null
inside /try/embed/embed /try/private.toml /try/embedded method.name=noisy-updates privacy.adjacency=replace
inside /try/embed/guard /try/home
echo "the packages install on a fresh Debian 12 and run"
