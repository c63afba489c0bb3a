#!/usr/bin/env bash
# Installs what building, testing and running Sotto needs on Debian 12. Installs only what is missing; says nothing if all is there.
set -euo pipefail

packages=(
  # build
  g++ cmake ninja-build ccache pkg-config git python3
  # libraries (docs/dependencies.md says what each is for)
  libtorch-dev libopenblas-openmp-dev libcli11-dev libtomlplusplus-dev libfmt-dev libspdlog-dev nlohmann-json3-dev
  libsqlite3-dev libssl-dev zlib1g-dev libpng-dev libturbojpeg0-dev libarchive-dev libcairo2-dev libfreetype-dev libutf8proc-dev libcsv-dev
  libboost-math-dev libfftw3-dev libprotobuf-dev protobuf-compiler libgrpc++-dev protobuf-compiler-grpc prometheus-cpp-dev libcpp-httplib-dev
  # the Python package
  python3-dev pybind11-dev python3-numpy
  # one federation over several machines; sotto builds and runs without it
  libopenmpi-dev openmpi-bin
  # tests, benchmarks, lint
  libgtest-dev libgmock-dev libbenchmark-dev clang-format clang-tidy clang chromium
  python3-torch python3-torchvision python3-pandas
  # packages, and a fresh Debian to try them in
  dpkg-dev debootstrap
  # the documentation as a site
  mkdocs mkdocs-material
  # data that every machine can have
  dataset-fashion-mnist fonts-dejavu-core
)
# node bundles the report's page and drives the browser tests; one that is there already, from wherever, stays.
command -v npm >/dev/null || packages+=(nodejs npm)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}" >&2
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh: run this as root, or install sudo: apt-get install ${missing[*]}" >&2; exit 2; }
  sudo=(sudo)
fi
"${sudo[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
