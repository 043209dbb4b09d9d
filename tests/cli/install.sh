#!/usr/bin/env bash
# cmake --install to a folder of one's own: the tool runs, and a program builds against both libraries through
# pkg-config and through the CMake package.
source "$BITCONV_SOURCE_DIR/tests/cli/lib.inc"
if grep -q '^BITCONV_SANITIZE:[A-Z]*=ON' "$BITCONV_BUILD_DIR/CMakeCache.txt"; then
    echo "skipped: sanitized libraries are not for installing"
    exit 77
fi
expect 0 cmake --install "$BITCONV_BUILD_DIR" --prefix "$scratch/prefix"
mkdir "$scratch/program"
cat >"$scratch/program/main.c" <<'C'
#include <bitconv/bitconv.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct bitconv_error err = {0};
    struct bitconv_gguf *file = NULL;
    if (argc != 2 || bitconv_gguf_open(argv[1], &file, &err) != BITCONV_OK) return 1;
    printf("%s %zu tensors\n", bitconv_version(), bitconv_gguf_n_tensors(file));
    bitconv_gguf_close(file);
    return 0;
}
C
cat >"$scratch/program/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.22)
project(program C)
find_package(bitconv REQUIRED)
foreach(kind shared static)
    add_executable(program_${kind} main.c)
    target_link_libraries(program_${kind} PRIVATE bitconv::${kind})
endforeach()
C
expect 0 "$scratch/prefix/bin/bitconv" convert "$models/bitnet" --outtype i2_s --outfile "$scratch/model.gguf"
prefix_lib=$(dirname "$(find "$scratch/prefix" -name libbitconv.a)")
export PKG_CONFIG_PATH="$prefix_lib/pkgconfig"
# shellcheck disable=SC2046
expect 0 cc "$scratch/program/main.c" -o "$scratch/by_pkg_config" $(pkg-config --cflags --libs bitconv)
expect 0 env LD_LIBRARY_PATH="$prefix_lib" "$scratch/by_pkg_config" "$scratch/model.gguf"
prints "24 tensors"
expect 0 cmake -S "$scratch/program" -B "$scratch/program/build" -DCMAKE_PREFIX_PATH="$scratch/prefix"
expect 0 cmake --build "$scratch/program/build"
for kind in shared static; do
    expect 0 "$scratch/program/build/program_$kind" "$scratch/model.gguf"
    prints "24 tensors"
done
finish
