#!/usr/bin/env python3
"""The Python package gguf agrees with our GGUF writer on every value type, and with the table of tensor types
in formats/gguf.md on block sizes.

usage: gguf_roundtrip.py [BITCONV]. Takes test_gguf_write from $BITCONV_BUILD_DIR.
"""
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from gguf import GGUFReader
    from gguf.constants import GGML_QUANT_SIZES
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

SOURCE = os.environ.get("BITCONV_SOURCE_DIR", os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("BITCONV_BUILD_DIR", os.path.join(SOURCE, "build"))
# The package counts a Q8_1 block with float32 sums (40 bytes); ggml's block has float16 ones.
PACKAGE_ERRATA = {"Q8_1"}
failures = 0


def check(ok, *what):
    global failures
    if not ok:
        failures += 1
        print("FAIL:", *what)


def check_types():
    rows = {}
    with open(os.path.join(SOURCE, "formats", "gguf.md"), encoding="utf-8") as spec:
        for line in spec:
            row = re.match(r"\| (\d+) \| `(\w+)` \| (\d+) \| (\d+) \| (.*) \|", line)
            if row and ("all" in row[5] or "upstream" in row[5]):
                rows[row[2]] = (int(row[1]), int(row[3]), int(row[4]))
    for kind, (block, size) in GGML_QUANT_SIZES.items():
        check(kind.name in rows, "the spec lacks", kind.name)
        if kind.name in rows and kind.name not in PACKAGE_ERRATA:
            check(rows[kind.name] == (int(kind), block, size), kind.name, rows[kind.name], (int(kind), block, size))
    print(len(GGML_QUANT_SIZES), "types compared")


def check_file(path):
    reader = GGUFReader(path)
    value = {name: field.contents() for name, field in reader.fields.items()}
    wanted = {"general.architecture": "llama", "test.u32": 4000000000, "test.f32": 1.75, "test.bool": True, "test.f64": 0.1,
              "test.UINT8": 251, "test.INT8": -5, "test.UINT16": 65531, "test.INT16": -5, "test.UINT32": 4294967291,
              "test.INT32": -5, "test.UINT64": 2**64 - 5, "test.INT64": -5, "test.words": ["ab", ""],
              "test.bytes": [2, 0, 0, 0, 0, 0, 0, 0, 97, 98, 0, 0, 0, 0, 0, 0, 0, 0], "GGUF.version": 3,
              "GGUF.tensor_count": 2, "GGUF.kv_count": len(value) - 3}
    check(set(value) == set(wanted), "keys", set(value) ^ set(wanted))
    for name, expected in wanted.items():
        check(value.get(name) == expected, name, value.get(name), expected)
    matrix, vector = reader.tensors
    check(matrix.name == "matrix" and list(matrix.shape) == [3, 5] and matrix.tensor_type.name == "F32", matrix)
    check(np.array_equal(matrix.data, np.arange(15, dtype=np.float32).reshape(5, 3) / 4), matrix.data)
    check(vector.name == "vector" and list(vector.shape) == [7] and vector.tensor_type.name == "F16", vector)
    check(np.array_equal(vector.data, (0x3c00 + 0x100 * np.arange(7)).astype(np.uint16).view(np.float16)), vector.data)
    check(vector.data_offset % 32 == 0 and os.path.getsize(path) % 32 == 0, "padding")


check_types()
program = os.path.join(BUILD, "test_gguf_write")
with tempfile.TemporaryDirectory() as scratch:
    sample = os.path.join(scratch, "sample.gguf")
    subprocess.run([program, "--emit", sample], check=True)
    check_file(sample)
print("failed" if failures else "ok")
sys.exit(1 if failures else 0)
