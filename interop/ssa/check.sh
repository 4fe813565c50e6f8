#!/usr/bin/env bash
# Records all kept histories again, which must change nothing, and replays random ones made of the seed.
set -euo pipefail
cd "$(dirname "$0")"
data=../../crates/apiserver/testdata/apply
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
go build -o "$work/record" .
for file in "$data"/*.json; do
    "$work/record" < "$file" | diff "$file" -
done
"$work/record" -random 300 -seed "${1:-1}" > "$work/random.json"
# The whole workspace, because one crate alone would be built again with other features.
APPLY_RECORDED="$work/random.json" cargo test --quiet --workspace --lib replay_tests
