# SPDX-License-Identifier: Apache-2.0
"""tokenizer_unicode.py OUT.json - write tests/tokenizer_unicode.json, which tests/unit/test_tokenizer_unicode.c reads.

The expected ids come from the package `tokenizers`, version 0.23, which only a developer needs: for each normalizer and
pre-tokenizer a digest of the ids of 10,000 lines with every assigned code point, and the ids of short texts split by random
regular expressions, or composed by normal forms. Each piece begins with U+2581 and each byte has a token, so ids show all bytes and all splits."""

import json
import random
import sys
import unicodedata

from tokenizer_families import CL100K, DEEPSEEK3, KIMI, LLAMA3, O200K, QWEN2, QWEN35, TEKKEN
from tokenizers import Tokenizer

BAR = "\u2581"
LINES = 10000
FILL = ["", "a", " ", "'", "1", "\n", "S", "  "]
MODEL = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "merges": [],
         "vocab": {"<unk>": 0, **{f"<0x{i:02X}>": i + 1 for i in range(256)}, BAR: 257}}
META = {"type": "Metaspace", "replacement": BAR, "prepend_scheme": "always", "split": False}
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def cut(*expressions, behavior="Isolated", invert=False):
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": e}, "behavior": behavior, "invert": invert} for e in expressions] + [META]}


def bert(pieces=({"type": "BertPreTokenizer"}, META), **options):
    every = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
    return {"type": "BertNormalizer", **every, **options}, {"type": "Sequence", "pretokenizers": list(pieces)}


CASES = {
    "gpt2": (None, cut(WORDS)),
    "llama3": (None, cut(LLAMA3)),
    "qwen2": ("NFC", cut(QWEN2)),
    "qwen3.5": ("NFC", cut(QWEN35)),
    "gpt-oss": (None, cut(O200K)),
    "mistral-tekken": (None, cut(TEKKEN)),
    "cl100k": (None, cut(CL100K, behavior="Removed", invert=True)),
    "deepseek3": (None, cut(r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK3)),
    "NFC": ("NFC", META),
    "NFKC": ("NFKC", META),
    "digits": (None, {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, META]}),
    "classes": (None, cut(r"\w", r"\d", r"\s", r"[\W\n]")),
    "categories": (None, cut(r"\p{Mn}", r"\p{Mc}|\p{Me}|\p{Nl}|\p{No}|\p{Lt}", r"\p{Lm}", r"\p{Lu}", r"\p{Pd}|\p{Ps}|\p{Pe}",
                             r"\p{Pi}|\p{Pf}|\p{Pc}", r"\p{Sm}|\p{Sc}", r"\p{Sk}", r"\p{Cf}|\p{Co}|\p{Z}", r"\p{Cn}")),
    "properties": (None, cut(r"\p{Alphabetic}", r"\p{Uppercase}", r"\p{Lowercase}", r"\p{Emoji}", r"\p{Punct}")),
    "scripts": (None, cut(r"[\p{Han}\p{Thai}]", r"\p{Hiragana}", r"\p{Katakana}", r"\p{Hangul}", r"[\p{Latin}\p{Cyrl}]",
                          r"\p{Greek}|\p{Arabic}|\p{Todhri}", r"\p{Common}")),
    "case": (None, cut(r"(?i:[a-g])", r"(?i:k)", r"(?i:s)", r"(?i:[^\p{Lu}\P{Cyrillic}])", r"(?i:[\x{1c5}\x{10a0}-\x{10c5}])",
                       r"(?i:[\x{10400}-\x{10427}\x{a7cb}])")),
    "kimi": (None, cut(KIMI)),
    "NFD": ("NFD", META),
    "NFKD": ("NFKD", META),
    "bert": bert(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
    "clean_text": bert([META], clean_text=True),
    "handle_chinese_chars": bert([META], handle_chinese_chars=True),
    "strip_accents": bert([META], strip_accents=True),
    "lowercase": bert([META], lowercase=True),
}

SETS = (r"[\p{L}&&[^a-k]] [a-k[A-C]&&[^b]] [^\p{Lu}&&\w] [^\s[.']] [\w&&\p{Lu}&&[^B]] [[^\p{L}]&&[\S\n]] [^[^a]b] [ac&&\p{L}]").split()
CLASSES = (r"\s \S \w \W \d \D \p{L} \p{N} \p{Lu} \P{Ll} \p{^L} \p{Han} \p{P} \p{M} . [a-c] [^a\s] [\p{L}\d] [^\p{L}\p{N}] [bB\n]"
           r" \n [\r\n] [\p{Lu}\p{Lt}] [^\W\d] \x{e9} é [à-ü] [a-]").split()
REPEATS = "* + ? *? +? ?? *+ ++ ?+ {2} {1,2} {,2} {2,} {1,3}? {1,2}+ {2,}+ {2}+".split()
GROUPS = ["(?:"] * 4 + ["(", "(?>", "(?i:", "(?-i:"]
LOOKS = ["(?=", "(?!", "(?<=", "(?<!"]


def atom(depth):
    kind = random.random()
    if kind < .45:
        return random.choice(list("aaabbcAB1 '.sk")).replace(".", r"\.") + repeated()
    if kind < .7 or not depth:
        return random.choice(CLASSES) + repeated()
    look = kind > .9
    return random.choice(LOOKS if look else GROUPS) + expression(depth - 1) + ")" + ("" if look else repeated())


def repeated():
    return random.choice(REPEATS) if random.random() < .45 else ""


def expression(depth):
    return "|".join(
        "".join(random.choice(["^", "$", r"\A", r"\z"]) if random.random() < .06 else atom(depth)
                for _ in range(random.randint(1, 3))) for _ in range(random.choice([1, 1, 1, 2, 3])))


def unsupported(tried):
    """Whether xfp refuses it: look-arounds in look-behinds; with (?i:, characters that equal a sequence such as ss."""
    several = any(part in tried for part in (r"[\p{L}\d]", r"[\p{Lu}\p{Lt}]", "ss"))
    return (several and "(?i:" in tried) or ("(?<" in tried and sum(tried.count(look) for look in LOOKS) > 1)


def file(normalizer, pre_tokenizer):
    return {"normalizer": {"type": normalizer} if isinstance(normalizer, str) else normalizer, "pre_tokenizer": pre_tokenizer}


def opened(parts):
    return Tokenizer.from_str(json.dumps(
        {"version": "1.0", "added_tokens": [], "model": MODEL, "post_processor": None, "decoder": None, **parts}))


def lines():
    """Every code point up to the last assigned one, without private planes. test_tokenizer_unicode.c builds the same lines."""
    codes = [*range(1, 0xD800), *range(0xE000, 0x323B0), *range(0xE0001, 0xE01F0)]
    return ["".join(chr(codes[k]) + FILL[(k * 7 + i) % 8] for k in range(i, len(codes), LINES)) for i in range(LINES)]


def composing():
    """Random sequences of letters, marks and jamo, which normal forms compose and sort."""
    marks = [c for c in range(0x300, 0x1E100) if unicodedata.combining(chr(c))]
    several = [c for c in range(0xC0, 0xD7A4) if unicodedata.decomposition(chr(c))]
    jamo = [*range(0x1100, 0x1114), *range(0x1161, 0x1177), *range(0x11A7, 0x11C4), 0xAC00, 0xAC01, 0xAC1C]
    kinds = [marks, marks, range(0x300, 0x346), several, jamo, jamo, [ord(c) for c in "aeiouAEO1 \u1b05\u09c7\u09be\u0cc6\u0cc2"]]
    return ["".join(chr(random.choice(random.choice(kinds))) for _ in range(random.randint(2, 12))) for _ in range(300)]


def digest(all_ids):
    value = 0xCBF29CE484222325
    for ids in all_ids:
        for number in (*ids, 0xFFFF):
            value = (value ^ number) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main(path):
    random.seed(5)
    texts, cases, found = lines(), [], []
    for name, parts in CASES.items():
        ids = [one.ids for one in opened(file(*parts)).encode_batch(texts)]
        cases.append({"name": name, **file(*parts), "digest": digest(ids)})
    while len(found) < 300:
        tried = expression(2) if len(found) < 250 else random.choice(SETS) + repeated() + random.choice(SETS)
        if unsupported(tried):
            continue
        some = ["".join(random.choice("aaabbbcccAB11  ''.sSkKé\n\n\r漢あΣσ\u017f\u212aÉ²\u0301½") for _ in range(random.randint(1, 14)))
                for _ in range(3)]
        try:
            t = opened(file(None, cut(tried)))
        except Exception:
            continue
        found.append([tried, [[text, t.encode(text).ids] for text in some]])
    forms = []
    for name in "NFC", "NFKC":
        t = opened(file(name, META))
        forms.append([name, [[text, t.encode(text).ids] for text in composing()]])
    with open(path, "w", encoding="utf-8") as out:
        out.write('{"model":' + compact(MODEL))
        for name, rows in {"cases": cases, "expressions": found, "normal_forms": forms}.items():
            out.write(f',\n"{name}":[\n' + ",\n".join(map(compact, rows)) + "\n]")
        out.write("}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
