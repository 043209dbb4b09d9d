#!/usr/bin/env bash
# The NEON kernels that codegen writes: cross-compiled, run under qemu-user over the library's own packed
# bytes. Skipped (77) where the cross compiler or the emulator is absent.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
source "$BITCONV_SOURCE_DIR/tests/codegen/lib.inc"
cc=aarch64-linux-gnu-gcc
for program in "$cc" qemu-aarch64; do
    command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
done
make_kernels tl1 "$tl1_shapes"
make_kernels tl2 "$tl2_shapes"
for level in -O0 -O2; do
    run_kernels tl1 neon "qemu-aarch64 -L /usr/aarch64-linux-gnu" "$cc" "$level"
done
run_kernels tl2 plain "qemu-aarch64 -L /usr/aarch64-linux-gnu" "$cc" -O2
finish
