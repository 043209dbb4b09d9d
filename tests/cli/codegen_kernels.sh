#!/usr/bin/env bash
# The kernels that codegen writes, compiled by this machine's compilers without a warning and run over
# the library's own packed bytes: every integer and float as defined. Skipped (77) without a compiler.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
source "$BITCONV_SOURCE_DIR/tests/codegen/lib.inc"
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$BITCONV_BUILD_DIR/CMakeCache.txt")
command -v "$cc" >/dev/null || { echo "skipped: no C compiler"; exit 77; }
make_kernels tl1 "$tl1_shapes"
make_kernels tl2 "$tl2_shapes"

compilers=$cc
for other in gcc clang; do
    command -v "$other" >/dev/null && [ "$(readlink -f "$(command -v "$other")")" != "$(readlink -f "$(command -v "$cc")")" ] &&
        compilers="$compilers $other"
done
for compiler in $compilers; do
    run_kernels tl1 plain "" "$compiler" -O2 -DBITCONV_TL_PLAIN_C
    run_kernels tl2 plain "" "$compiler" -O2 -DBITCONV_TL_PLAIN_C
    if grep -qw avx2 /proc/cpuinfo 2>/dev/null; then
        run_kernels tl2 avx2 "" "$compiler" -O0 -mavx2
        run_kernels tl2 avx2 "" "$compiler" -O3 -march=native
    fi
done
# No byte outside of the tensor, no undefined arithmetic.
sanitize="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
echo 'int main(void) { return 0; }' >"$scratch/empty.c"
# shellcheck disable=SC2086
if "$cc" $sanitize -o "$scratch/empty" "$scratch/empty.c" 2>/dev/null && "$scratch/empty"; then
    run_kernels tl1 plain "" "$cc" $sanitize -DBITCONV_TL_PLAIN_C
    ! grep -qw avx2 /proc/cpuinfo 2>/dev/null || run_kernels tl2 avx2 "" "$cc" $sanitize -mavx2
fi
# Two translation units may include it, and C++ takes it.
for pack in tl1 tl2; do
    if command -v g++ >/dev/null; then
        printf '#include "bitconv_tl_kernels.h"\nint main() { return bitconv_%s_find(1, 1) != nullptr; }\n' $pack >"$scratch/c.cc"
        expect 0 g++ -Wall -Wextra -Wpedantic -Wconversion -Werror -I"$scratch/$pack" -o "$scratch/cc" "$scratch/c.cc"
        expect 0 "$scratch/cc"
    fi
done
finish
