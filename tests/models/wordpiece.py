# SPDX-License-Identifier: Apache-2.0
"""The uncased BERT tokenizer: clean, lower-case, strip accents, split, then greedy WordPiece."""
import unicodedata

CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
       (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
LONGEST_WORD = 100


def is_cjk(char):
    return any(low <= ord(char) <= high for low, high in CJK)


def is_control(char):
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs")


def is_punctuation(char):
    # ASCII symbols such as $ + < = > ^ ` | ~ count as punctuation although Unicode files them elsewhere.
    return 33 <= ord(char) <= 126 and not char.isalnum() or unicodedata.category(char).startswith("P")


def split_words(text):
    """Words and single punctuation marks, normalised."""
    text = "".join(" " if char.isspace() else char for char in text
                   if ord(char) not in (0, 0xFFFD) and not is_control(char))
    text = "".join(f" {char} " if is_cjk(char) else char for char in text)
    text = "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
    text = "".join(char.lower() for char in text)  # one by one: no final sigma
    return "".join(f" {char} " if is_punctuation(char) else char for char in text).split()


class WordPiece:
    def __init__(self, vocab_path):
        with open(vocab_path, encoding="utf-8") as file:
            self.ids = {line.rstrip("\n"): number for number, line in enumerate(file)}

    def pieces(self, word):
        if len(word) > LONGEST_WORD:
            return [self.ids["[UNK]"]]
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    found.append(self.ids[piece])
                    start = end
                    break
            else:
                return [self.ids["[UNK]"]]
        return found

    def encode(self, text, longest):
        ids = [number for word in split_words(text) for number in self.pieces(word)]
        return [self.ids["[CLS]"]] + ids[:longest - 2] + [self.ids["[SEP]"]]
