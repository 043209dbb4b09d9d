#!/usr/bin/env python3
"""The Python package gguf reads our f32, f16 and bf16 files and agrees on keys, names, shapes, types and values.

usage: gguf_reader.py BITCONV. The values expected are computed here from the checkpoint, with NumPy.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

FIXTURES = os.path.join(os.environ["BITCONV_SOURCE_DIR"], "fixtures", "models")
failures = 0


def check(ok, *what):
    global failures
    if not ok:
        failures += 1
        print("FAIL:", *what)


def bf16(words):
    return (words.astype(np.uint32) << 16).view(np.float32)


def checkpoint(folder):
    """name -> float32 array (uint8 stays) of every tensor in the folder, read without any library."""
    tensors = {}
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".safetensors"):
            continue
        data = open(os.path.join(folder, file), "rb").read()
        size = struct.unpack("<Q", data[:8])[0]
        for name, info in json.loads(data[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + x for x in info["data_offsets"])
            kind = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "U8": np.uint8, "I64": np.int64}[info["dtype"]]
            array = np.frombuffer(data[begin:end], kind).reshape(info["shape"])
            if info["dtype"] == "BF16":
                array = bf16(array)
            tensors[name.removeprefix("bert.")] = array if info["dtype"] == "U8" else array.astype(np.float32)
    return tensors


def unpack(packed):
    """Hugging Face's packed uint8: row r holds rows r, r + R, r + 2R, r + 3R, low bits first."""
    return np.concatenate([((packed >> shift) & 3).astype(np.int8) - 1 for shift in (0, 2, 4, 6)]).astype(np.float32)


def permute(weights, heads):
    rows = weights.shape[0]
    return weights.reshape(heads, 2, rows // heads // 2, -1).swapaxes(1, 2).reshape(weights.shape)


def absmean(weights):
    scale = np.maximum(np.abs(weights.ravel()).mean(dtype=np.float32), np.float32(1e-5))
    inverse = np.float32(1) / scale
    return (np.clip(np.rint(weights * inverse), -1, 1) * scale).astype(np.float32)


def store(values, kind):
    """What a type makes of float32 values."""
    if kind == GGMLQuantizationType.F16:
        return values.astype(np.float16).astype(np.float32)
    if kind == GGMLQuantizationType.BF16:
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
        return bf16(((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16))
    return values


def read(tensor):
    shape = [int(n) for n in reversed(tensor.shape)]
    raw = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(-1)
    if tensor.tensor_type == GGMLQuantizationType.BF16:
        return bf16(raw.view(np.uint16)).reshape(shape)
    kind = np.float16 if tensor.tensor_type == GGMLQuantizationType.F16 else np.float32
    return raw.view(kind).astype(np.float32).reshape(shape)


NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "attn_q_norm_in": "self_attn.q_proj.norm",
         "attn_k_norm_in": "self_attn.k_proj.norm", "attn_v_norm_in": "self_attn.v_proj.norm",
         "attn_output_norm_in": "self_attn.o_proj.norm", "ffn_gate_norm_in": "mlp.gate_proj.norm",
         "ffn_up_norm_in": "mlp.up_proj.norm", "ffn_down_norm_in": "mlp.down_proj.norm",
         "ffn_gate_inp": "block_sparse_moe.gate"}
LINEAR = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
# Families whose names are others: of the whole model, of a layer's start, of its parts.
OTHERS = {
    "phi3": ({}, "model.layers.{}.", {**NAMES, "attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj",
                                      "ffn_norm": "post_attention_layernorm"}),
    "lfm2": ({"token_embd_norm": "model.embedding_norm"}, "model.layers.{}.",
             {**NAMES, "attn_norm": "operator_norm", "ffn_norm": "ffn_norm", "attn_output": "self_attn.out_proj",
              "attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm",
              "ffn_gate": "feed_forward.w1", "ffn_down": "feed_forward.w2", "ffn_up": "feed_forward.w3",
              "shortconv.conv": "conv.conv", "shortconv.in_proj": "conv.in_proj", "shortconv.out_proj": "conv.out_proj"}),
    "bert": ({"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings",
              "token_types": "embeddings.token_type_embeddings", "token_embd_norm": "embeddings.LayerNorm"},
             "encoder.layer.{}.",
             {"attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value",
              "attn_output": "attention.output.dense", "attn_output_norm": "attention.output.LayerNorm",
              "ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm"})}
EXPERTS = {"ffn_gate_exps": "w1", "ffn_down_exps": "w2", "ffn_up_exps": "w3"}


def by_table(name, source, family):
    """Where nothing but the name changes; None: not in the table."""
    whole, start, parts = family
    stem, ending = name.rsplit(".", 1)
    layer = re.fullmatch(r"blk\.(\d+)\.(.*)", stem)
    if layer is None:
        return source[f"{whole[stem]}.{ending}"] if stem in whole else None
    values = source[f"{start.format(layer[1])}{parts[layer[2]]}.{ending}"]
    return values.reshape(values.shape[0], -1) if stem.endswith("shortconv.conv") else values


def expected(name, source, config):
    """The float32 values a GGUF tensor stands for, by the rules of the model's own runtime."""
    if config["model_type"] in OTHERS:
        values = by_table(name, source, OTHERS[config["model_type"]])
        if values is not None:
            return values
    prefix = "model." if any(key.startswith("model.") for key in source) else ""
    gemma = config["model_type"] == "gemma3_text"
    bitnet = config["architectures"][0].lower().startswith("bitnet")
    if name == "token_embd.weight":
        return source[prefix + "embed_tokens.weight"]
    if name == "output.weight":
        return source["lm_head.weight"]
    if name == "output_norm.weight":
        return source[prefix + "norm.weight"] + np.float32(gemma)
    _, layer, part, ending = name.split(".")
    base = f"{prefix}layers.{layer}."
    if part in EXPERTS:
        count = config["num_local_experts"]
        return np.stack([source[f"{base}block_sparse_moe.experts.{e}.{EXPERTS[part]}.weight"] for e in range(count)])
    if part == "ffn_norm":
        hf = "pre_feedforward_layernorm" if gemma else "post_attention_layernorm"
    elif part in ("post_attention_norm", "post_ffw_norm"):
        hf = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}[part]
    elif part in ("attn_sub_norm", "ffn_sub_norm"):
        hf = {"attn_sub_norm": ("self_attn.attn_sub_norm", "self_attn.inner_attn_ln"),
              "ffn_sub_norm": ("mlp.ffn_sub_norm", "mlp.ffn_layernorm")}[part]
        hf = next(n for n in hf if base + n + ".weight" in source)
    else:
        hf = NAMES[part]
    values = source[f"{base}{hf}.{ending}"]
    if part in LINEAR and ending == "weight":
        if values.dtype == np.uint8:
            scale = source[base + hf + ".weight_scale"][0]
            multiply = config["quantization_config"].get("linear_class") == "autobitlinear"
            values = unpack(values) * (scale if multiply else np.float32(1) / scale) + np.float32(0)
        elif bitnet:
            values = absmean(values) + np.float32(0)
        if config["architectures"][0] in ("LlamaForCausalLM", "MixtralForCausalLM") and part in ("attn_q", "attn_k"):
            values = permute(values, config["num_attention_heads" if part == "attn_q" else "num_key_value_heads"])
    elif gemma and part.endswith("norm"):
        values = values + np.float32(1)
    return values


def compare(path, listing, folder, kind):
    config = json.load(open(os.path.join(folder, "config.json")))
    source = checkpoint(folder)
    reader = GGUFReader(path)
    keys = [k for k in reader.fields if not k.startswith("GGUF.")]
    check(keys == list(listing["metadata"]), path, "keys differ")
    for key in keys:
        field, ours = reader.fields[key], listing["metadata"][key]
        if field.types[0] == GGUFValueType.STRING:
            check(bytes(field.parts[-1]).decode() == ours["value"], path, key, ours["value"])
        elif field.types[0] != GGUFValueType.ARRAY:
            theirs = field.parts[-1].tolist()[0]
            check(np.float32(theirs) == np.float32(ours["value"]), path, key, theirs, ours["value"])
    check([t.name for t in reader.tensors] == [t["name"] for t in listing["tensors"]], path, "names differ")
    for tensor, ours in zip(reader.tensors, listing["tensors"]):
        check(tensor.tensor_type.name == ours["type"], path, tensor.name, "type")
        check([int(n) for n in tensor.shape] == ours["shape"], path, tensor.name, "shape")
        if tensor.name.startswith("rope_f"): # made from the configuration, not stored
            continue
        want = store(np.ascontiguousarray(expected(tensor.name, source, config), np.float32), tensor.tensor_type)
        got = read(tensor)
        check(want.shape == got.shape and np.array_equal(want.view(np.uint32), got.view(np.uint32)), path,
              tensor.name, kind, "values differ")


def main():
    bitconv = sys.argv[1]
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for family in sorted(os.listdir(FIXTURES)):
            for kind in ("f32", "f16", "bf16"):
                folder, out = os.path.join(FIXTURES, family), os.path.join(scratch, f"{family}-{kind}.gguf")
                subprocess.run([bitconv, "convert", folder, "--outtype", kind, "--target", "bitnet", "--outfile", out,
                                "--quiet"], check=True, stdout=subprocess.DEVNULL)
                listing = json.loads(subprocess.run([bitconv, "inspect", out, "--json"], check=True,
                                                    capture_output=True).stdout)
                compare(out, listing, folder, kind)
                count += 1
    print(f"{count} files compared, {failures} differences")
    sys.exit(1 if failures or not count else 0)


main()
