# SPDX-License-Identifier: Apache-2.0
"""tokenizer_families.py OUT.json
tokenizer_families.py --compare TOKENIZE [LINES]

Tokenizers as model families configure them, trained small, by the package `tokenizers`, which make check does without.
The first form writes tests/tokenizer_families.json: what tests/unit/test_tokenizer.c reads, with the ids and texts that the
package gives. The second compares tests/tokenize with the package on generated lines: all ids, and all texts of them
and of random ids; it exits 1 where one differs."""

import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

BAR = "\u2581"
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST.replace("/", "")
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
O200K = f"{UPPER}*{LOWER}+{SHORT}?|{UPPER}+{LOWER}*{SHORT}?|\\p{{N}}{{1,3}}{REST}"
TEKKEN = f"{UPPER}*{LOWER}+|{UPPER}+{LOWER}*|\\p{{N}}{REST}"
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
DEEPSEEK3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def cut(expression, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(expression), behavior, invert)


def level(words=False, blank=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=blank, use_regex=words)


def byte_level(*pieces, normalizer=None, ignore_merges=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence(list(pieces)) if len(pieces) > 1 else pieces[0]
    t.decoder = decoders.ByteLevel()
    return t


def fallback(normalizer, pieces, decoder, fuse=True):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse, byte_fallback=True))
    if normalizer:
        t.normalizer = normalizer
    if pieces:
        t.pre_tokenizer = pieces
    if decoder:
        t.decoder = decoder
    return t


def llama2():
    return fallback(
        normalizers.Sequence([normalizers.Prepend(BAR), normalizers.Replace(" ", BAR)]), None, stripped())


def stripped():
    return decoders.Sequence(
        [decoders.Replace(BAR, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def all_kinds():
    """No real family, but with rare features."""
    return byte_level(
        pre_tokenizers.Digits(False), cut("o", "contiguous"), pre_tokenizers.Split("e", "merged_with_next"),
        pre_tokenizers.Split("a", "merged_with_previous"), pre_tokenizers.Split("u", "removed"), level(True),
        normalizer=normalizers.NFKC())


FAMILIES = {
    "qwen2": lambda: byte_level(cut(QWEN2), level(), normalizer=normalizers.NFC()),
    "qwen3.5": lambda: byte_level(cut(QWEN35), level(), normalizer=normalizers.NFC()),
    "llama3": lambda: byte_level(cut(LLAMA3), level(), ignore_merges=True),
    "gpt-oss": lambda: byte_level(cut(O200K), level(), ignore_merges=True),
    "mistral-tekken": lambda: byte_level(cut(TEKKEN), level(), ignore_merges=True),
    "cl100k": lambda: byte_level(cut(CL100K, "removed", True), level()),
    "deepseek3": lambda: byte_level(
        cut(r"\p{N}{1,3}"), cut("[一-龥\u3040-ゟ゠-ヿ]+"), cut(DEEPSEEK3), level(), normalizer=normalizers.Sequence([])),
    "deepseek1": lambda: byte_level(
        cut(r"[\r\n]"), cut(r"\s?\p{L}+"), cut(r"\s?\p{P}+"), cut("[一-龥\u0800-一가-\ud7ff]+"),
        pre_tokenizers.Digits(True), level()),
    "gpt2": lambda: byte_level(level(True, True)),
    "starcoder": lambda: byte_level(pre_tokenizers.Digits(True), level(True)),
    "all-kinds": all_kinds,
    "llama2": llama2,
    "phi3": llama2,
    "mistral": lambda: fallback(None, pre_tokenizers.Metaspace(BAR, "first", False), stripped()),
    "metaspace": lambda: fallback(
        None, pre_tokenizers.Metaspace(BAR, "always", True),
        decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(BAR, "always")])),
    "gemma": lambda: fallback(
        normalizers.Replace(" ", BAR), pre_tokenizers.Split(" ", "merged_with_previous"),
        decoders.Sequence([decoders.Replace(BAR, " "), decoders.ByteFallback(), decoders.Fuse()])),
    "no-decoder": lambda: fallback(
        normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s{2,}"), " ")]),
        pre_tokenizers.Metaspace(BAR, "never", True), None, fuse=False),
}

SCRIPTS = [(0x20, 0x7E)] * 4 + [
    (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x600, 0x6FF), (0x900, 0x97F),
    (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1800, 0x180F), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x218F),
    (0x2460, 0x24FF), (0x3040, 0x30FF), (0x3300, 0x33FF), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xF900, 0xFAFF),
    (0xFB00, 0xFB4F), (0xFE00, 0xFE0F), (0xFF00, 0xFFEF), (0x10400, 0x1044F), (0x1D400, 0x1D7FF), (0x1F1E6, 0x1F1FF),
    (0x1F300, 0x1F64F), (0x1F900, 0x1F9FF), (0x20000, 0x20100)]
WORDS = (
    "the The don't DON'T it's we'll I'VE you're y'all function(x){return x+1;} def __init__(self): 12345 3.14159 007 "
    "2024-01-01 foo_bar fooBar HTTPServer naïve café Ünïcode привет мир 你好世界 こんにちは カタカナ 한국어 안녕 שלום مرحبا "
    "नमस्ते สวัสดี 👍🏽 👨\u200d👩\u200d👧\u200d👦 🇩🇪 ½ Ⅷ ² ﬁ ſ \u212a \u212b e\u0301 o\u0323\u0302 <s> </s> <|start|> <|end|> "
    "<unk> <extra> tok wordtok #include <stdio.h> //// ---- ==== != >>= \\n https://example.com/a?b=c&d=e").split()
BLANKS = [" "] * 10 + ["  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "\u00a0", "\u3000", "\u2003", "\u0085", "", "",
                       "    "]


def characters(count):
    first, last = random.choice(SCRIPTS)
    text = ""
    while len(text) < count:
        c = chr(random.randint(first, last))
        if unicodedata.category(c) == "Cn":  # as of Unicode 14, with Python 3.11
            first, last = random.choice(SCRIPTS)
        else:
            text += c
    return text


def lines(count):
    return [
        "".join((random.choice(WORDS) if random.random() < .6 else characters(random.randint(1, 6))) +
                random.choice(BLANKS) for _ in range(random.randint(0, 14))) for _ in range(count)]


def train(make, tokens, of_lines, index):
    """With merges spelled in either way, and added tokens of each kind."""
    t = make()
    has_bytes = t.model.byte_fallback
    first = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] if has_bytes else []
    t.train_from_iterator(of_lines, trainers.BpeTrainer(
        vocab_size=tokens, special_tokens=first, limit_alphabet=300, show_progress=False,
        initial_alphabet=[] if has_bytes else pre_tokenizers.ByteLevel.alphabet()))
    file = json.loads(t.to_str())
    file["added_tokens"] = file["added_tokens"][:3]
    if index % 2:
        file["model"]["merges"] = [" ".join(pair) for pair in file["model"]["merges"]]
    t = Tokenizer.from_str(json.dumps(file))
    t.add_special_tokens([
        AddedToken("<|start|>", special=True, normalized=False),
        AddedToken("<|end|>", special=True, rstrip=True, normalized=False)])
    t.add_tokens([
        AddedToken("<extra>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("tok", single_word=True, normalized=True), AddedToken("    ", normalized=True),
        AddedToken("café", normalized=True)])
    start = t.token_to_id("<|start|>")
    if has_bytes:
        t.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A <s> $B", special_tokens=[("<s>", 1), ("</s>", 2)])
    elif index % 3:
        t.post_processor = processors.ByteLevel(trim_offsets=False)
    else:
        t.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|start|> $A", pair="$A $B", special_tokens=[("<|start|>", start)])])
    return t, json.dumps(file["model"]["merges"])


def write(path):
    cases = []
    for index, (name, make) in enumerate(FAMILIES.items()):
        t, merges = train(make, 320, lines(200), index)
        file = json.loads(t.to_str())
        file["model"]["merges"] = json.loads(merges)
        texts = []
        for text in lines(10) + ["", " ", "   a  b\n\n c\t", "Don't  WE'LL 12345678\r\n"]:
            ids = t.encode(text).ids
            texts.append([text, ids, t.encode(text, add_special_tokens=False).ids,
                          t.decode(ids, skip_special_tokens=False), t.decode(ids)])
        mixed = [i for i in (random.randrange(t.get_vocab_size()) for _ in range(60)) if "\0" not in t.decode([i])]
        cases.append({"name": name, "tokenizer": file, "texts": texts,
                      "ids": [mixed, t.decode(mixed, skip_special_tokens=False), t.decode(mixed)]})
    with open(path, "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":"), ensure_ascii=False) for case in cases) + "\n]\n")


def run(tool, *words):
    return subprocess.run([tool, *words], stdout=subprocess.PIPE, check=True).stdout


def compare(tool, count):
    texts, differ = lines(count), 0
    with tempfile.TemporaryDirectory() as folder:
        file, given = os.path.join(folder, "tokenizer.json"), os.path.join(folder, "given")
        for index, (name, make) in enumerate(FAMILIES.items()):
            t, merges = train(make, 1500, lines(3000), index)
            saved = json.loads(t.to_str())
            saved["model"]["merges"] = json.loads(merges)
            with open(file, "w", encoding="utf-8") as out:
                json.dump(saved, out)
            rows = [[random.randrange(t.get_vocab_size() + 3) for _ in range(random.randint(1, 30))]
                    for _ in range(count // 3)]
            wrong = 0
            for alone in (False, True):
                words = ["--alone"] * alone
                with open(given, "wb") as out:
                    out.write(b"".join(text.encode() + b"\0" for text in texts))
                got = run(tool, *words, file, given).decode().split("\n")[:-1]
                ids = [one.ids for one in t.encode_batch(texts, add_special_tokens=not alone)]
                wrong += sum(g != " ".join(map(str, i)) for g, i in zip(got, ids, strict=True))
                with open(given, "wb") as out:
                    out.write(b"".join((" ".join(map(str, these)) + "\0").encode() for these in ids + rows))
                decoded = t.decode_batch(ids + rows, skip_special_tokens=alone)
                wrong += run(tool, "--decode", *words, file, given) != b"".join(d.encode() + b"\0" for d in decoded)
            print(f"{name}: {wrong} of {count} lines differ", flush=True)
            differ += wrong
    return differ != 0


if __name__ == "__main__":
    random.seed(7)
    if sys.argv[1:2] == ["--compare"]:
        sys.exit(compare(sys.argv[2], int((sys.argv[3:] + ["10000"])[0])))
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1])
