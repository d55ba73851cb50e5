# SPDX-License-Identifier: Apache-2.0
"""tokenizer_families.py OUT.json
tokenizer_families.py --compare TOKENIZE [LINES]

Tokenizers as model families configure them, trained small, by the package `tokenizers`, which make check does without.
The first form writes tests/tokenizer_families.json: what tests/unit/test_tokenizer.c reads, with the ids and texts that the
package gives; for files of other formats, the packages `transformers` and `tiktoken`. The second compares tests/tokenize
with the packages on generated lines: all ids, and all texts of them and of random ids; it exits 1 where one differs."""

import base64
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
KIMI_UPPER, KIMI_LOWER = (r"[\p{L%s}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]" % kind for kind in (r"u}\p{Lt", "l"))
KIMI = (
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{KIMI_UPPER}*{KIMI_LOWER}+{SHORT}?|[^\r\n\p{{L}}\p{{N}}]?{KIMI_UPPER}+{KIMI_LOWER}*"
    rf"{SHORT}?|\p{{N}}{{1,3}}{REST.replace('/', '')}")


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


def wordpiece(normalizer, pieces, decoder, **model):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", **model))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pieces, decoder
    return t


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
    "falcon": lambda: byte_level(
        pre_tokenizers.Punctuation("contiguous"), level(True), pre_tokenizers.Digits(False), cut("[0-9][0-9][0-9]")),
    "all-forms": lambda: byte_level(
        cut(r"[\p{L}&&[^a-z[\p{Greek}]]&&\p{Lu}]"), level(),
        normalizer=normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase(), normalizers.NFD()])),
    "bert-uncased": lambda: wordpiece(
        normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()),
    "bert-cased": lambda: wordpiece(
        normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(cleanup=False)),
    "bert-rare": lambda: wordpiece(
        normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=False),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")]),
        decoders.WordPiece("@", True), max_input_chars_per_word=9, continuing_subword_prefix="@"),
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


class Case:
    """The files of a tokenizer, and what a package makes of texts and ids with them."""

    def __init__(self, tokenizer, merges=None):
        saved = json.loads(tokenizer.to_str())
        if merges:
            saved["model"]["merges"] = json.loads(merges)
        self.files, self.tokenizer, self.count = {"tokenizer.json": saved}, tokenizer, tokenizer.get_vocab_size()

    def ids(self, texts, alone=False):
        return [one.ids for one in self.tokenizer.encode_batch(texts, add_special_tokens=not alone)]

    def texts(self, ids, alone=False):
        return self.tokenizer.decode_batch(ids, skip_special_tokens=alone)

    def save(self, folder):
        for name, content in self.files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as out:
                out.write(content if isinstance(content, str) else json.dumps(content))


class VocabTxt(Case):
    """A BERT folder without tokenizer.json, as transformers reads it."""

    def __init__(self, tokenizer):
        from transformers import BertTokenizer
        vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        config = {"tokenizer_class": "BertTokenizerFast", "do_lower_case": False, "strip_accents": True, "mask_token": "<extra>",
                  "sep_token": {"__type": "AddedToken", "content": "[SEP]"}}
        self.files = {"vocab.txt": "".join(token + "\n" for token, _ in vocabulary), "tokenizer_config.json": config}
        with tempfile.TemporaryDirectory() as folder:
            self.save(folder)
            self.tokenizer = BertTokenizer.from_pretrained(folder)._tokenizer
        self.count = len(vocabulary)


class TikToken(Case):
    """A Kimi folder, whose Python code runs tiktoken."""

    def __init__(self, tokenizer):
        import tiktoken
        alphabet = {c: b for b, c in enumerate(bytes_alphabet())}
        ranks = {bytes(alphabet[c] for c in token): rank
                 for token, rank in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])}
        listed = {len(ranks) + i: {"content": content, "special": special} for i, content, special in (
            (0, "<|start|>", True), (1, "<|end|>", True), (5, "<extra>", False))}
        names = {i: f"<|reserved_token_{i}|>" for i in range(len(ranks), len(ranks) + 258)}
        names.update((i, token["content"]) for i, token in listed.items())
        self.encoding = tiktoken.Encoding(
            "kimi", pat_str=KIMI, mergeable_ranks=ranks, special_tokens={name: i for i, name in names.items()})
        self.ordinary = {i for i, token in listed.items() if not token["special"]} | set(ranks.values())
        self.files = {
            "tiktoken.model": "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()),
            "tokenizer_config.json": {
                "added_tokens_decoder": listed, "tokenizer_class": "TikTokenTokenizer",
                "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}}
        self.count = len(ranks) + 258

    def ids(self, texts, alone=False):
        return [self.encoding.encode(text, allowed_special="all") for text in texts]

    def texts(self, ids, alone=False):
        return [self.encoding.decode([i for i in row if i < self.count and (not alone or i in self.ordinary)])
                for row in ids]


def bytes_alphabet():
    """The characters of the 256 bytes, in the order of the bytes."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(b if b in printed else next(others)) for b in range(256)]


def train_wordpiece(name, t, tokens, of_lines):
    """With a template, or one of the processors with fixed places."""
    t.train_from_iterator(of_lines, trainers.WordPieceTrainer(
        vocab_size=tokens, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "<extra>"], limit_alphabet=200,
        show_progress=False, continuing_subword_prefix=t.model.continuing_subword_prefix))
    t.post_processor = {
        "bert-uncased": processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]),
        "bert-cased": processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)),
        "bert-rare": processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2))}[name]
    return t


def train(name, make, tokens, of_lines, index):
    """With merges spelled in either way, and added tokens of each kind."""
    t = make()
    if isinstance(t.model, models.WordPiece):
        train_wordpiece(name, t, tokens, of_lines).add_tokens([AddedToken("Café", normalized=True)])
        return Case(t)
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
    return Case(t, json.dumps(file["model"]["merges"]))


def cases(tokens, of_lines):
    """Each family, and each format other than tokenizer.json, trained on lines."""
    for index, (name, make) in enumerate(FAMILIES.items()):
        yield name, train(name, make, tokens, of_lines(), index)
    yield "vocab.txt", VocabTxt(train_wordpiece("bert-cased", FAMILIES["bert-cased"](), tokens, of_lines()))
    t = byte_level(cut(KIMI), level())
    t.train_from_iterator(of_lines(), trainers.BpeTrainer(
        vocab_size=tokens, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    yield "tiktoken.model", TikToken(t)


def write(path):
    rows = []
    for name, case in cases(320, lambda: lines(200)):
        texts = []
        for text in lines(10) + ["", " ", "   a  b\n\n c\t", "Don't  WE'LL 12345678\r\n"]:
            ids, alone = case.ids([text])[0], case.ids([text], True)[0]
            texts.append([text, ids, alone, case.texts([ids])[0], case.texts([ids], True)[0]])
        mixed = [i for i in (random.randrange(case.count) for _ in range(60)) if "\0" not in case.texts([[i]], True)[0]]
        rows.append({"name": name, "files": case.files, "texts": texts,
                     "ids": [mixed, case.texts([mixed])[0], case.texts([mixed], True)[0]]})
    with open(path, "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows) + "\n]\n")


def run(tool, *words):
    return subprocess.run([tool, *words], stdout=subprocess.PIPE, check=True).stdout


def compare(tool, count):
    texts, differ = lines(count), 0
    for name, case in cases(1500, lambda: lines(3000)):
        wrong = 0
        rows = [[random.randrange(case.count + 3) for _ in range(random.randint(1, 30))] for _ in range(count // 3)]
        with tempfile.TemporaryDirectory() as folder:
            given = os.path.join(folder, "given")
            case.save(folder)
            for alone in (False, True):
                words = ["--alone"] * alone
                with open(given, "wb") as out:
                    out.write(b"".join(text.encode() + b"\0" for text in texts))
                got = run(tool, *words, folder, given).decode().split("\n")[:-1]
                ids = case.ids(texts, alone)
                wrong += sum(g != " ".join(map(str, i)) for g, i in zip(got, ids, strict=True))
                with open(given, "wb") as out:
                    out.write(b"".join((" ".join(map(str, these)) + "\0").encode() for these in ids + rows))
                decoded = case.texts(ids + rows, alone)
                wrong += run(tool, "--decode", *words, folder, given) != b"".join(d.encode() + b"\0" for d in decoded)
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
