#!/usr/bin/env bash
# From a fresh machine to a trained federation: installs, builds, and runs the first example on real images.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
scripts/build.sh release sotto
out=${1:-runs/demo}
if [ -e "$out" ]; then
  build/release/sotto run examples/1_first_federation.toml --out "$out" --resume
else
  build/release/sotto run examples/1_first_federation.toml --out "$out"
fi
echo
echo "Next: build/release/sotto predict $out --test 5      what the trained model says of five test images"
echo "      build/release/sotto plan examples/2_label_skew.toml   what a run would do, without doing it"
echo "      $out/partition.png                             who holds which classes"
