#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Convert a generated mixture of experts with --calibrate-ids, and compare its cost with what xfp plan predicts.

    calibrated-moe.py [--small] [--jobs N] [--tokens N] FOLDER

FOLDER gets the model (make-moe.py; 4.2 billion weights, 8.4 GB; it stays, for the next run), cache, work folder and
bundle: 16 GB together. Memory is the sum of the proportional set sizes of all processes, and disk that of cache, work
folder and bundle, both sampled by tests/measure-peak. Takes hours; --small has 89 million weights and takes minutes.
Times mean nothing if other programs need the processors, except those of processors: all processes together.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def generate(folder, small, tokens):
    arguments = ["--small", "--layers", "8", "--experts", "32"] if small else []
    subprocess.run([sys.executable, os.path.join(HERE, "make-moe.py"), *arguments, "--distinct", "--ids", str(tokens),
                    folder], check=True)


def row(what, planned, took, unit, scale):
    print(f"{what:<16} {planned / scale:10.2f} {unit:<4} {took / scale:10.2f} {unit:<4} {planned / took:8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("folder")
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    model, out, work, cache, peak = (os.path.join(given.folder, name)
                                     for name in ("model", "out.xfp", "out.xfp.work", "cache", "peak.json"))
    if not os.path.exists(os.path.join(model, "ids.npy")):
        shutil.rmtree(model, ignore_errors=True)
        generate(model, given.small, given.tokens)
    for path in (work, cache):
        shutil.rmtree(path, ignore_errors=True)
    if os.path.exists(out):
        os.remove(out)
    options = [model, "-o", out, "--cache", cache, "--calibrate-ids", os.path.join(model, "ids.npy"), "--mode", "v2c",
               "--bits", "2", "--on-miss", "best", f"-j{given.jobs}"]
    plan = json.loads(subprocess.run(["xfp", "plan", "--json", *options], check=True, stdout=subprocess.PIPE).stdout)
    subprocess.run([os.path.join(HERE, "..", "measure-peak"), "-i", "200", "-d", cache, "-d", work, "-d", out, "-o",
                    peak, "xfp", "convert", *options], check=True)
    with open(peak, encoding="utf-8") as file:
        took = json.load(file)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{plan['weights'] / 1e9:.3f} billion weights, {plan['calibration']['tokens']} tokens, -j{given.jobs}\n")
    print(f"{'':<16} {'planned':>15} {'took':>15} {'ratio':>8}")
    row("memory", plan["memory"]["peak"], took["pss"], "MiB", 2 ** 20)
    row("disk", plan["disk"]["total"], took["disk"], "GB", 1e9)
    row("time", plan["time"]["seconds"], took["wall"], "min", 60)
    print(f"\nprocessors       {(used.ru_utime + used.ru_stime) / 60:.2f} min, of all processes and of measuring")
    print("largest         ", ", ".join(f"{name} {size >> 20} MiB" for name, size in sorted(
        took["largest"].items(), key=lambda item: -item[1])[:4]))


if __name__ == "__main__":
    main()
