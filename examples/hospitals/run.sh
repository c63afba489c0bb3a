#!/usr/bin/env bash
# One server and four hospitals on this machine, over TLS, privately: each process knows its own folder and nothing else.
#
#   examples/hospitals/run.sh [DIR]       DIR is made, and holds server/ and hospital-{1..4}/ afterwards
#
# Ends with what each hospital's model achieves on its own records, and with all five ledgers verified.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
sotto=${SOTTO:-$here/../../build/release/sotto}
[ -x "$sotto" ] || sotto=$(command -v sotto) || { echo "run.sh: build sotto first, or set SOTTO" >&2; exit 2; }
dir=${1:-runs/hospitals}
[ -e "$dir" ] && { echo "run.sh: $dir exists already; name another folder" >&2; exit 2; }
"$sotto" data show heart-disease >/dev/null || exit 2

mkdir -p "$dir"
"$sotto" certs init "$dir/certs" --name hospitals --host localhost >/dev/null
pids=()
stop() { kill "${pids[@]}" 2>/dev/null || true; }
trap stop EXIT

"$sotto" serve "$here/federation.toml" --folder "$dir/server" --certs "$dir/certs" --listen localhost:0 --linger 30 \
  >"$dir/server.log" 2>&1 &
server=$!
pids+=("$server")
for _ in $(seq 300); do
  port=$(sed -n 's/.*listening on port \([0-9]*\).*/\1/p' "$dir/server.log")
  [ -n "$port" ] && break
  kill -0 "$server" 2>/dev/null || { cat "$dir/server.log" >&2; exit 2; }
  sleep 0.1
done

hospital=0
members=()
for place in cleveland hungarian switzerland va; do
  hospital=$((hospital + 1))
  home=$dir/hospital-$hospital
  mkdir -p "$home"
  sed -e "s/PLACE/$place/" -e "s/HOSPITAL/hospital-$hospital/" -e "s/PORT/$port/" "$here/policy.toml" >"$home/policy.toml"
  # The key is made at the hospital and stays there; only the request and the certificate travel.
  "$sotto" enrol "$home" --name "hospital-$hospital" --request "$home/request.csr" >/dev/null
  "$sotto" certs issue "$dir/certs" "$home/request.csr" --name "hospital-$hospital" --out "$home/issued.pem" >/dev/null
  "$sotto" enrol "$home" --certificate "$home/issued.pem" --authority "$dir/certs/authority.pem" >/dev/null
  rm "$home/issued.pem" "$home/request.csr"
  "$sotto" join "$home" --yes >"$dir/hospital-$hospital.log" 2>&1 &
  members+=("$!")
  pids+=("$!")
done

for member in "${members[@]}" "$server"; do
  wait "$member" || { tail -n 3 "$dir"/*.log >&2; exit 1; }
done
trap - EXIT

for hospital in 1 2 3 4; do
  echo "hospital-$hospital"
  tail -n 4 "$dir/hospital-$hospital.log" | sed 's/^/  /'
  printf '  ledger           '
  "$sotto" ledger verify "$dir/hospital-$hospital"
done
printf 'server\n  ledger           '
"$sotto" ledger verify "$dir/server"
