#!/usr/bin/env bash
# Measures the kernels that codegen writes, for the shapes of published models, against plain C and
# against memcpy of the same packed bytes in the same run.
# usage: codegen_gemv.sh BITCONV [COMPILER [FLAGS...]]
set -euo pipefail
bitconv=$1 cc=${2:-cc}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- -O2 -march=native
shapes="1536x1536 3200x3200 3200x8640 2560x2560 6912x2560 4096x14336"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$bitconv" codegen --shapes "${shapes// /,}" -o "$scratch" --quiet
"$cc" -std=c11 "$@" -I"$scratch" -o "$scratch/bench" "$(dirname "$0")/../codegen/kernels_bench.c"
for shape in $shapes; do
    "$scratch/bench" "${shape%x*}" "${shape#*x}"
done
