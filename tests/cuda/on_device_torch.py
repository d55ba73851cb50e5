#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The operators of python/xfp on tensors of torch that are on the GPU, next to the same on the CPU.

    on_device_torch.py FOLDER

FOLDER contains libxfp.so.0 and libxfp-cuda.so.0. The bundle is tests/older/moe.xfp.gz. Prints a line for each check, or
why all are skipped: torch with CUDA and numpy are needed. Exit status: 0 all is right, or skipped; 4 a result is wrong.
"""
import gc
import gzip
import importlib.util
import os
import shutil
import sys
import tempfile
import threading

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST = {"float32": 1e-3, "float16": 1e-2, "bfloat16": 4e-2}  # of the spread of the results


class Checks:
    def __init__(self, folder, torch):
        os.environ.setdefault("XFP_LIBRARY", os.path.join(folder, "libxfp.so.0"))
        sys.path.insert(0, os.path.join(SOURCE, "python"))
        import xfp
        from xfp import ops, packed

        self.torch, self.xfp, self.ops, self.packed = torch, xfp, ops, packed
        self.device, self.wrong = torch.device("cuda:0"), 0

    def tell(self, what, right, more=""):
        print(f"python: {what}: {'ok' if right else 'WRONG'}{more}", flush=True)
        self.wrong += not right

    def near(self, what, found, expected):
        off = float((found.cpu().float() - expected.float()).abs().max() / expected.float().std())
        most = MOST[str(found.dtype).removeprefix("torch.")]
        self.tell(what, found.device == self.device and off <= most, f", {off:.1e} of the spread")

    def vectors(self, count, cols, dtype=None):
        return self.torch.randn(count, cols, generator=self.torch.Generator().manual_seed(count)).to(dtype)

    def unit(self, linear):
        """All types, numbers of vectors of every path, and lists of experts."""
        torch, number, rows = self.torch, self.ops.register(linear), linear.shape[0]
        held = self.ops.upload(linear, self.device)
        for dtype, count in ((torch.float32, 1), (torch.float32, 4), (torch.float16, 16), (torch.bfloat16, 40)):
            x = self.vectors(count, linear.shape[1], dtype)
            more = ()
            if linear.experts > 1:
                chosen = torch.stack([torch.arange(count) % linear.experts, torch.arange(1, count + 1) % linear.experts], 1)
                more = chosen, torch.rand(count, 2)
            operator = torch.ops.xfp.experts if more else torch.ops.xfp.linear
            y = operator(x.to(self.device), *(part.to(self.device) for part in more), number, rows)
            self.near(f"{linear.name}, {count} of {str(dtype)[6:]}", y, operator(x, *more, number, rows))
        return held

    def streams(self, linear):
        """Another stream, another thread, and a graph."""
        torch, number, rows = self.torch, self.ops.register(linear), linear.shape[0]
        held, x = self.ops.upload(linear, self.device), self.vectors(3, linear.shape[1])
        expected, there, stream = torch.ops.xfp.linear(x, number, rows), x.to(self.device), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = torch.ops.xfp.linear(there, number, rows)
        stream.synchronize()
        self.near("another stream", y, expected)
        found = []
        thread = threading.Thread(target=lambda: found.append(torch.ops.xfp.linear(there, number, rows)))
        thread.start()
        thread.join()
        self.near("another thread", found[0], expected)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            y = torch.ops.xfp.linear(there, number, rows)
        there.copy_(2 * x)
        graph.replay()
        torch.cuda.synchronize()
        self.near("a graph", y, 2 * expected)
        return held

    def module(self, linear):
        """A module that moves there and back; its memory is free again."""
        torch, x = self.torch, self.vectors(5, linear.shape[1])
        module = self.packed.PackedLinear(linear.name, [linear], None)
        gc.collect()
        before, expected = torch.cuda.memory_allocated(), module(x)
        module.to("cuda")
        self.near("a module", module(x.to(self.device)), expected)
        module.to("cpu")
        gc.collect()
        self.tell("memory of a module that was moved back", torch.cuda.memory_allocated() == before)

    def all(self, path):
        with self.xfp.Bundle(path) as bundle:
            linears = [bundle.linear(unit.name, unit.role) for unit in bundle.units]
            words = bundle.linear("model.embed_tokens.weight")
        for linear in [*linears, words]:
            self.unit(linear)
        ids, number = self.torch.tensor([[5, 0], [7, 5]]), self.ops.register(words)
        self.near("rows", self.torch.ops.xfp.rows(ids.to(self.device), number, words.shape[1], self.torch.float32),
                  self.torch.ops.xfp.rows(ids, number, words.shape[1], self.torch.float32))
        single = next(linear for linear in linears if linear.experts == 1)
        self.streams(single)
        self.module(single)
        return 4 if self.wrong else 0


def main(folder):
    missing = [name for name in ("numpy", "torch") if not importlib.util.find_spec(name)]
    if missing:
        print(f"python: skipped: {sys.executable} has no {' and no '.join(missing)}")
        return 0
    import torch

    if not torch.cuda.is_available():
        print(f"python: skipped: torch {torch.__version__} finds no CUDA device")
        return 0
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "moe.xfp")
        with gzip.open(os.path.join(SOURCE, "tests/older/moe.xfp.gz")) as packed, open(path, "wb") as file:
            shutil.copyfileobj(packed, file)
        return Checks(folder, torch).all(path)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
