# SPDX-License-Identifier: Apache-2.0
"""Instructions as Python functions of a batch, each made once. Modules of operations register a maker for each opcode:
it takes the decoder and the instruction and returns the function; an instruction without a maker is a fault."""
import re

import numpy as np

from . import memory as spaces
from .fault import Fault
from .types import BYTES, NUMPY, UNSIGNED, immediate, is_type, unsigned

MAKERS = {}
MEETINGS = {}   # opcodes that require threads to converge
KNOWN = set()   # for the tests: all known opcodes


def makes(*kinds):
    def register(maker):
        for kind in kinds:
            MAKERS[kind] = maker
            KNOWN.add(kind)
        return maker
    return register


def meets(*kinds):
    """Like `makes`, for instructions that wait for all lanes in their mask."""
    def register(maker):
        for kind in kinds:
            MEETINGS[kind] = maker
            KNOWN.add(kind)
        return maker
    return register


def unknown(instruction):
    return Fault(f"unknown instruction: {instruction.text}")


def special(name):
    """A function of the batch that returns a special register, as 32 bits."""
    axis = "xyz".find(name[-1]) if name[-2:] in (".x", ".y", ".z") else -1
    base = name[:-2] if axis >= 0 else name

    def shape(batch):
        launch = batch.launch
        if base == "%ntid":
            return np.full(batch.n, launch.block[axis], np.uint32)
        if base == "%nctaid":
            return np.full(batch.n, launch.grid[axis], np.uint32)
        lengths = launch.block if base == "%tid" else launch.grid
        number = batch.thread if base == "%tid" else batch.who // batch.per_block
        for n in range(axis):
            number = number // lengths[n]
        return (number % lengths[axis]).astype(np.uint32) if axis < 2 else number.astype(np.uint32)

    def lanes(batch):
        lane = (batch.thread % 32).astype(np.uint64)
        bit = np.uint64(1) << lane
        return {"%laneid": lane, "%warpid": batch.thread // 32, "%nwarpid": np.full(batch.n, batch.per_block // 32),
                "%lanemask_eq": bit, "%lanemask_lt": bit - np.uint64(1), "%lanemask_le": bit * np.uint64(2) - np.uint64(1),
                "%lanemask_gt": ~(bit * np.uint64(2) - np.uint64(1)), "%lanemask_ge": ~(bit - np.uint64(1)),
                "%dynamic_smem_size": np.full(batch.n, batch.launch.dynamic),
                "%total_smem_size": np.full(batch.n, batch.launch.shared_bytes)}[base].astype(np.uint32)

    if axis >= 0 and base in ("%tid", "%ntid", "%ctaid", "%nctaid"):
        make = shape
    elif base in ("%laneid", "%warpid", "%nwarpid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt",
                  "%lanemask_ge", "%dynamic_smem_size", "%total_smem_size"):
        make = lanes
    else:
        raise Fault(f"special register {name}, which no two runs need agree on or which is not known here")

    def read(batch):
        if name not in batch.special:
            batch.special[name] = make(batch)
        return batch.special[name]
    return read


class Decoder:
    def __init__(self, function, names):
        """`names` are the addresses of variables: {name: address}"""
        self.function = function
        self.names = names
        self.slots = {}
        self.types = []

    def slot(self, name):
        if name not in self.slots:
            kind = self.function.registers.get(name)
            if kind is None:
                return None
            self.slots[name] = len(self.types)
            self.types.append(kind)
        return self.slots[name]

    def raw(self, name):
        """A function that returns a register's bits, and faults if it is uninitialized."""
        slot = self.slot(name)

        def read(batch):
            if batch.part[slot] is not None:
                batch.unwritten(slot, name)
            return batch.regs[slot]
        return read

    def read(self, operand, kind):
        """A function that returns an operand in the numpy type: an array, or a scalar if all lanes share it."""
        want = NUMPY[kind]
        if self.slot(operand) is not None:
            raw = self.raw(operand)
            have = unsigned(self.types[self.slot(operand)])
            bits = unsigned(kind)
            if (have == np.bool_) != (kind == "pred"):
                raise Fault(f"register {operand} is no {kind}")
            if have == want:
                return raw
            if np.dtype(have).itemsize < np.dtype(bits).itemsize:
                raise Fault(f"register {operand} is too narrow for {kind}")
            if have != bits:
                return lambda batch: raw(batch).astype(bits).view(want)
            return lambda batch: raw(batch).view(want)
        if operand[0] == "!":
            inner = self.read(operand[1:].strip(), kind)
            return lambda batch: ~inner(batch)
        if operand[0] == "%":
            made = special(operand)
            if BYTES[kind] == 4:
                return lambda batch: made(batch).view(want)
            return lambda batch: made(batch).astype(unsigned(kind)).view(want)
        value = self.constant(operand, kind)
        return lambda batch: value

    def constant(self, operand, kind):
        """An operand that is the same for all lanes, as a scalar."""
        if operand == "WARP_SZ":
            return NUMPY[kind](32)
        value = immediate(operand, kind) if operand not in self.names else None
        if value is None:
            found = re.match(r"([\w$.]+)\s*(?:\+\s*(-?\w+))?$", operand)
            if not found or found[1] not in self.names:
                raise Fault(f"operand {operand} is not known")
            value = unsigned(kind)(self.names[found[1]] + int(found[2] or "0", 0)).view(NUMPY[kind])
        return value

    def write(self, operand, kind):
        """A function that writes values of this type to a register, extended if it is wider."""
        if operand == "_":
            return lambda batch, value: None
        slot = self.slot(operand)
        if slot is None:
            raise Fault(f"{operand} is no register")
        have, bits = unsigned(self.types[slot]), unsigned(kind)
        if have == bits:
            if NUMPY[kind] == bits:
                return lambda batch, value: batch.write(slot, value)
            return lambda batch, value: batch.write(slot, value.view(bits))
        if np.dtype(have).itemsize < np.dtype(bits).itemsize or have == np.bool_ or bits == np.bool_:
            raise Fault(f"register {operand} does not take {kind}")
        if kind[0] == "s":
            wide = np.dtype(f"i{np.dtype(have).itemsize}")
            return lambda batch, value: batch.write(slot, value.astype(wide).view(have))
        return lambda batch, value: batch.write(slot, value.view(bits).astype(have))

    def address(self, operand):
        """[register], [register+4], [name+4]: a function that returns unsigned 64-bit addresses for the active
        lanes."""
        found = re.match(r"\[\s*([%\w$.@]+)\s*(?:\+\s*(-?\w+)|(-\s*\w+))?\s*\]$", operand)
        if not found:
            raise Fault(f"address {operand} is not understood")
        base, more = found[1], int((found[2] or found[3] or "0").replace(" ", ""), 0)
        if self.slot(base) is not None:
            raw = self.raw(base)
            wide = self.types[self.slot(base)] in ("b64", "u64", "s64")
            offset = np.uint64(more & ((1 << 64) - 1))

            def moving(batch):
                value = batch.acting(raw(batch))
                if not wide:
                    value = value.astype(np.uint64)
                return value + offset if more else value
            return moving
        start = self.names.get(base)
        if start is None:
            start = int(base, 0)
        value = np.uint64(start + more)
        return lambda batch: np.full(batch.count, value, np.uint64)

    def vector(self, operand):
        """The parts of {a, b}, or the operand alone."""
        if operand[0] != "{":
            return [operand]
        return [part.strip() for part in operand[1:-1].split(",")]

    def only(self, instruction, allowed, count=None):
        """The modifiers after the opcode, all of which must be among these, or types."""
        words = instruction.opcode[1:]
        for word in words:
            if word not in allowed and not is_type(word):
                raise unknown(instruction)
        if count is not None and len(instruction.operands) != count:
            raise unknown(instruction)
        return words

    def decode(self, instruction):
        maker = MAKERS.get(instruction.kind)
        if maker is None:
            raise unknown(instruction)
        try:
            return maker(self, instruction)
        except (IndexError, KeyError, ValueError) as error:
            raise Fault(f"unknown instruction: {instruction.text} ({type(error).__name__} {error})") from error


def window_names(function, addresses):
    """The addresses of an entry's variables, each in its own space, and the sizes of shared and local memory."""
    names = dict(addresses)
    ends = {"shared": 0, "local": 0}
    dynamic = []
    for one in function.variables.values():
        if one.space in ends:
            if one.size == 0:
                dynamic.append(one)
                continue
            at = -(-ends[one.space] // one.align) * one.align
            names[one.name] = at
            ends[one.space] = at + one.size
    start = -(-ends["shared"] // 16) * 16 if dynamic else ends["shared"]
    for one in dynamic:
        names[one.name] = start
    for name, (offset, _) in function.parameters.items():
        names[name] = offset
    return names, start, ends["local"]


WINDOWS = {"shared": spaces.SHARED_WINDOW, "local": spaces.LOCAL_WINDOW, "param": spaces.PARAMETER_WINDOW,
           "global": 0, "const": 0}
__all__ = ["Decoder", "makes", "meets", "special", "unknown", "UNSIGNED", "WINDOWS"]
