#!/usr/bin/env bash
# SIGKILL, SIGINT and SIGTERM in the middle of a conversion: the old output stays, nothing else is left.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"

python3 "$BITCONV_SOURCE_DIR/tests/cli/big_checkpoint.py" "$models/llama-ternary" "$scratch/big" 1000000
mkdir "$scratch/dir"
out=$scratch/dir/model.gguf

# Runs the conversion and sends SIGNAL after DELAY seconds; sets `status`.
interrupt() {
    local signal=$1 delay=$2
    "$BITCONV_BIN" convert "$scratch/big" --outtype f16 --outfile "$out" --force >"$scratch/log" 2>&1 &
    local pid=$!
    sleep "$delay"
    kill -s "$signal" "$pid" 2>/dev/null || true
    status=0
    wait "$pid" || status=$?
}

for case in KILL:137 INT:130 TERM:143; do
    signal=${case%:*}
    wanted=${case#*:}
    caught=0
    for delay in 0.05 0.1 0.2 0.4 0.8; do
        echo "old content" >"$out"
        interrupt "$signal" "$delay"
        # Too early (a shell starts background jobs with SIGINT ignored until the tool catches it) or too late.
        [ "$status" != 0 ] || continue
        [ "$status" = "$wanted" ] || { fail "SIG$signal after $delay s: exit $status"; cat "$scratch/log"; }
        caught=$((caught + 1))
        [ "$(cat "$out")" = "old content" ] || fail "SIG$signal after $delay s: the old output is gone"
        no_litter "$scratch/dir" model.gguf
    done
    [ "$caught" -gt 0 ] || fail "SIG$signal never came in time"
    # Without an old output there is none afterwards.
    rm -f "$out"
    interrupt "$signal" 0.05
    [ "$status" = 0 ] || no_litter "$scratch/dir"
    rm -f "$out"
done
finish
