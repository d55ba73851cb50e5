#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Text in Python: xfp.load, beside xfp generate and transformers' own weights, on a generated dense model.

    python_text.py --folder DIR --tools DIR [--threads 2] [--rounds 5] [--checkpoint FOLDER] [--dtype bfloat16] ...

Needs torch and transformers. --folder keeps the model of generate.py (1.1 billion weights) and its bundle, made with
--options; --checkpoint is another model. Programs stay loaded and take turns in each round; figures are medians of the
rounds, ratios medians of the ratios of each round. A token costs the difference between a long text and one of two
tokens. Processor time is that of all threads, so spinning counts. --parallel generates by 1, 2 and 4 Python threads,
each by a bundle of its own with one thread of torch.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time

from common import HERE, processor, table

SHORT = 2
START = os.getcwd()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--tools", required=True, help="has xfp, xfp-generate and tests/make-checkpoint")
    parser.add_argument("--library", help="libxfp.so (runtime/.libs/libxfp.so of --tools)")
    parser.add_argument("--checkpoint")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--options", default="--mode v2c --bits 4 --on-miss best")
    parser.add_argument("--dtype", default="bfloat16", help="of both models in Python")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=32, help="of a text; memory is measured after 64")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a prompt; 0: none")
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name in ("folder", "tools", "library", "checkpoint"):
        if getattr(args, name):
            setattr(args, name, os.path.abspath(getattr(args, name)))
    return args


def seconds():
    return time.monotonic(), time.process_time()


def since(begin):
    return [now - then for now, then in zip(seconds(), begin)]


# ---- a process with a model, which answers requests


def memory(*fields):
    with open("/proc/self/status", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    return [int(lines[field].split()[0]) * 1024 for field in fields]


def generate(model, prompt, tokens):
    import torch

    ids = (torch.arange(prompt) % 250)[None]
    model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens,
                   do_sample=False, pad_token_id=0)


def measure(model, args, what):
    if what == "memory":
        generate(model, 8, 64)
        return memory("VmHWM", "RssAnon", "RssFile")
    if what == "prompt":
        begin = seconds()
        generate(model, args.prompt, 1)
        return since(begin)
    costs = []
    for tokens in (SHORT, SHORT + args.tokens):
        begin = seconds()
        generate(model, 8, tokens)
        costs.append(since(begin))
    return [(much - little) / args.tokens for little, much in zip(*costs)]


def parallel(xfp, dtype, args):
    """Seconds, and processor seconds, a token, by the number of Python threads."""
    import torch

    torch.set_num_threads(1)
    models = []
    for i in range(4):
        if not os.path.exists(f"copy-{i}.xfp"):
            shutil.copy("model.xfp", f"copy-{i}.xfp")
        models.append(xfp.load(f"copy-{i}.xfp", dtype=dtype)[0])
        generate(models[-1], 8, SHORT)
    found = []
    for count in (1, 2, 4):
        threads = [threading.Thread(target=generate, args=(model, 8, args.tokens)) for model in models[:count]]
        begin = seconds()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append([cost / count / args.tokens for cost in since(begin)])
    return found


def work(args):
    sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
    import torch
    import transformers
    from transformers.models.auto import modeling_auto  # noqa: F401: part of what the model needs

    import xfp

    torch.set_num_threads(args.threads)
    dtype, source = getattr(torch, args.dtype), args.checkpoint or "model"
    getattr(transformers, transformers.AutoConfig.from_pretrained(source).architectures[0])
    imports = memory("VmRSS")
    model = None
    if args.worker == "xfp":
        model = xfp.load("model.xfp", dtype=dtype)[0]
    elif args.worker == "torch":
        model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    if model is not None:
        generate(model, 8, SHORT)
    for what in sys.stdin:
        if what.strip() == "parallel":
            answer = parallel(xfp, dtype, args)
        else:
            answer = measure(model, args, what.strip())
        print(json.dumps(imports + answer if what.strip() == "memory" else answer), flush=True)


class Worker:
    def __init__(self, args, kind):
        environment = {**os.environ, "XFP_LIBRARY": args.library or os.path.join(args.tools, "runtime/.libs/libxfp.so"),
                       "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error"}
        self.process = subprocess.Popen([sys.executable, *sys.argv, "--worker", kind], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment, cwd=START)

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a process ended")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


# ---- the figures


def text_of_xfp(args):
    """Seconds a token of xfp generate, and processor seconds."""
    costs = []
    for tokens in (SHORT, SHORT + args.tokens):
        before = os.times()
        out = subprocess.run([os.path.join(args.tools, "xfp"), "generate", "--json", "--prompt", "fifteen letters",
                              "-n", str(tokens), "--threads", str(args.threads), "model.xfp"], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        after, report = os.times(), json.loads(out)
        costs.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return [report["seconds"] / report["tokens"], (costs[1] - costs[0]) / args.tokens]


def rows(figures):
    """Medians, and medians of the ratio of processor time and of elapsed time to those of xfp.load."""
    for name, costs in figures.items():
        elapsed, busy = zip(*costs)
        ratios = [statistics.median(cost / ours for cost, ours in zip(column, our_column))
                  for column, our_column in zip(zip(*costs), zip(*figures["xfp.load"]))]
        yield [name, f"{1e3 * statistics.median(elapsed):.1f} ms", f"{1e3 * statistics.median(busy):.1f} ms",
               f"{ratios[0]:.2f}", f"{ratios[1]:.2f}"]


def main():
    args = parse()
    os.makedirs(args.folder, exist_ok=True)
    os.chdir(args.folder)
    if args.worker:
        work(args)
        return
    make_model(args)
    print(f"{processor()}, {args.threads} threads, {args.dtype}, load average {os.getloadavg()[0]:.0f}")
    workers = {"xfp.load": Worker(args, "xfp"), "transformers": Worker(args, "torch")}
    texts, prompts = {"xfp.load": [], "xfp generate": [], "transformers": []}, {name: [] for name in workers}
    for _ in range(args.rounds):
        for name, worker in workers.items():
            texts[name].append(worker.ask("text"))
            if args.prompt:
                prompts[name].append(worker.ask("prompt"))
        texts["xfp generate"].append(text_of_xfp(args))
    head = ["elapsed", "of processors", "elapsed, by xfp.load's", "of processors, by xfp.load's"]
    print(table(["a token", *head], rows(texts)))
    if args.prompt:
        print(table([f"a prompt of {args.prompt}", *head], rows(prompts)))
    for worker in workers.values():
        worker.end()
    show_memory(args)
    if args.parallel:
        show_parallel(args)


def make_model(args):
    if args.checkpoint and not os.path.exists("model.xfp"):
        subprocess.run([os.path.join(args.tools, "xfp"), "convert", args.checkpoint, "-o", "model.xfp", "-q",
                        "--drop-cache", *args.options.split()], check=True)
    elif not args.checkpoint:
        from generate import make_model as make

        make(args)


def show_memory(args):
    worker = Worker(args, "xfp")
    imports, peak, anonymous, mapped = worker.ask("memory")
    bundle = os.path.getsize("model.xfp")
    print(f"memory: {peak / 1e6:.0f} MB at most after 64 tokens, {imports / 1e6:.0f} MB after imports, bundle "
          f"{bundle / 1e6:.0f} MB; {(peak - imports - bundle) / 1e6:+.0f} MB above their sum; at the end "
          f"{anonymous / 1e6:.0f} MB anonymous, {mapped / 1e6:.0f} MB of files")
    worker.end()


def show_parallel(args):
    worker = Worker(args, "none")
    runs = [worker.ask("parallel") for _ in range(args.rounds)]
    medians = [[statistics.median(column) for column in zip(*run)] for run in zip(*runs)]
    print(table(["Python threads", "tokens/s", "by one thread's", "of processors a token"],
                [[count, f"{1 / elapsed:.2f}", f"{statistics.median(run[0][0] / run[i][0] for run in runs):.2f}",
                  f"{1e3 * busy:.1f} ms"] for i, (count, (elapsed, busy)) in enumerate(zip((1, 2, 4), medians))]))
    worker.end()


if __name__ == "__main__":
    main()
