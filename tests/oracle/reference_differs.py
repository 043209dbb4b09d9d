#!/usr/bin/env python3
"""The tensors that `convert` marks as written differently by a reference converter are exactly those that the
golden data has corrections for (skipped without the data).

usage: reference_differs.py BITCONV; the folder of the data is in BITCONV_SHARED.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

shared = pathlib.Path(os.environ.get("BITCONV_SHARED", ""))
tool = shared / "tools" / "check_golden.py"
if not tool.exists():
    print("skipped: no golden data at", shared or "(BITCONV_SHARED is not set)")
    sys.exit(77)


def corrected(expectation, correction):
    """Names of the tensors whose right bytes are not the reference's."""
    given = {t["name"]: t for t in expectation["tensors"]}
    names = set()
    for name, right in correction.get("tensors", {}).items():
        was = given.get(name, {})
        if any(was.get(key) != right.get(key) for key in ("type", "sha256")):
            names.add(name)
    return names


def marked(bitconv, model, outtype, args):
    run = subprocess.run([bitconv, "convert", model, "--outtype", outtype, "--outfile", os.devnull, "--json", *args],
                         capture_output=True, text=True, check=True)
    return {t["name"] for t in json.loads(run.stdout)["tensors"] if t["reference_differs"]}


checked = failed = 0
for case in sorted((shared / "golden").iterdir()):
    expectations = [case / f"expect-{t}.json" for t in ("f32", "f16", "i2_s", "tl1", "tl2")]
    expectations = [path for path in expectations if path.exists()]
    if not expectations:
        continue
    path = case / "corrections.json"
    corrections = json.loads(path.read_text()) if path.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, tool, "stage", case, folder], check=True, stdout=subprocess.DEVNULL)
        for path in expectations:
            outtype = path.stem[len("expect-"):]
            expectation = json.loads(path.read_text())
            correction = corrections.get(outtype, {})
            if correction.get("must_fail") or "error" in expectation:
                continue
            args = [*expectation.get("args", []), *correction.get("args", [])]
            if "kernel_config" in expectation:
                args += ["--kernel-config", str(case / expectation["kernel_config"])]
            wanted = corrected(expectation, correction)
            got = marked(sys.argv[1], os.path.join(folder, "model"), outtype, args)
            checked += 1
            if wanted != got:
                failed += 1
                print(f"FAIL {case.name} {outtype}: missed {sorted(wanted - got)}, too many {sorted(got - wanted)}")
print(f"{checked - failed} of {checked} agree")
sys.exit(1 if failed or not checked else 0)
