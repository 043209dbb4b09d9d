#!/usr/bin/env bash
# The NEON row of the kernels against the scalar one: cross-compiled, run under qemu-user. Skipped (77)
# where the cross compiler or the emulator is absent.
set -euo pipefail
cd "$BITCONV_SOURCE_DIR"

cc=aarch64-linux-gnu-gcc
for program in "$cc" qemu-aarch64; do
    command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for level in -O0 -O2; do
    "$cc" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror "$level" -ffp-contract=off \
        -Iinclude -Isrc -I. -Itests -o "$folder/kernels" \
        tests/cross/kernels_main.c tests/support/guard.c tests/support/kernel_compare.c \
        tests/support/kernel_compare_bitcos.c tests/support/kernel_compare_dot.c \
        src/quant/kernels_bitcos.c src/quant/kernels_t5.c src/quant/kernels_bitcos_neon.c \
        src/quant/kernels_dot.c src/quant/kernels_dot_digits.c src/quant/kernels_dot_neon.c \
        src/quant/kernels_tl.c src/quant/cpu.c src/quant/kernels.c src/quant/kernels_neon.c src/base/bytes.c -lm
    output=$(qemu-aarch64 -L /usr/aarch64-linux-gnu "$folder/kernels") || { echo "$level: $output"; exit 1; }
    grep -qx 'row neon equals scalar' <<<"$output" || { echo "$level: the row did not run: $output"; exit 1; }
done
echo "the NEON row equals the scalar one at -O0 and -O2"
