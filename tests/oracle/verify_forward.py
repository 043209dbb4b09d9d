#!/usr/bin/env python3
"""Converts golden checkpoints to the types that they have expected files for (of the stock ones some), and shows that verify --forward
finds the file's computation equal to the checkpoint's (skipped without the data).

usage: verify_forward.py BITCONV [CASE...]; the folder of the data is in BITCONV_SHARED.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

shared = pathlib.Path(os.environ.get("BITCONV_SHARED", ""))
stage = shared / "tools" / "check_golden.py"
bitconv, only = sys.argv[1], sys.argv[2:]
if not stage.exists():
    print("skipped: no golden data at", shared or "(BITCONV_SHARED is not set)")
    sys.exit(77)

# Options of convert that change values, names or keys: verify has to be told them.
TOLD = {"--target", "--name", "--pre", "--chat-template", "--quant", "--scale-convention", "--embd-type", "--output-type", "--quantize",
        "--keep", "--meta", "--allow-nonfinite", "--kernel-config", "--i2s-layout", "--trim-vocab"}
FLAGS = {"--trim-vocab"}
STOCK_TYPES = {"tq1_0"}  # cli.forward has the others
failures = 0


def told(args):
    pairs = zip(args, args[1:] + [""])
    return [word for option, value in pairs if option in TOLD
            for word in ([option] if option in FLAGS else [option, value])]


def types(case):
    """(type, options of its conversion) that convert must not refuse."""
    corrections = case / "corrections.json"
    more = json.loads(corrections.read_text()) if corrections.exists() else {}
    for expected in sorted(case.glob("expect-*.json")):
        outtype = expected.stem.removeprefix("expect-")
        facts = json.loads(expected.read_text())
        more_of_type = more.get(outtype, {})
        if more_of_type.get("must_fail") or (case.parent.name == "stock" and outtype not in STOCK_TYPES):
            continue
        config = case / f"kernel_config-{outtype}.ini"
        tiles = ["--kernel-config", str(config)] if config.exists() else []
        yield outtype, facts.get("args", []) + more_of_type.get("args", []) + tiles


def check(case, model, outtype, args, folder):
    global failures
    if case.parent.name == "stock":
        args = args + ["--target", "llama.cpp"] if "--target" not in args else args
    file = folder / f"{outtype}.gguf"
    command = [bitconv, "convert", model, "--outtype", outtype, "--outfile", file, "--no-progress", *args]
    done = subprocess.run(command, capture_output=True, text=True, cwd=case)
    if done.returncode:
        failures += 1
        print(f"FAIL {case.name} {outtype}: {done.stderr.strip()[-400:]}")
        return
    command = [bitconv, "verify", file, "--source", model, "--forward", "--json", "--no-progress", *told(args)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=case)
    proofs = {p["name"]: p for p in json.loads(done.stdout)["proofs"]} if done.stdout else {}
    forward = proofs.get("forward", {"ok": False, "detail": done.stderr.strip()[-400:]})
    good = forward["ok"] is True and "bit for bit" in forward["detail"]
    failures += not good
    print("ok  " if good else "FAIL", case.name, outtype, "" if good else forward["detail"])
    file.unlink()


cases = [p.parent for p in sorted(shared.glob("golden/*/forward.json")) + sorted(shared.glob("golden/stock/*/forward.json"))]
for case in cases:
    if not (case / "model").is_dir() or (only and case.name not in only):
        continue
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([sys.executable, stage, "stage", case, folder], check=True, capture_output=True)
        for outtype, args in types(case):
            check(case, folder / "model", outtype, args, folder)
print(f"{failures} failed")
sys.exit(1 if failures else 0)
