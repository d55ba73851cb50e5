# SPDX-License-Identifier: Apache-2.0
"""Launches: decode an entry, and split the grid into batches of blocks, which a stepper (stepper.py) executes."""
import collections

import numpy as np

from . import atomics, bits, convert, copies, floats, integers, matrix, move, warp  # noqa: F401 (they register makers)
from .batch import Batch
from .decode import MEETINGS, Decoder, unknown, window_names
from .fault import Fault
from .heap import lasting
from .memory import region
from .order import Order
from .stepper import BARRIER, BRANCH, END, MEET, PLAIN, TABLE, TRAP, Stepper
from .types import unsigned

MAX_LANES = 16384


class Counts(collections.Counter):
    """The number of threads that executed each kind of instruction; predicated-off ones are not counted."""

    def per_weight(self, weights):
        return {kind: count / weights for kind, count in sorted(self.items())}


def counted(instruction):
    """The counter of an instruction: its opcode and, for memory, the space."""
    space = next((word for word in instruction.opcode[1:] if word in ("global", "shared", "local", "param")), None)
    return f"{instruction.kind}.{space}" if space and instruction.kind in ("ld", "st", "atom", "red") else instruction.kind


class Program:
    """A decoded entry: `steps` are (kind, function or target, guard), `leaders` the starts of basic blocks."""

    def __init__(self, function, addresses):
        self.function = function
        names, self.shared_static, self.local_bytes = window_names(function, addresses)
        self.decoder = decoder = Decoder(function, names)
        decoder.accesses = []
        self.texts = [instruction.text for instruction in function.code]
        self.kinds = [counted(instruction) for instruction in function.code]
        self.steps = []
        for instruction in function.code:
            try:
                self.steps.append(self.decode(instruction))
            except Fault as fault:
                raise Fault(f"{fault.cause}; in {function.name}: {instruction.text}") from None
        self.steps.append((END, None, None))
        self.leaders = {0, len(function.code)} | set(function.labels.values())
        for at, (what, _, _) in enumerate(self.steps):
            if what != PLAIN:
                self.leaders |= {at, at + 1}
        self.stretches = {}
        widths = [width for space, width in decoder.accesses if space in ("shared", "global", "generic")]
        self.granule = min([4, *widths])
        self.blanks = [unsigned(kind) for kind in decoder.types]

    def decode(self, instruction):
        guard = None
        if instruction.guard:
            name, negated = instruction.guard
            read = self.decoder.read(name, "pred")
            guard = (lambda batch: ~read(batch)) if negated else read
        kind = instruction.kind
        words = instruction.opcode[1:]
        labels = self.function.labels
        if kind == "bra":
            if set(words) - {"uni"}:
                raise unknown(instruction)
            return BRANCH, labels[instruction.operands[0]], guard
        if kind == "brx":
            targets = [labels[name] for name in self.function.tables[instruction.operands[1]]]
            return TABLE, (self.decoder.read(instruction.operands[0], "u32"), np.array(targets)), guard
        if kind in ("ret", "exit"):
            return END, None, guard
        if kind in ("trap", "brkpt"):
            return TRAP, None, guard
        if kind in ("bar", "barrier") and words[:1] != ["warp"]:
            return BARRIER, warp.barrier(self.decoder, instruction), guard
        if kind in MEETINGS:
            return MEET, MEETINGS[kind](self.decoder, instruction), guard
        run = self.decoder.decode(instruction)
        return PLAIN, run if guard is None else guarded(run, guard, counted(instruction)), None

    def blank(self, lanes):
        zeros = {dtype: np.zeros(lanes, dtype) for dtype in set(self.blanks)}
        return [zeros[dtype] for dtype in self.blanks]

    def stretch(self, start):
        """(functions, index after them, the counts of one thread) of the basic block that begins here."""
        if start not in self.stretches:
            end = start
            while self.steps[end][0] == PLAIN and (end == start or end not in self.leaders):
                end += 1
            kinds = collections.Counter(
                self.kinds[at] for at in range(start, end) if not getattr(self.steps[at][1], "guarded", False))
            kinds.pop("undefined", None)
            self.stretches[start] = [step[1] for step in self.steps[start:end]], end, tuple(kinds.items())
        return self.stretches[start]


def program_of(module, function, addresses):
    """Decode an entry once for all memories, as long as the module's variables have the same addresses."""
    key = function.name, *sorted(addresses.items())
    if key not in module.programs:
        with lasting():
            module.programs[key] = Program(function, addresses)
    return module.programs[key]


def guarded(run, guard, kind):
    def under(batch):
        mask, count = batch.mask, batch.count
        chosen = mask & guard(batch)
        some = int(np.count_nonzero(chosen))
        if not some:
            return
        batch.launch.counts[kind] += some
        if some == count:
            run(batch)
            return
        batch.set_mask(chosen, some)
        try:
            run(batch)
        finally:
            batch.set_mask(mask, count)
    under.guarded = True
    return under


def variables(module, memory):
    """The addresses of a module's own variables, which stay in this memory from launch to launch."""
    known = memory.module_variables.setdefault(id(module), {"": module})
    for one in module.variables.values():
        if one.name in known or one.space not in ("global", "const"):
            continue
        made = region(one.size, f"variable {one.name}")
        made.data[1][:one.size] = np.frombuffer(one.data, np.uint8) if one.data else 0
        made.ready[1][:one.size] = 1
        made.complete = True
        known[one.name] = memory.add(made)
    return {name: address for name, address in known.items() if isinstance(address, int)}


def parameter_block(function, args):
    """Parameters as bytes, or as a list with a number or bytes for each."""
    if isinstance(args, (bytes, bytearray, memoryview)):
        data = bytes(args)
    else:
        data = bytearray(function.parameter_bytes)
        if len(args) != len(function.parameters):
            raise Fault(f"{len(args)} arguments for {len(function.parameters)} parameters")
        for value, (offset, size) in zip(args, function.parameters.values()):
            if isinstance(value, float):
                part = np.array([value], {4: np.float32, 8: np.float64}[size]).tobytes()
            elif isinstance(value, (int, np.integer)):
                part = (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
            else:
                part = bytes(value)
            if len(part) != size:
                raise Fault(f"an argument of {len(part)} bytes for a parameter of {size}")
            data[offset:offset + size] = part
    if len(data) != function.parameter_bytes:
        raise Fault(f"{len(data)} bytes of arguments for {function.parameter_bytes} bytes of parameters")
    return np.frombuffer(bytes(data) + bytes(16), np.uint8)[:len(data)]


class Launch:
    def __init__(self, module, name, grid, block, args, memory, shared, order, exact_mma, most_lanes, dependent):
        self.function = module.find(name)
        self.memory = memory
        self.program = program_of(module, self.function, variables(module, memory))
        self.grid, self.block = (tuple(extent(shape)) for shape in (grid, block))
        self.threads = int(np.prod(self.block))
        self.lanes_of_block = -(-self.threads // 32) * 32
        if not 0 < self.threads <= 1024 or min(self.grid) < 1:
            raise Fault(f"a grid of {self.grid} blocks of {self.block} threads")
        self.parameters = parameter_block(self.function, args)
        self.dynamic = shared
        self.shared_bytes = self.program.shared_static + shared
        self.shared_stride = -(-max(self.shared_bytes, 1) // 32) * 32
        self.local_bytes = self.program.local_bytes
        self.local_stride = -(-self.local_bytes // 32) * 32
        self.granule = self.program.granule
        self.blocks = int(np.prod(self.grid))
        self.order = Order(self.blocks, self.lanes_of_block, memory.order if dependent else None)
        self.counts = Counts()
        self.exact_mma = exact_mma
        self.sequence = order
        self.most_lanes = most_lanes
        self.random = np.random.default_rng(order) if isinstance(order, int) else None
        if self.random is None and order not in ("forward", "reverse"):
            raise ValueError(f"order {order} is none of forward, reverse and a number")
        self.rank = np.arange(self.blocks)   # the rank of each block among those that change the same address
        if self.random is not None:
            self.rank = self.random.permutation(self.blocks)
        elif order == "reverse":
            self.rank = self.rank[::-1]

    def run(self):
        per_batch = max(1, self.most_lanes // self.lanes_of_block)
        starts = list(range(0, self.blocks, per_batch))
        if self.sequence == "reverse":
            starts.reverse()
        elif self.random is not None:
            self.random.shuffle(starts)
        self.memory.order = self.order
        with np.errstate(all="ignore"):
            for start in starts:
                Stepper(self, Batch(self, start, min(per_batch, self.blocks - start))).run()
        return self.counts


def extent(shape):
    shape = [int(n) for n in (shape if hasattr(shape, "__len__") else (shape,))]
    return shape + [1] * (3 - len(shape))


def launch(module, kernel, grid, block, args, memory, shared=0, order="forward", exact_mma=False,
           most_lanes=MAX_LANES, dependent=False):
    """Run a kernel; returns the counts of executed instructions. `order` of the blocks' atomics: forward, reverse, or
    the seed of a random one. `dependent`: it may begin before the previous launch in this memory ends."""
    return Launch(module, kernel, grid, block, args, memory, shared, order, exact_mma, most_lanes, dependent).run()
