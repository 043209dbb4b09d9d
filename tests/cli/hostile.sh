#!/usr/bin/env bash
# Every file of the hostile collection against its verdict, for inspect and verify, as text and as JSON: ok is
# exit 0; fail is another exit with one clear line on stderr. Never a signal, never an escape byte, never slow.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
hostile=$BITCONV_SHARED/golden/hostile
[ -e "$hostile/verdicts.tsv" ] || { echo "skipped: no $hostile"; exit 77; }

judge() {
    local wanted=$1 got=0 start end
    shift
    start=$(date +%s%N)
    timeout 20 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || got=$?
    end=$(date +%s%N)
    [ "$got" -lt 3 ] || fail "exit $got: $*"
    # Sanitized builds take their time to start.
    [ $(((end - start) / 1000000)) -lt 3000 ] || fail "slow: $*"
    ! LC_ALL=C grep -q $'\x1b' "$scratch/out" "$scratch/err" || fail "an escape byte: $*"
    case $wanted in
    ok)
        [ "$got" = 0 ] || { fail "exit $got instead of 0: $*"; cat "$scratch/err"; }
        [ ! -s "$scratch/err" ] || { fail "stderr of a good file: $*"; cat "$scratch/err"; }
        ;;
    fail)
        [ "$got" != 0 ] || fail "exit 0: $*"
        one_line
        ;;
    either) ;;
    *) fail "unknown verdict '$wanted'" ;;
    esac
}

n=0
while IFS=$'\t' read -r file inspect verify note; do
    [ "$file" != file ] || continue
    judge "$inspect" "$BITCONV_BIN" inspect "$hostile/$file"
    judge "$inspect" "$BITCONV_BIN" inspect --stats --hash "$hostile/$file"
    judge "$inspect" "$BITCONV_BIN" inspect --json "$hostile/$file"
    [ "$inspect" != ok ] || python3 -m json.tool "$scratch/out" >/dev/null || fail "no JSON: $file"
    judge "$verify" "$BITCONV_BIN" verify "$hostile/$file"
    judge "$verify" "$BITCONV_BIN" verify --json "$hostile/$file"
    [ "$verify" != ok ] || python3 -m json.tool "$scratch/out" >/dev/null || fail "no JSON: $file"
    n=$((n + 1))
done <"$hostile/verdicts.tsv"
[ "$n" -ge 57 ] || fail "only $n files were judged"

# What the notes of the collection ask for.
expect 2 "$BITCONV_BIN" verify "$hostile/s01_lfs_pointer.safetensors"
says "Git LFS pointer"
expect 2 "$BITCONV_BIN" inspect "$hostile/g31_big_endian.gguf"
says "big-endian"
expect 1 "$BITCONV_BIN" verify "$hostile/g50_i2s_code3.gguf"
says "code 3"
says "offset 160, row 0, column 0"
expect 0 "$BITCONV_BIN" inspect "$hostile/g50_i2s_all_minus1.gguf"
prints "every trit is -1"
expect 0 "$BITCONV_BIN" inspect "$hostile/g50_i2s_ok_zero.gguf"
prints "every trit is 0"
expect 1 "$BITCONV_BIN" verify "$hostile/g50_i2s_scale_0.gguf"
says "the scale of slice 0 is 0 with 96 non-zero trits"
finish
