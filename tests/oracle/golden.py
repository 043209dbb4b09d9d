#!/usr/bin/env python3
"""Converts every golden checkpoint and compares with what independent converters gave (skipped without the data).

usage: golden.py BITCONV; the folder of the data is in BITCONV_SHARED.
"""
import glob
import os
import subprocess
import sys

shared = os.environ.get("BITCONV_SHARED", "")
tool = os.path.join(shared, "tools", "check_golden.py")
cases = sorted(glob.glob(os.path.join(shared, "golden", "*", "")))
if not os.path.exists(tool) or not cases:
    print("skipped: no golden data at", shared or "(BITCONV_SHARED is not set)")
    sys.exit(77)
# What mainline's converter gave, for the families that bitconv has.
families = ("bert", "bitnet", "bitnet-1bitllm", "gemma3", "gemma3-embed", "gemma3-spm", "lfm2", "llama", "llama2",
            "mistral", "phi3", "qwen2", "qwen3", "qwen3-embed")
stock = [os.path.join(shared, "golden", "stock", name) for name in families]


def failed(folders, outtypes):
    return subprocess.run([sys.executable, tool, sys.argv[1], *folders, "--outtype", outtypes]).returncode != 0


sys.exit(failed(cases, "f32,f16,i2_s,tl1,tl2") | failed(stock, "f32,f16,bf16,q8_0,tq1_0,tq2_0"))
