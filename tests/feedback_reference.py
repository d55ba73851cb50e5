# SPDX-License-Identifier: Apache-2.0
"""Error feedback in numpy, from the definitions in kernels/feedback/feedback.h and kernels/encode/compact.h.

Written in the stated precision and order, so that every bit is the kernels'; with `plain`, the same method in f64
throughout. A matrix is x [rows, cols], marked [rows, cols].

    feedback_reference.py PROGRAM    compare tests/feedback with it, with every instruction set
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

F, D = np.float32, np.float64
DAMPING = F(0.06)
SEARCHES = {2: (4, 0.65, 1.17), 3: (4, 0.80, 1.10), 4: (4, 0.92, 1.055), 5: (8, 0.97, 1.03), 6: (16, 0.96, 1.02)}


# ---- H and R -----------------------------------------------------------------------------------------


def moments(x):
    """X^T X / n: sums over the inputs in order."""
    total = np.zeros((x.shape[1], x.shape[1]))
    for row in x.astype(D):
        total += np.outer(row, row)
    return (total / len(x)).astype(F)


def blend(own, stack, inputs, cols):
    if stack is None:
        return own
    b = F(D(cols) / (cols + inputs)) if own is not None else F(1)
    a = F(1) - b
    own = np.zeros_like(stack) if own is None else own
    return (D(a) * own.astype(D) + D(b) * stack.astype(D)).astype(F)


def balance(p, down):
    """G = D P D of a matrix, or of its diagonal."""
    down = down.astype(D)
    return (p.astype(D) * down[:, None] * down if p.ndim == 2 else p.astype(D) * down * down).astype(F)


def scale_of(diagonal):
    trace = 0.0
    for g in diagonal.astype(D):
        trace += g
    return F(len(diagonal) / trace) if trace > 0 else F(0)


def hessian(g, scale):
    h = (g.astype(D) * D(scale)).astype(F)
    at = np.arange(len(h))
    h[at, at] = (np.diag(g).astype(D) * D(scale) + D(DAMPING)).astype(F)
    return h


def order_of(diagonal, group):
    cols = len(diagonal)
    sums = []
    for first in range(0, cols, group):
        total = 0.0
        for value in diagonal[first : first + group].astype(D):
            total += value
        sums.append(total)
    order = []
    for g in np.argsort(-np.array(sums), kind="stable"):
        own = np.arange(g * group, min(cols, (g + 1) * group))
        order.extend(own[np.argsort(-diagonal[own], kind="stable")])
    return np.array(order)


def factor(h):
    """R, upper triangular, H = R R^T; or the column whose pivot is not above zero."""
    rest, r = h.astype(D), np.zeros(h.shape, F)
    for c in reversed(range(len(h))):
        if not rest[c, c] > 0:
            return c
        r[c, c] = np.sqrt(rest[c, c])
        r[:c, c] = rest[:c, c] / D(r[c, c])
        rest[:c, :c] -= np.outer(r[:c, c].astype(D), r[:c, c].astype(D))
    return r


# ---- the search ----------------------------------------------------------------------------------------


class Book:
    """A stored library: entries [L, 2^k], ratios; and the search's tables."""

    def __init__(self, k, entry, ratio):
        self.k, self.entry, self.ratio = k, entry.astype(F), ratio.astype(F)
        self.bits = len(ratio).bit_length() - 1
        self.edge = F(0.5) * (self.entry[:, :-1] + self.entry[:, 1:])
        self.ratio_edge = F(0.5) * (self.ratio[:-1] + self.ratio[1:])
        with np.errstate(divide="ignore"):
            self.inverse = np.where(self.ratio > 0, F(1) / self.ratio, F(0))
        steps, low, step = SEARCHES[k]
        self.shift = 2 if k <= 3 else 1 if k == 4 else 0
        count = len(self.entry)
        self.target = np.zeros(64, F)
        self.table = np.zeros((256 >> self.shift, steps * count), np.int64)
        for e in range(count):
            largest = max(abs(self.entry[e, 0]), abs(self.entry[e, -1])) or F(1)
            delta = F(low)
            for j in range(steps):
                scale, inverse = delta / largest, largest / delta
                self.target[j * count + e] = scale
                unit = scale * scale * (F(63.75) * F(1 << (2 * k)))
                u = np.arange(1, 256 >> self.shift).astype(F)
                code = (u + F(0.5)) * F(1 << self.shift) - F(0.5) - F(128)
                y = code * (F(1) / F(124)) * inverse
                d = y - self.entry[e][self.cell(e, y)]
                d = d * d * unit
                self.table[1:, j * count + e] = np.where(d < 255, np.floor(d + F(0.5)), 255)
                delta = delta * F(step)

    def cell(self, e, x):
        """Indices of x, [...], in units of the entries; e is a number, or one for each leading element of x."""
        edge = self.edge[e]
        if edge.ndim == 1:
            return (x[..., None] > edge).sum(-1)
        return (x[:, :, None] > edge[:, None, :]).sum(-1)

    def decode(self, byte, index):
        """[groups] and [groups, size]"""
        e, r = byte >> self.bits, byte & (len(self.ratio) - 1)
        return np.take_along_axis(self.entry[e], index, 1) * self.ratio[r][:, None]


def fold(values):
    """Sums of groups as lanes add them: [groups, size]."""
    lanes = np.zeros((len(values), 16), F)
    for first in range(0, values.shape[1], 16):
        lanes = lanes + values[:, first : first + 16]
    for width in (8, 4, 2, 1):
        lanes = lanes[:, :width] + lanes[:, width : 2 * width]
    return lanes[:, 0]


def nearest_ratios(book, scale):
    return np.maximum((scale[:, None] > book.ratio_edge).sum(1), 1)


def propose(book, y, marked):
    """The bytes that the search of compact.h evaluates, [4, groups], and the best, [groups]."""
    y = np.where(marked, F(0), y).astype(F)
    square, largest = fold(y * y), np.abs(y).max(1)
    largest = np.where(largest < F(2.0**-40), F(0), largest)
    live = largest > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(live, F(124) / largest, F(0))
    code = np.where(marked, 0, np.rint(y * step[:, None]).astype(np.int64) + 128)
    sums = book.table[code >> book.shift].sum(1)
    key = sums << 8 | np.arange(sums.shape[1])
    best = key.reshape(len(key), -1, len(book.entry)).min(1)
    pairs = np.sort(best, 1)[:, :2] & 255
    chosen, min_error, tried = np.zeros(len(y), np.int64), square.copy(), []

    def products(e, r):
        v = y * book.inverse[r][:, None]
        number = np.where(marked, F(0), np.take_along_axis(book.entry[e], book.cell(e, v), 1))
        return fold(v * number), fold(number * number)

    def offer(mask, e, r, yc, cc):
        ratio = book.ratio[r]
        error = square + ratio * ratio * (cc - (yc + yc))
        better = mask & (min_error > error)
        min_error[better] = error[better]
        chosen[better] = (e << book.bits | r)[better]

    for i in range(2):
        pair = pairs[:, i]
        e = pair & (len(book.entry) - 1)
        r = nearest_ratios(book, book.target[pair] * largest)
        yc, cc = products(e, r)
        offer(live, e, r, yc, cc)
        with np.errstate(divide="ignore", invalid="ignore"):
            again = nearest_ratios(book, book.ratio[r] * yc / cc)
        other = live & (again != r) & (cc > 0)
        again = np.where(other, again, r)
        offer(other, e, again, *products(e, again))
        tried += [np.where(live, e << book.bits | r, 0), np.where(live, e << book.bits | again, 0)]
    return np.array(tried), np.where(live, chosen, 0)


# ---- rows ----------------------------------------------------------------------------------------------


def residual_of(target, q, row):
    """fp16 residuals, and what is stored for the target."""
    inverse = F(1) / row
    value = q * row
    rest = np.clip((target * row).astype(D) - value.astype(D), -65504, 65504).astype(np.float16)
    return rest, (value + rest.astype(F)) * inverse


class Rows:
    """Rows of a block: y, targets, errors and codes, in storage order."""

    def __init__(self, book, group, order, x, marked, row, plain=False):
        self.book, self.group, self.order, self.plain = book, group, order, plain
        self.row, self.marked = row.astype(F), marked
        self.y = x.astype(F) * (F(1) / self.row)[:, None]
        self.rounded = (lambda a: a) if plain else (lambda a: a.astype(F))
        self.target = np.zeros(x.shape, D if plain else F)
        self.error = np.zeros(x.shape, D if plain else F)
        self.index = np.zeros(x.shape, np.int64)
        self.byte = np.zeros((len(x), -(-x.shape[1] // group)), np.int64)
        self.starts = [i for i in range(len(order)) if i == 0 or order[i] // group != order[i - 1] // group]
        self.starts.append(len(order))

    def quantize(self, byte, c, target):
        """Indices and values of a column."""
        book, marked = self.book, self.marked[:, c]
        e, r = byte >> book.bits, byte & (len(book.ratio) - 1)
        search = np.where(marked, F(0), target.astype(F)) * book.inverse[r]
        index = np.where(r > 0, book.cell(e, search[:, None])[:, 0], 0)
        q = book.decode(byte, index[:, None])[:, 0]
        _, stored = residual_of(target.astype(F), q, self.row)
        return index, np.where(marked, stored, q)

    def values(self):
        q = np.zeros(self.y.shape, F)
        for c in range(q.shape[1]):
            byte = self.byte[:, c // self.group]
            q[:, c] = self.book.decode(byte, self.index[:, c : c + 1])[:, 0]
            _, stored = residual_of(self.target[:, c].astype(F), q[:, c], self.row)
            q[:, c] = np.where(self.marked[:, c], stored, q[:, c])
        return q

    def residuals(self):
        """[rows, cols], of marked columns only."""
        out = np.zeros(self.y.shape, np.float16)
        for c in range(out.shape[1]):
            q = self.book.decode(self.byte[:, c // self.group], self.index[:, c : c + 1])[:, 0]
            out[:, c] = np.where(self.marked[:, c], residual_of(self.target[:, c].astype(F), q, self.row)[0], 0)
        return out

    def encode(self, r, tried):
        """`r`: R in order."""
        order, book, group = self.order, self.book, self.group
        pivot = np.diag(r)
        share = (r / pivot).astype(F) if not self.plain else r / pivot
        sums = self.y[:, order].astype(D)
        for first, end in zip(self.starts, self.starts[1:]):
            own = order[first:end]
            g = own[0] // group
            targets = np.zeros((len(sums), group), F)
            marks = np.ones((len(sums), group), bool)
            targets[:, own % group] = sums[:, first:end].astype(F)
            marks[:, own % group] = self.marked[:, own]
            bytes_of, best = propose(book, targets, marks)
            min_loss = None
            for byte in bytes_of if tried > 1 else [best]:
                rest = sums[:, first:end].copy()
                loss = np.zeros(len(rest))
                index, target = np.zeros(rest.shape, np.int64), np.zeros(rest.shape)
                error = np.zeros(rest.shape)
                for i, c in enumerate(own):
                    t = self.rounded(rest[:, i])
                    index[:, i], q = self.quantize(byte, c, t)
                    part = self.rounded(self.rounded(t - q) * self.rounded(pivot[first + i])).astype(D)
                    loss += part * part
                    target[:, i], error[:, i] = t, self.rounded(self.y[:, c] - q)
                    rest[:, i + 1 :] += np.outer(error[:, i], share[first + i, first + i + 1 : end].astype(D))
                better = np.ones(len(rest), bool) if min_loss is None else loss < min_loss
                min_loss = np.where(better, loss, min_loss) if min_loss is not None else loss
                for c_to, values in ((self.index, index), (self.target, target), (self.error, error)):
                    c_to[np.ix_(better, own)] = values[better]
                self.byte[better, g] = byte[better]
            for i, c in enumerate(own):
                sums[:, end:] += np.outer(self.error[:, c].astype(D), share[first + i, end:].astype(D))

    def improve(self, h):
        """One pass over columns; `h` in order."""
        order, wide = self.order, h.astype(D)
        for first, end in zip(self.starts, self.starts[1:]):
            own = order[first:end]
            byte = self.byte[:, own[0] // self.group]
            sums = np.zeros((len(self.y), end - first))
            for j in list(range(first)) + list(range(end, len(order))):
                sums += np.outer(self.error[:, order[j]].astype(D), wide[j, first:end])
            for i, c in enumerate(own):
                v = sums[:, i].copy()
                for j in range(first, end):
                    v += self.error[:, order[j]].astype(D) * wide[j, first + i]
                v = self.rounded(v)
                q = self.book.decode(byte, self.index[:, c : c + 1])[:, 0]
                _, stored = residual_of(self.target[:, c].astype(F), q, self.row)
                q = np.where(self.marked[:, c], stored, q)
                t = self.rounded(q.astype(D) + v.astype(D) / wide[first + i, first + i])
                self.index[:, c], q = self.quantize(byte, c, t)
                self.target[:, c], self.error[:, c] = t, self.rounded(self.y[:, c] - q)


def output_error(y, q, h):
    """tr (y - q) H (y - q)^T; y and q in storage order, h too, without damping."""
    e = y.astype(D) - q
    return np.einsum("rc,cd,rd->", e, h.astype(D), e)


# ---- cases -----------------------------------------------------------------------------------------------


def quarter_power(d):
    """2^(-d/4) as f32."""
    d = np.asarray(d, np.int64)
    return np.ldexp(np.exp2(-(d % 4) / 4).astype(F), -(d // 4))


def to_bf16(x):
    bits = np.ascontiguousarray(x, F).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(F)


class Case:
    def __init__(self, seed, cols, group=32, k=2, rows=20, inputs=150, stack=0, tried=4, passes=2, batch=64, blocks=1,
                 marked=0.01, dead=0.0, balanced=True):
        rng = np.random.default_rng(seed)
        self.cols, self.group, self.k, self.rows, self.blocks = cols, group, k, rows, blocks
        self.tried, self.passes, self.batch = tried, passes, batch
        mix = rng.standard_normal((cols, cols)) / cols**0.5 * np.exp(0.5 * rng.standard_normal(cols))
        mix[:, rng.random(cols) < dead] = 0

        def sample(count):
            return to_bf16((rng.standard_normal((count, cols)) + 0.5 * rng.standard_normal((count, 1))) @ mix)

        self.x, self.stack = sample(inputs), sample(stack)
        self.d = rng.integers(0, 8, cols).astype(np.uint8) if balanced else np.zeros(cols, np.uint8)
        self.w = (rng.standard_normal((rows, cols)) * 600 * np.exp(rng.standard_normal((rows, 1)))).astype(F)
        self.w[0] = 0
        self.marked = rng.random(self.w.shape) < marked
        self.w[self.marked] *= 6
        square = np.where(self.marked, 0, self.w.astype(D) ** 2).mean(1)
        self.row = np.clip(np.rint(56 - 2 * np.log2(np.maximum(square, 2.0**-40))), 0, 255).astype(np.uint8)
        entries = {5: 8, 6: 4}.get(k, 16)
        level = np.sort(rng.standard_normal((entries, 4000)), 1)[:, 4000 // 2**k // 2 :: 4000 // 2**k][:, : 2**k] / 2
        ratio = np.concatenate([[0], 0.5 * 1.9 ** np.linspace(0, 4, 256 // entries - 1)])
        self.entry, self.ratio = level.astype(np.float16), ratio.astype(np.float16)
        self.entries = entries

    def write(self, path):
        header = [self.cols, self.blocks, self.group, self.k, self.entries, self.rows, len(self.x), len(self.stack),
                  self.tried, self.passes, self.batch]
        parts = [np.array(header, np.uint32), self.x, self.stack, self.d, self.entry, self.ratio, self.row, self.w,
                 self.marked.astype(np.uint8)]
        with open(path, "wb") as file:
            for part in parts:
                file.write(part.tobytes())


class Result:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, dtype, *shape):
        count = int(np.prod(shape))
        values = np.frombuffer(self.data, dtype, count, self.at)
        self.at += values.nbytes
        return values.reshape(shape)

    def triangle(self, padded):
        """The triangle of blocks as a matrix; what is not stored is zero."""
        panels, out = padded // 16, np.zeros((padded, padded), F)
        blocks = iter(self.take(F, panels * (panels + 1) // 2, 16, 16))
        for j in range(panels):
            for i in range(j, panels):
                out[i * 16 : i * 16 + 16, j * 16 : j * 16 + 16] = next(blocks)
        return out


def same(name, actual, expected):
    bad = np.argwhere(actual != expected)
    if len(bad):
        sys.exit(f"{name}: {len(bad)} of {expected.size} differ, the first at {bad[0]}: "
                 f"{actual[tuple(bad[0])]}, expected {expected[tuple(bad[0])]}")


def expected_of(case):
    """For each block: H, R in order, the order, the rows, and output errors: of the method in f64, without feedback."""
    x, stack = from_bf16(case.x), from_bf16(case.stack)
    own = moments(x) if len(x) else None
    all_inputs = moments(stack) if len(stack) else None
    g = balance(blend(own, all_inputs, len(x), case.cols), quarter_power(case.d))
    scale = scale_of(np.diag(g))
    row = np.ldexp(quarter_power(case.row), 14)
    book = Book(case.k, case.entry, case.ratio)
    groups = -(-case.cols // case.group)
    for b in range(case.blocks):
        first, end = (min(case.cols, groups * i // case.blocks * case.group) for i in (b, b + 1))
        own_g = g[first:end, first:end]
        h = hessian(own_g, scale)
        order = order_of(np.diag(h), case.group)
        h = h[np.ix_(order, order)]
        r = factor(h)
        wide = np.linalg.cholesky(h[::-1, ::-1].astype(D))[::-1, ::-1]
        rows = []
        for root, plain in ((r, False), (wide, True), (np.eye(len(h), dtype=F), False)):
            own_rows = Rows(book, case.group, order, case.w[:, first:end], case.marked[:, first:end], row, plain)
            own_rows.encode(root, case.tried)
            for _ in range(case.passes if len(rows) < 2 else 0):
                own_rows.improve(h)
            rows.append(own_rows)  # as stored, in f64, without feedback
        yield h, r, order, rows[0], [output_error(own_rows.y, own_rows.values(), own_g) for own_rows in rows]


def compare(case, expected, data):
    result = Result(data)
    for b, (h, r, order, rows, _) in enumerate(expected):
        padded = -(-len(order) // case.group) * case.group
        column = result.take(np.uint32, padded)
        real = column < len(order)
        own_h, own_r = result.triangle(padded), result.triangle(padded)
        same(f"block {b}, order", column[real], order)
        same(f"block {b}, H", own_h[np.ix_(real, real)][np.tril_indices(len(h))], h[np.tril_indices(len(h))])
        same(f"block {b}, R", np.tril(own_r)[np.ix_(real, real)], r.T)
        same(f"block {b}, bytes", result.take(np.uint8, case.rows, padded // case.group), rows.byte)
        same(f"block {b}, indices", result.take(np.uint8, case.rows, padded)[:, : len(order)], rows.index)
        residual = result.take(np.uint16, case.rows, padded)[:, : len(order)]
        same(f"block {b}, residuals", residual, np.where(rows.marked, rows.residuals().view(np.uint16), 0))
    assert result.at == len(data)


CASES = {
    "whole groups": Case(1, 128, batch=7),
    "without balance, one byte, no pass": Case(2, 96, k=4, tried=1, passes=0, balanced=False, marked=0),
    "a tail": Case(3, 100, k=3, stack=300, passes=1),
    "a tail, groups of 16": Case(4, 75, group=16, k=4, rows=33, batch=16),
    "a tail, groups of 64": Case(5, 140, group=64, k=5, rows=9, marked=0.05),
    "dead columns": Case(6, 96, k=3, dead=0.4, stack=200),
    "all dead": Case(7, 64, dead=1.0),
    "blocks": Case(8, 200, blocks=3, k=2, stack=100, batch=11),
    "an expert without inputs": Case(9, 64, inputs=0, stack=120),
    "fewer inputs than columns": Case(10, 160, inputs=5, stack=400, k=6, rows=5),
    "many columns and inputs": Case(12, 608, rows=6, inputs=400, k=3, passes=1),
    "one input": Case(11, 64, inputs=1, k=4, passes=3),
}


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        given, got = os.path.join(folder, "case"), os.path.join(folder, "result")
        for name, case in CASES.items():
            case.write(given)
            expected = list(expected_of(case))
            errors = np.sum([block[-1] for block in expected], 0)
            for instructions in ("plain", "avx2", "avx512", "neon"):
                status = subprocess.run([program, instructions, given, got], check=False).returncode
                if status == 77 and instructions != "plain":
                    continue
                assert status == 0, (name, instructions, status)
                with open(got, "rb") as file:
                    data = file.read()
                try:
                    compare(case, expected, data)
                except SystemExit as bad:
                    sys.exit(f"{name}, {instructions}: {bad}")
            assert abs(errors[0] - errors[1]) <= 1e-3 * errors[1], (name, errors)
            assert errors[0] < 0.8 * errors[2] or not errors[2], (name, errors)
            print(f"{name}: identical; {errors[0] / (errors[2] or 1):.3f} of the output error without feedback")


if __name__ == "__main__":
    main(sys.argv[1])
