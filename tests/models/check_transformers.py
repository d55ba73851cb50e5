#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does Hugging Face transformers load an unpacked model like the original, and what does it compute?

    check_transformers.py ORIGINAL UNPACKED [TOKENS.npy]

Prints SKIP and the reason if transformers is not installed. Fails if the copy has missing, unexpected or misshapen
weights, or if the numpy forward pass of this folder and transformers disagree.
"""
import os
import sys

try:
    import numpy as np
    import torch
    from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer
except ImportError as reason:
    print(f"SKIP: {reason}")
    sys.exit(0)

from bert import embed
from measure import read_sentences
from qwen3_moe import Qwen3Moe
from safetensors_io import Checkpoint


def load(kind, folder):
    model, info = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    problems = [f"{title}: {', '.join(map(str, sorted(names)))}"
                for title, names in info.items() if names and title != "error_msgs"] + list(info["error_msgs"])
    return model.eval(), problems


def sentence_embeddings(model, folder, sentences):
    tokens = AutoTokenizer.from_pretrained(folder)(sentences, padding=True, truncation=True, max_length=256,
                                                   return_tensors="pt")
    hidden, mask = model(**tokens).last_hidden_state, tokens["attention_mask"][..., None].float()
    return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1).numpy()


def compare(original, copy, tokens_path):
    kind = Checkpoint(original).config()["model_type"]
    models, problems = zip(*(load(AutoModel if kind == "bert" else AutoModelForCausalLM, folder)
                             for folder in (original, copy)))
    problems = [line for line in problems[1] if line not in problems[0]]
    if kind == "bert":
        sentences = read_sentences()
        a, b = (sentence_embeddings(model, folder, sentences) for model, folder in zip(models, (original, copy)))
        print(f"mean cosine of {len(sentences)} sentence embeddings: {(a * b).sum(-1).mean():.4f}")
        apart = np.abs(embed(copy, sentences) - b).max()
        limit = 1e-5
    else:
        tokens = np.load(tokens_path)[:8].astype(np.int64)
        a, b = (model(torch.tensor(tokens)).logits for model in models)
        divergence = torch.nn.functional.kl_div(b.log_softmax(-1), a.log_softmax(-1), log_target=True,
                                                reduction="none").sum(-1).mean()
        print(f"mean KL divergence over {tokens.size} tokens: {divergence:.4f} nats; "
              f"same best token: {(a.argmax(-1) == b.argmax(-1)).float().mean():.3f}")
        apart = np.abs(Qwen3Moe(copy).logits(tokens) - b.numpy()).max()
        limit = 1e-3
    print(f"largest difference between transformers and numpy: {apart:.1e}")
    if apart > limit:
        problems.append(f"the numpy forward pass and transformers differ by {apart:.1e}")
    return problems


def main(arguments):
    if len(arguments) not in (2, 3):
        sys.exit(__doc__)
    for folder in arguments[:2]:
        if not os.path.isdir(folder):
            sys.exit(f"{folder}: not a folder")
    with torch.no_grad():
        problems = compare(*arguments[:2], arguments[2] if len(arguments) == 3 else None)
    for line in problems:
        print(line, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
