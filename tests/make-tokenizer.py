# SPDX-License-Identifier: Apache-2.0
#
# make-tokenizer.py FOLDER - write a tokenizer.json of 260 tokens: 256 bytes, letters first, then <s>, which begins each
# text, </s>, and two pieces, " t" and the first two bytes of a snowman, so that a token may end inside a
# character.
import json
import os
import sys

if len(sys.argv) != 2:
    sys.exit("usage: make-tokenizer.py FOLDER")
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
spelt = {b: chr(b) for b in plain}
spelt.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in plain)})
order = [*range(32, 122), 10]
order += [b for b in range(256) if b not in order]
vocabulary = {spelt[b]: i for i, b in enumerate(order)}
vocabulary[spelt[32] + "t"] = 258
vocabulary[spelt[0xE2] + spelt[0x98]] = 259
added = [
    {"id": 256 + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
     "special": True}
    for i, text in enumerate(("<s>", "</s>"))
]
begin = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
with open(os.path.join(sys.argv[1], "tokenizer.json"), "w") as file:
    json.dump({
        "version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
        "post_processor": {"type": "TemplateProcessing", "single": begin, "pair": begin,
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocabulary,
                  "merges": [spelt[32] + " t", spelt[0xE2] + " " + spelt[0x98]]},
    }, file)
