#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does xfp generate write the tokens of Hugging Face transformers, in f32 with eager attention?

    check_greedy.py [FAMILY|FOLDER...]

For random models of each family of xfp generate (or those named), and for models in folders with a tokenizer.json:
three prompts, 32 steps. One by one, xfp's tokens are compared with the largest logits of transformers, with its cache
and with the whole text recomputed. Then a text is given as prompts of all lengths, and the next tokens are compared. A
comparison ends when the two best logits are within a thousandth of the standard deviation of all: the next token is
then a tie. `xfp` is taken from PATH. Prints SKIP and the reason if transformers is not installed. Fails if a token
differs, or if transformers' own logits differ by more than that thousandth.
"""
import json
import os
import subprocess
import sys
import tempfile

from check_families import CASES, EAGER, HERE, MORE, kind_of, make, torch, transformers

PROMPTS = ["quick", "the lazy dog jumps over it", "x"]
TEXT = "Of a text, what follows depends on all of it, as far as a window goes: 1, 2, 3 \u2603 ..."
STEPS, NEAR = 32, 1e-3


def with_tokenizer(case, folder):
    """A model with the tokenizer's number of tokens, a context for all steps, and no end token."""
    own = {"vocab_size": 260, "max_position_embeddings": 128, "eos_token_id": None}
    make({**case, **own, **({"text_config": {**case["text_config"], **own}} if "text_config" in case else {})}, folder)
    subprocess.run([sys.executable, os.path.join(HERE, "..", "make-tokenizer.py"), folder], check=True)


def opened(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    config.pad_token_id = None  # phi3's default is beyond a small vocabulary
    return kind_of(config).from_pretrained(folder, config=config, dtype=torch.float32, **EAGER).eval()


def by_xfp(folder, prompts, steps, *options):
    """Ids of each prompt, and of its continuation."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as batch:
        batch.writelines(json.dumps(prompt) + "\n" for prompt in prompts)
        batch.flush()
        said = subprocess.run(["xfp", "generate", "--json", "--batch", batch.name, "-n", str(steps), *options, folder],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return [(text["prompt_tokens"], text["tokens"]) for text in json.loads(said)["texts"]]


def anew(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0].double()


def one_by_one(model, ids, given):
    """Logits of the last of ids[:given], and of each following one, with transformers' cache."""
    cache, logits = None, []
    for first, last in zip([0, *range(given, len(ids))], range(given, len(ids) + 1)):
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids[first:last]]), past_key_values=cache, use_cache=True,
                        cache_position=torch.arange(first, last))
        cache = out.past_key_values
        logits.append(out.logits[0, -1].double())
    return torch.stack(logits)


def is_near(logits):
    best = logits.topk(2).values
    return bool(best[0] - best[1] < NEAR * logits.std())


class Judge:
    def __init__(self):
        self.same, self.ties, self.failed, self.worst = 0, 0, 0, 0.0

    def take(self, token, *logits):
        """Whether to continue."""
        if any(map(is_near, logits)):
            self.ties += 1
            return False
        right = all(token == int(one.argmax()) for one in logits)
        self.same += right
        self.failed += not right
        return right

    def steps(self, model, prompt, made):
        if "longrope" in model.config.to_json_string():
            # Factors depend on the length of a text, but except for phi3 transformers keeps its cached keys.
            whole = torch.stack([anew(model, prompt + made[:i])[-1] for i in range(len(made))])
            cached = whole
        else:
            whole = anew(model, prompt + made[:-1])[len(prompt) - 1:]
            cached = one_by_one(model, prompt + made[:-1], len(prompt))
        for token, *logits in zip(made, cached, whole):
            self.worst = max(self.worst, float((logits[0] - logits[1]).abs().max() / logits[1].std()))
            if not self.take(token, *logits):
                break

    def compare(self, what, folder):
        before = self.same, self.ties, self.failed
        model = opened(folder)
        for prompt, made in by_xfp(folder, PROMPTS, STEPS):
            self.steps(model, prompt, made)
        stepped = self.same - before[0]
        begun = by_xfp(folder, [TEXT[:size + 1] for size in range(len(TEXT))], 1, "--parallel", "3")
        logits, longrope = anew(model, begun[-1][0]), "longrope" in model.config.to_json_string()
        for prompt, made in begun:
            # If the last token changes when the text continues, it has logits of its own.
            known = not longrope and prompt == begun[-1][0][:len(prompt)]
            self.take(made[0], logits[len(prompt) - 1] if known else anew(model, prompt)[-1])
        print(f"{what:24} {stepped:3} steps and {self.same - before[0] - stepped:3} prompts are the same, "
              f"{self.ties - before[1]} are near ties, {self.failed - before[2]} wrong", flush=True)


def main(named):
    judge = Judge()
    for number, case in enumerate(CASES + MORE):
        if named and case["model_type"] not in named:
            continue
        with tempfile.TemporaryDirectory() as folder:
            with_tokenizer(case, folder)
            judge.compare(f"{case['model_type']} {number}", folder)
    for folder in filter(os.path.isdir, named):
        judge.compare(os.path.basename(os.path.normpath(folder)), folder)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}: {judge.same} tokens, {judge.ties} near "
          f"ties; its logits by its cache are off by {judge.worst:.1e} of the spread")
    return judge.failed != 0 or judge.worst > NEAR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
