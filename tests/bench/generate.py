# SPDX-License-Identifier: Apache-2.0
"""Text: tokens per second of xfp generate, and of llama.cpp's Q4_K_M of the same model, on a generated dense model.

    generate.py --folder DIR --tools DIR [--llama DIR] [--threads 2] [--rounds 5] [--options OPTIONS]

Everything goes to --folder, and is made once, the bundle with OPTIONS of xfp convert (one word of the shell's).
--tools has xfp and make-checkpoint; --llama is a build of llama.cpp from its public source, with include/,
ggml/include/ and build/bin/; for it, Python needs the package gguf. Programs take turns, with pauses, as llama.cpp's
threads spin. Each is told by the median; processor time is that of all threads, for machines that others use, too, and
is best compared with --threads 1.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--tools", required=True)
    parser.add_argument("--llama")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--options", default="--profile balanced")
    parser.add_argument("--layers", type=int, default=16)
    return parser.parse_args()


def make_model(args):
    if os.path.exists("model.xfp"):
        return
    subprocess.run([os.path.join(args.tools, "tests/make-checkpoint"), "--family", "llama", "--layers",
                    str(args.layers), "--hidden", "2048", "--intermediate", "8192", "--heads", "32", "--kv-heads", "8",
                    "--vocab", "32000", "model"], check=True)
    subprocess.run([sys.executable, os.path.join(HERE, "../make-tokenizer.py"), "model"], check=True)
    subprocess.run([os.path.join(args.tools, "xfp"), "convert", "model", "-o", "model.xfp", "-q",
                    "--drop-cache", *args.options.split()], check=True)


def write_gguf(folder, path):
    import gguf
    import numpy as np

    def halves(x, heads):
        """Permute the halves of a head to adjacent pairs, the order of llama.cpp."""
        return x.reshape(heads, 2, len(x) // heads // 2, -1).swapaxes(1, 2).reshape(x.shape)

    config = json.load(open(f"{folder}/config.json"))
    data = np.memmap(f"{folder}/model.safetensors", dtype="u1", mode="r")
    size = struct.unpack("<Q", bytes(data[:8]))[0]
    header = json.loads(bytes(data[8:8 + size]))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        first, last = (8 + size + at for at in tensor["data_offsets"])
        x = (data[first:last].view("<u2").astype("u4") << 16).view("f4").reshape(tensor["shape"])
        words = name.removesuffix(".weight").split(".", 3)
        if words[0] == "model" and words[1] == "layers":
            if words[3] in ("self_attn.q_proj", "self_attn.k_proj"):
                x = halves(x, config["num_attention_heads" if "q_" in words[3] else "num_key_value_heads"])
            to = f"blk.{words[2]}.{PARTS[words[3]]}.weight"
        else:
            to = WHOLE[name.removesuffix(".weight")] + ".weight"
        writer.add_tensor(to, np.ascontiguousarray(x if x.ndim == 1 else x.astype("f2")))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_llama(args):
    libraries = os.path.join(args.llama, "build/bin")
    if not os.path.exists("llama_text"):
        subprocess.run(["cc", "-O2", "-I", os.path.join(args.llama, "include"), "-I",
                        os.path.join(args.llama, "ggml/include"), os.path.join(HERE, "llama_text.c"), "-o",
                        "llama_text", "-L", libraries, "-Wl,-rpath," + os.path.abspath(libraries), "-lllama", "-lggml",
                        "-lggml-base"], check=True)
    if not os.path.exists("model.gguf"):
        write_gguf("model", "f16.gguf")
        subprocess.run(["./llama_text", "quantize", "f16.gguf", "making.gguf"], check=True)
        os.rename("making.gguf", "model.gguf")
        os.remove("f16.gguf")


def run_llama(args):
    line = subprocess.run(["./llama_text", "run", "model.gguf", str(args.threads), "16", "32"], check=True,
                          stdout=subprocess.PIPE).stdout
    return [float(number) for number in line.split()]


def run_xfp(args, report):
    """Measure the difference between a long text and a short one, as processor time is that of the whole process."""
    spent = []
    for tokens in (33, 2):
        before = os.times()
        out = subprocess.run([os.path.join(args.tools, "xfp"), "generate", "--json", "--prompt", "fifteen letters",
                              "-n", str(tokens), "--threads", str(args.threads), "model.xfp"], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        after = os.times()
        said = json.loads(out)
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
        if tokens > 2:
            report.append(said)
            wall = 1e3 * said["seconds"] / said["tokens"]
    return [wall, 1e3 * (spent[0] - spent[1]) / 31]


def main():
    args = parse()
    for name in ("folder", "tools", "llama"):
        if getattr(args, name):
            setattr(args, name, os.path.abspath(getattr(args, name)))
    os.makedirs(args.folder, exist_ok=True)
    os.chdir(args.folder)
    make_model(args)
    if args.llama:
        make_llama(args)
    ours, theirs, report = [], [], []
    for _ in range(args.rounds):
        ours.append(run_xfp(args, report))
        time.sleep(1)
        if args.llama:
            theirs.append(run_llama(args))
            time.sleep(1)
    for name, rows, path in (("xfp", ours, "model.xfp"), ("llama.cpp Q4_K_M", theirs, "model.gguf")):
        if rows:
            wall, processor = (statistics.median(column) for column in zip(*rows))
            print(f"{name}: {os.path.getsize(path) / 1e6:.0f} MB, {wall:.1f} ms per token ({1e3 / wall:.1f}/s), "
                  f"{processor:.1f} ms of processors")
    share = [r["weights_read"] / r["seconds"] / r["bandwidth"] for r in report if r["bandwidth"]]
    if share:
        print(f"xfp reads weights at {100 * statistics.median(share):.0f} % of what memory gives")
    if theirs:
        pairs = zip(zip(*theirs), zip(*ours))
        print("llama.cpp takes %.2f times as long, and %.2f times the processors' time" % tuple(
            statistics.median(their) / statistics.median(our) for their, our in pairs))


if __name__ == "__main__":
    main()
