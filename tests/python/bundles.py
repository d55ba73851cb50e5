#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The contents of bundles, how long they stay mapped, and bundles that cannot be opened."""
import copy
import hashlib
import os
import pickle
import re
import signal
import tarfile
import tempfile
import threading
import time
import unittest

import numpy as np
from common import GATE, HEAD, Q, WORDS, Case, bundle, path_of, random, run
from read_bundle import CLASSES, DTYPES, FATES, MODES, Bundle as Reader

import xfp


def mappings(path):
    with open("/proc/self/maps", encoding="utf-8") as file:
        return sum(line.rstrip("\n").endswith(path) for line in file)


class Contents(Case):
    def test_records(self):
        for name in ("v2.xfp", "auto.xfp", "kept.xfp", "tied.xfp", "fused.xfp"):
            opened, reader = bundle(name), Reader(path_of(name))
            self.assertEqual([len(table) for table in (opened.units, opened.matrices, opened.tensors, opened.files)],
                             [len(table) for table in (reader.units, reader.matrices, reader.tensors, reader.files)])
            self.assertEqual((opened.info.family, opened.info.weights), (reader.family, reader.weights))
            self.assertEqual(opened.info.json.encode(), reader.content("xfp.json"))
            self.assertEqual((opened.info.path, opened.info.file_bytes),
                             (path_of(name), os.path.getsize(path_of(name))))
            for unit, expected in zip(opened.units, reader.units):
                for key in "name role k experts first_matrix rows cols bytes outliers cos_median cos_p5 error".split():
                    self.assertEqual(getattr(unit, key), expected[key], key)
                self.assertEqual((unit.class_, unit.mode, unit.dtype, unit.met),
                                 (CLASSES[expected["class"]], MODES[expected["mode"]], DTYPES[expected["dtype"]],
                                  bool(expected["met"])))
                self.assertEqual(opened.unit(unit.name, unit.role), unit)
            for matrix, expected in zip(opened.matrices, reader.matrices):
                for key in "unit expert k exponent tensor base row_stride col_stride outliers source".split():
                    self.assertEqual(getattr(matrix, key), expected[key], key)
                self.assertGreater(len(matrix.index), 0)
            for tensor, expected in zip(opened.tensors, reader.tensors):
                self.assertEqual(
                    (tensor.name, tensor.reason, tensor.fate, tensor.dtype),
                    (expected["name"], expected["reason"], FATES[expected["fate"]], DTYPES[expected["dtype"]]))
                if tensor.fate == "kept":
                    self.assertEqual(tensor.data.shape, tensor.shape)
                    self.assertEqual(tensor.data.tobytes(), reader.tensor(tensor.name))
                elif tensor.fate == "tied":
                    self.assertEqual(opened.tensors[tensor.tied].name, WORDS)
                else:
                    self.assertIsNone(tensor.data)
                self.assertEqual(opened.tensor(tensor.name), tensor)
            for number, file in enumerate(opened.files):
                self.assertEqual(file.data.tobytes(), reader.content(reader.file_member(number)))
                self.assertEqual(opened.file(file.name), file)

    def test_tables(self):
        units = bundle().units
        self.assertEqual(units[-1], units[len(units) - 1])
        self.assertEqual(units[1:3], [units[1], units[2]])
        self.assertEqual(list(units), [units[i] for i in range(len(units))])
        self.assertIn(units[2], units)
        with self.assertRaises(IndexError):
            units[len(units)]

    def test_names(self):
        opened = bundle("fused.xfp")
        fused = next(unit.name for unit in opened.units if unit.role == "up")
        self.refused(rf"fused.xfp: the units of {fused} are gate, up; choose a role", opened.linear, fused)
        self.refused("are gate, up; it has no role q", opened.linear, fused, "q")
        self.assertEqual(opened.linear(fused, "up").role, "up")
        self.assertNotEqual(opened.dequantize(fused, "up").tobytes(), opened.dequantize(fused, "gate").tobytes())
        self.refused("has no unit or tensor none; bundle.tensors lists them", opened.linear, "none")
        self.refused("has no tensor none; bundle.tensors lists them", opened.tensor, "none")
        for function in opened.linear, opened.unit, opened.dequantize, opened.file:
            for bad in [1], None:
                self.refused("the name of a .* must be a str, not", function, bad)
        self.refused("a role must be a str, not list", opened.linear, fused, ["up"])
        self.refused("has no unit none; bundle.units lists them", opened.linear, "none", "q")
        self.refused("has no unit none", opened.unit, "none")
        self.refused("has no file none; bundle.files lists them", opened.file, "none")
        self.refused("NUL", opened.tensor, "a\0b")
        self.refused("must be a str", opened.tensor, 3)
        self.refused("not stored as one matrix", opened.linear, "model.norm.weight")
        self.assertEqual(bundle("tied.xfp").linear(HEAD).role, None)

    def test_slices(self):
        opened = bundle()
        for bad in (np.s_[0:4, 0:8], 3, [0, 1]):
            self.refused("rows must be a slice such as .*; all columns are decoded", opened.dequantize, Q, rows=bad)
        self.assertEqual(opened.dequantize(Q, rows=np.s_[4:8]).tobytes(), opened.dequantize(Q)[4:8].tobytes())
        self.refused("bounds of a slice must not be negative", opened.linear, HEAD, slice=np.s_[-8:])
        self.refused("the end of the columns must be an integer, not 2.5", opened.linear, Q, slice=np.s_[:, 0:2.5])
        self.refused("a part of them with step 1", opened.linear, Q, slice=np.s_[0:8:2])

    def test_copies(self):
        opened = bundle()
        q = opened.linear(Q)
        self.assertIs(copy.copy(q), q)
        self.assertIs(copy.deepcopy(q), q)
        for one in opened, q, q.handle:
            self.refused("cannot be pickled or copied; open the bundle again", pickle.dumps, one)
        for one in opened, q.handle:
            self.refused("cannot be pickled or copied", copy.copy, one)
            self.refused("cannot be pickled or copied", copy.deepcopy, one)

    def test_read_only(self):
        opened = bundle("kept.xfp")
        kept = next(tensor for tensor in opened.tensors if tensor.data is not None)
        for array in (kept.data, opened.files[0].data, opened.matrices[0].index):
            with self.assertRaises(ValueError):
                array[...] = 0
            with self.assertRaises(ValueError):
                array.setflags(write=True)

    def test_lifetime(self):
        path = path_of("kept.xfp")
        self.assertEqual(mappings(path), 0)
        with xfp.Bundle(path) as opened:
            q, data, file = opened.linear(Q), opened.tensor("model.norm.weight").data, opened.files[0]
            x = random(1, q.shape[1])
            y, expected = q.multiply(x), data.tobytes()
        self.assertTrue(opened.closed)
        self.assertIn("closed", repr(opened))
        del opened
        self.assertGreater(mappings(path), 0)
        self.assertEqual((q.multiply(x).tobytes(), data.tobytes()), (y.tobytes(), expected))
        del q
        self.assertGreater(mappings(path), 0)
        part = data[3:5]
        del data
        self.assertEqual(part.tobytes(), expected[6:10])
        self.assertGreater(mappings(path), 0)
        del part
        self.assertTrue(file.data.tobytes())
        del file
        self.assertEqual(mappings(path), 0)

    def test_use_after_close(self):
        opened = bundle()
        opened.close()
        opened.close()
        for use in (lambda: opened.units, lambda: opened.matrices, lambda: opened.tensors, lambda: opened.files,
                    lambda: opened.info, lambda: opened.unit(Q), lambda: opened.tensor(Q), lambda: opened.file("a"),
                    lambda: opened.linear(Q), lambda: opened.dequantize(Q), opened.check, opened.__enter__):
            self.refused("auto.xfp: the bundle is closed; open it again", use)

    def test_check(self):
        opened, seen = bundle(), []
        opened.check()
        opened.check(lambda done, total: seen.append((done, total)))
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(seen[-1][0], seen[-1][1])
        self.assertLess(seen[-2][0], seen[-2][1])
        self.assertEqual({total for _, total in seen}, {opened.info.file_bytes})

        def stop(_done, _total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            opened.check(stop)

    def test_interrupted_check(self):
        """Ctrl-C in the middle of a check is not lost."""
        opened = bundle()
        self.raise_on_interrupt()
        for delay in range(20):
            timer = threading.Timer(0.001 + delay * 0.0003, os.kill, (os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                end = time.monotonic() + 30
                while time.monotonic() < end:
                    opened.check()
            timer.join()
        opened.check()


class Damage(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(path_of("auto.xfp"), "rb") as file:
            self.data = bytearray(file.read())
        with tarfile.open(path_of("auto.xfp"), "r:") as tar:
            self.places = {member.name: (member.offset_data, member.size) for member in tar.getmembers()}

    def written(self, data):
        path = os.path.join(self.folder.name, "bad.xfp")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def bad(self, pattern, data):
        self.refused(pattern, xfp.Bundle, self.written(data), kind=xfp.BadInputError)

    def test_newer(self):
        at, size = self.places["xfp.idx"]
        old = hashlib.sha256(self.data[at: at + size]).hexdigest().encode()
        self.data[at + 8] += 1
        new = hashlib.sha256(self.data[at: at + size]).hexdigest().encode()
        self.assertEqual(self.data.count(old), 1)
        self.bad("bad.xfp: format version 2 is not supported .*; use another", self.data.replace(old, new))

    def test_truncated(self):
        """The first weights that are missing are named, if the index is there."""
        opened = bundle()
        for member, owner in (("files/config.json", opened.units[0].name), ("u/000002.idx", Q),
                              ("u/000008.idx", opened.units[8].name), ("t/000012.raw", opened.tensors[12].name)):
            for size in (self.places[member][0] + 1, self.places[member][0] - 512):
                self.bad(f"bad.xfp: truncated: the weights from {re.escape(owner)} on are missing; copy or convert it",
                         self.data[:size])
        for size in (len(self.data) - 1, self.places["xfp.sum"][0], self.places["xfp.idx"][0] + 600, 8192, 600):
            self.bad("bad.xfp: .*(truncated|damaged|too short).*copy or convert it again", self.data[:size])
        at, size = self.places["xfp.idx"]
        for byte in range(at, at + size, 61):  # a damaged index names something else, or nothing
            damaged = self.data[:self.places["u/000002.idx"][0]]
            damaged[byte] ^= 255
            self.bad("bad.xfp: ", damaged)

    def test_foreign(self):
        self.bad("too short", b"")
        self.bad("not a .xfp bundle", b"PK\3\4" * 4000)
        self.bad("not a .xfp bundle", (8).to_bytes(8, "little") + b"{}      " + bytes(9000))
        self.refused("no such file", xfp.Bundle, "none.xfp", kind=xfp.BadInputError)
        self.refused("not a regular file", xfp.Bundle, self.folder.name, kind=xfp.BadInputError)
        self.refused("NUL", xfp.Bundle, "a\0b")
        self.refused("the path of a bundle is empty", xfp.Bundle, "")
        self.refused("must be a str or a path, not int", xfp.Bundle, 3)

    def test_damaged(self):
        self.data[self.places["u/000002.idx"][0]] ^= 1
        with xfp.Bundle(self.written(self.data)) as opened:
            self.refused(Q, opened.check, kind=xfp.BadInputError)

    def test_closed_by_another_thread(self):
        """Contents are read while another thread closes the bundle."""
        program = f"""
import sys, threading, time, xfp
sys.setswitchinterval(1e-6)
end, opened, wrong = time.monotonic() + 4, [xfp.Bundle({path_of("auto.xfp")!r})], []

def read():
    while time.monotonic() < end:
        one = opened[0]
        try:
            if not one.info.path.endswith("auto.xfp") or one.tensor({HEAD!r}).name != {HEAD!r}:
                wrong.append(one)
        except xfp.UsageError as error:
            if "is closed" not in str(error):
                wrong.append(error)

threads = [threading.Thread(target=read) for _ in range(3)]
for thread in threads:
    thread.start()
while time.monotonic() < end:
    closing, opened[0] = opened[0], xfp.Bundle({path_of("auto.xfp")!r})
    closing.close()
for thread in threads:
    thread.join()
sys.exit(len(wrong))
"""
        self.assertEqual(run(program), (0, ""))

    def test_many_threads(self):
        """Linears are opened, used and freed by several threads while the bundle closes."""
        opened, failures = bundle(), []

        def use():
            try:
                for _ in range(50):
                    gate = opened.linear(GATE)
                    gate.multiply(random(1, gate.shape[1]), expert=2)
            except xfp.UsageError as error:
                if "is closed" not in str(error):
                    failures.append(error)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        opened.close()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
