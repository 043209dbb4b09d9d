#!/usr/bin/env python3
"""The numbers of formats/iq_grids.h are those of the PyPI package gguf, and the package decodes the blocks of
fixtures/dequant/blocks.txt to the values that unit.dequant expects of our decoders.

usage: dequant_tables.py BITCONV (not called)
"""
import hashlib
import os
import subprocess
import sys

try:
    import numpy as np
    import gguf
    from gguf.quants import dequantize
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

ROOT = os.environ["BITCONV_SOURCE_DIR"]
failures = 0


def check(ok, *what):
    global failures
    if not ok:
        failures += 1
        print("FAIL:", *what)


def generated_header():
    script = os.path.join(ROOT, "formats", "gen_iq_grids.py")
    return subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout


def entries():
    """(type, block bytes, first values, sha256) of every entry of blocks.txt."""
    entry = None
    with open(os.path.join(ROOT, "fixtures", "dequant", "blocks.txt"), encoding="ascii") as file:
        for line in file:
            word, _, rest = line.strip().partition(" ")
            if word == "type":
                entry = [rest, b"", None, None]
            elif word == "hex":
                entry[1] += bytes.fromhex(rest)
            elif word == "values":
                entry[2] = rest
            elif word == "sha256":
                yield (*entry[:3], rest)


with open(os.path.join(ROOT, "formats", "iq_grids.h"), encoding="ascii") as committed:
    check(committed.read() == generated_header(), "formats/iq_grids.h is not what gen_iq_grids.py prints")

compared = 0
for name, data, first, digest in entries():
    quant = getattr(gguf.GGMLQuantizationType, name, None)
    try:
        values = dequantize(np.frombuffer(data, np.uint8), quant).astype("<f4")
    except (NotImplementedError, AttributeError):
        continue  # a type that the package lists but does not decode, or does not know
    compared += 1
    check(hashlib.sha256(values.tobytes()).hexdigest() == digest, name, "decodes to other values")
    check(" ".join("%08x" % bits for bits in values.view("<u4").ravel()[:8]) == first, name, "first values")
check(compared >= 20, "only", compared, "types compared")
print(compared, "types compared,", failures, "failures")
sys.exit(failures != 0)
