#!/usr/bin/env bash
# Measures a conversion against `cp` of the same weights in the same run, and its peak anonymous memory.
# usage: convert_against_cp.sh BITCONV CHECKPOINT_DIR [OUTTYPE]
set -euo pipefail
bitconv=$1 model=$2 outtype=${3:-i2_s}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

seconds() { # runs a command, prints the wall time
    local start end
    start=$(date +%s.%N)
    "$@" >/dev/null 2>&1
    end=$(date +%s.%N)
    awk -v a="$start" -v b="$end" 'BEGIN {printf "%.3f", b - a}'
}

copy() { cp "$model"/*.safetensors "$scratch/"; }
convert() { "$bitconv" convert "$model" --outtype "$outtype" --outfile "$scratch/out.gguf" --force; }

copy # warm the page cache
for round in 1 2 3; do
    rm -f "$scratch"/*
    c=$(seconds copy)
    rm -f "$scratch"/*
    t=$(seconds convert)
    awk -v r="$round" -v c="$c" -v t="$t" 'BEGIN {printf "round %d: cp %.3f s, convert %.3f s, ratio %.2f\n", r, c, t, t / c}'
done

# Peak of RssAnon while it runs, sampled.
"$bitconv" convert "$model" --outtype "$outtype" --outfile "$scratch/out.gguf" --force >/dev/null 2>&1 &
pid=$!
peak=0
while [ -e "/proc/$pid/status" ]; do
    now=$(awk '/^RssAnon:/ {print $2}' "/proc/$pid/status" 2>/dev/null || true)
    [ "${now:-0}" -gt "$peak" ] && peak=$now
    sleep 0.005
done
wait "$pid"
echo "peak anonymous memory (sampled): $((peak / 1024)) MiB"
