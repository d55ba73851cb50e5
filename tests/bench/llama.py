# SPDX-License-Identifier: Apache-2.0
"""Products of one matrix with 1 to 512 vectors: v2c with each k, with and without outliers, from a written bundle,
beside llama.cpp's types of as many bits (llama.c), which GGML_CPU_LIBRARY=FILE adds.

With few vectors the matrix is larger than caches; with many, arithmetic is the limit, and some rows are enough.
"""
import os

from common import note, timed

OUTLIERS = {"": ["--outlier-sigma", "none"], "-outliers": ["--outlier-sigma", "3", "--outlier-cap", "0.003"]}
VECTORS = {1: 0, 2: 0, 8: 0, 32: 8192, 512: 2048}  # and the rows to multiply by; 0: all


def bundles(bench, options):
    """Paths of a bundle for each k, with and without outliers."""
    model = bench.model("products", "--dense", "64x512:1" if bench.quick else "98304x4096:1")
    for name, outliers in OUTLIERS.items():
        for k in (4,) if bench.quick else range(2, 7):
            path = bench.path(f"k{k}{name}.xfp")
            bench.fresh()
            bench.convert(model, options.jobs, "--mode", "v2c", "--bits", str(k), "--group-size", "32", "--balance", "0",
                          "--on-miss", "best", *outliers)
            os.rename(bench.path("out.xfp"), path)
            yield path


def run(bench, options):
    paths = list(bundles(bench, options))
    results = {}
    for threads in sorted({1, options.jobs}):
        for vectors, rows in VECTORS.items():
            limit = ["--rows", str(rows)] if rows else []
            _, results[f"{vectors} vectors, {threads} threads"] = timed(
                [bench.tool("llama"), "--threads", str(threads), "--vectors", str(vectors),
                 "--rounds", str(options.rounds), *limit, *paths])
            print(results[f"{vectors} vectors, {threads} threads"])
    note("Medians of runs in a new order each round, with pauses between them; ratios are of medians.")
    return results
