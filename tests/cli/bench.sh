#!/usr/bin/env bash
# bench --pack from outside: widths, the three formats for programs, refusals.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
small="--rows 256 --cols 1024 -r 2"

# shellcheck disable=SC2086
expect 0 "$BITCONV_BIN" bench --pack $small
awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' "$scratch/out" || fail "wider than 80 columns"
for pack in $("$BITCONV_BIN" formats --packs --json | sed -n 's/^ *"name": "\(.*\)",*/\1/p'); do
    "$BITCONV_BIN" formats --packs | grep -q "^$pack .* yes " || continue
    prints "$pack "
done
expect 0 "$BITCONV_BIN" bench --pack i2_s bitcos $small -t 2 --zeros 0.5 --json
python3 - "$scratch/out" <<'PY' || fail "the JSON of bench --pack is not as promised"
import json, sys
bench = json.load(open(sys.argv[1]))
assert (bench["rows"], bench["cols"], bench["zeros"], bench["repetitions"]) == (256, 1024, 0.5, 2)
assert bench["memcpy_bytes_per_second"] > 0 and 1 <= bench["threads"] <= 2
i2_s, bitcos = bench["packs"]
assert i2_s["name"] == "i2_s" and i2_s["bits_per_weight"] == 2 + 32 * 8 / (256 * 1024) and i2_s["misfit"] is None
assert bitcos["name"] == "bitcos" and 1.5 < bitcos["bits_per_weight"] < 1.52
for pack in bench["packs"]:
    for operation in "pack", "unpack", "gemv":
        rate = pack[operation]
        share = rate["weights_per_second"] / bench["memcpy_bytes_per_second"]
        assert rate["weights_per_second"] > 0 and abs(rate["share_of_memcpy"] - share) <= 1e-9 * share
PY
expect 0 "$BITCONV_BIN" bench --pack t5 $small --output csv --cpu scalar
python3 - "$scratch/out" <<'PY' || fail "the CSV of bench --pack is not as promised"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == 1 and rows[0]["pack"] == "t5" and rows[0]["cpu"] == "scalar" and rows[0]["threads"] == "1"
assert all(float(rows[0][k]) > 0 for k in ("pack_per_s", "unpack_per_s", "gemv_per_s", "memcpy_per_s"))
PY
expect 0 "$BITCONV_BIN" bench --pack tl1 $small --output md
prints "| tl1 | 2.00"

# A pack that cannot hold the matrix says why; the others are measured.
expect 0 "$BITCONV_BIN" bench --pack i2_s t5 --rows 3 --cols 100
prints "are left over"
prints "t5 "

expect 2 "$BITCONV_BIN" bench
one_line
expect 2 "$BITCONV_BIN" bench --pack q9_9
says "'q9_9' is no ternary pack"
expect 2 "$BITCONV_BIN" bench --pack --zeros 50
says "0 to 1"
expect 2 "$BITCONV_BIN" bench --pack --output xml
says "md, csv or json"
expect 2 "$BITCONV_BIN" bench --pack --cols 9000000
says "columns go up to"
one_line
expect 2 "$BITCONV_BIN" bench --pack --cpu mmx
one_line
finish
