# SPDX-License-Identifier: Apache-2.0
"""Parse PTX to lists of instructions: nvcc's output, and inline assembly with scopes of its own."""
import os
import re

from .fault import Fault
from .heap import lasting
from .types import BYTES, immediate, unsigned

NAME = r"[A-Za-z_$%][\w$]*"
VARIABLE = re.compile(
    r"(?:\.(?P<link>visible|extern|weak|common)\s+)?\.(?P<space>shared|local|global|const)\s+"
    r"(?:\.align\s+(?P<align>\d+)\s+)?(?:\.v(?P<vector>[24])\s+)?\.(?P<type>\w+)\s+(?P<name>" + NAME + r")\s*"
    r"(?P<extents>(?:\[\s*\d*\s*\]\s*)*)(?:=\s*(?P<value>.*))?$", re.S)

OWN = re.compile(r"(?<![^;{}\s])(\.(?:shared|local)\s[^;]*);")


class Instruction:
    """One statement: the parts of its opcode, its operands as texts, and the guard before it: (register, negated)."""

    def __init__(self, text, guard, opcode, operands):
        self.text = text
        self.guard = guard
        self.opcode = opcode
        self.kind = opcode[0]
        self.operands = operands


class Variable:
    def __init__(self, name, space, align, size, data, offset=None):
        self.name, self.space, self.align, self.size, self.data, self.offset = name, space, align, size, data, offset


class Function:
    """An entry: `parameters` is {name: (offset, size)}, `registers` {name: type}, `labels` {name: index in code}."""

    def __init__(self, name):
        self.name = name
        self.parameters = {}
        self.parameter_bytes = 0
        self.registers = {}
        self.ranges = {}
        self.variables = {}
        self.labels = {}
        self.tables = {}
        self.code = []
        self.body = ""   # text that is not parsed yet

    def read(self):
        body, self.body = self.body, ""
        if body:
            with lasting():
                Body(self, body)


class Module:
    def __init__(self):
        self.functions = {}
        self.variables = {}
        self.programs = {}   # decoded entries, of run.py

    def find(self, name):
        """The entry of this name, or the only one whose mangled name contains it."""
        found = [self.functions[name]] if name in self.functions else \
            [f for n, f in self.functions.items() if name in n]
        if len(found) != 1:
            raise Fault(f"{len(found)} entries are named like {name}; there are: {', '.join(self.functions)}")
        found[0].read()
        return found[0]


def split_operands(text):
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def initial(text, element, size):
    """The bytes of `{1, 2, {3}}`; missing elements are zero."""
    data = b"".join(immediate(word, element).tobytes() for word in re.findall(r"[-\w]+", text))
    return data.ljust(size, b"\0")


def variable(statement):
    found = VARIABLE.match(statement)
    if not found:
        return None
    element = found["type"]
    size = BYTES[element] * int(found["vector"] or 1)
    for extent in re.findall(r"\[\s*(\d*)\s*\]", found["extents"]):
        size *= int(extent or 0)
    align = int(found["align"] or BYTES[element])
    data = initial(found["value"], element, size) if found["value"] else None
    return Variable(found["name"], found["space"], align, size, data)


def parameters(function, text):
    offset = 0
    for part in split_operands(text):
        found = re.match(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+)?(?:\.(?:global|shared|const|local)\s+)?"
                         r"(?:\.align\s+\d+\s+)?(" + NAME + r")\s*(?:\[(\d+)\])?$", part)
        if not found:
            raise Fault(f"a parameter that is not understood: {part}")
        size = BYTES[found[2]] * int(found[4] or 1)
        align = int(found[1] or BYTES[found[2]])
        offset = -(-offset // align) * align
        function.parameters[found[3]] = (offset, size)
        offset += size
    function.parameter_bytes = offset


class Body:
    """Iterate over the statements of one function. A name redeclared in a scope gets the scope's number as suffix."""

    def __init__(self, function, text):
        self.function = function
        self.scopes = [{}]
        self.count = 0
        at = 0
        while True:
            at = re.compile(r"\s*").match(text, at).end()
            if at == len(text):
                break
            if text[at] == "{":
                self.count += 1
                self.scopes.append(self.declared(text, at + 1))
                at += 1
                continue
            if text[at] == "}":
                self.scopes.pop()
                at += 1
                continue
            label = re.compile(r"([A-Za-z_$][\w$]*)\s*:(?!:)").match(text, at)
            if label:
                at = label.end()
                self.label = self.rename(label[1])
                function.labels[self.label] = len(function.code)
                continue
            end = text.index(";", at)
            self.statement(text[at:end].strip())
            at = end + 1

    def declared(self, text, at):
        """The labels of a scope must be known before jumps to them."""
        depth, end = 1, at
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        return {name: f"{name}@{self.count}" for name in re.findall(r"(?:^|[;{}])\s*([A-Za-z_$][\w$]*)\s*:(?!:)",
                                                                     text[at:end])}

    def rename(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def names(self, text):
        if len(self.scopes) == 1:
            return text
        return re.sub(r"(?<![\w.$%])" + NAME, lambda found: self.rename(found[0]), text)

    def statement(self, text):
        function = self.function
        if text.startswith(".reg"):
            kind, names = re.match(r"\.reg\s+\.(\w+)\s+(.*)$", text, re.S).groups()
            for name in split_operands(names):
                found = re.match(r"(.*)<(\d+)>$", name)
                declared = [f"{found[1]}{n}" for n in range(int(found[2]))] if found else [name]
                for one in declared:
                    inner = one
                    if len(self.scopes) > 1:
                        inner = self.scopes[-1][one] = f"{one}@{self.count}"
                    if kind != "pred":
                        unsigned(kind)
                    function.registers[inner] = kind
            return
        if text.startswith(".branchtargets"):
            function.tables[self.label] = [self.names(name) for name in split_operands(text.split(None, 1)[1])]
            return
        if text.startswith(".pragma"):
            return
        if text.startswith("."):
            found = variable(text)
            if not found:
                raise Fault(f"a directive that is not understood: {text}")
            function.variables[found.name] = found
            return
        guard = None
        rest = text
        if text[0] == "@":
            found = re.match(r"@(!?)\s*(" + NAME + r")\s+", text)
            guard = (self.names(found[2]), found[1] == "!")
            rest = text[found.end():]
        words = rest.split(None, 1)
        operands = split_operands(self.names(words[1])) if len(words) > 1 else []
        function.code.append(Instruction(" ".join(text.split()), guard, words[0].split("."), operands))


def load(source, whole=True):
    """Parse a module from PTX's text, or from the file of that name. Unless `whole`, entries are parsed when they are
    first looked up, and until then have only their parameters and variables."""
    text = source
    if "\n" not in source and os.path.exists(source):
        with open(source, encoding="utf-8") as file:
            text = file.read()
    module = module_of(text)
    for function in module.functions.values() if whole else ():
        function.read()
    return module


def module_of(text):
    # The compiler's intentionally undefined values become a statement here.
    text = re.sub(r"//\s*implicit-def:\s*([%\w]+)[^\n]*", r"undefined \1;", text)
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^\s*\.(loc|file)\b[^\n]*$", "", text, flags=re.M)
    module = Module()
    at = 0
    while True:
        at = re.compile(r"\s*").match(text, at).end()
        if at == len(text):
            share(module)
            return module
        header = re.compile(r"\.(version|target|address_size)\b[^\n]*").match(text, at)
        if header:
            at = header.end()
            continue
        section = re.compile(r"\.section\b[^{]*\{[^}]*\}").match(text, at)
        if section:
            at = section.end()
            continue
        entry = re.compile(r"(?:\.(?:visible|weak|extern)\s+)?\.(entry|func)\b").match(text, at)
        if not entry:
            end = text.index(";", at)
            found = variable(text[at:end].strip())
            if not found:
                raise Fault(f"a directive that is not understood: {text[at:end].strip()[:120]}")
            module.variables[found.name] = found
            at = end + 1
            continue
        at = function_of(module, text, at, entry)


def share(module):
    """Shared memory declared outside of the entries belongs to each entry that refers to it."""
    for one in module.variables.values():
        if one.space != "shared":
            continue
        word = re.compile(r"(?<![\w$%.])" + re.escape(one.name) + r"(?![\w$])")
        for function in module.functions.values():
            if word.search(function.body):
                function.variables.setdefault(one.name, one)


def function_of(module, text, at, entry):
    """Read one entry; returns the index after it. Functions are skipped, so that calls of them are unknown opcodes."""
    brace, end = text.find("{", at), text.find(";", at)
    if brace < 0 or 0 <= end < brace:
        return end + 1
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, brace):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            break
    end = found.end()
    if entry[1] == "entry":
        head = re.match(r"\s*(" + NAME + r")\s*(?:\((.*?)\))?", text[entry.end():brace], re.S)
        function = Function(head[1])
        parameters(function, head[2] or "")
        function.body = text[brace + 1:end - 1]
        for statement in OWN.findall(function.body):
            one = variable(statement)
            if one:
                function.variables[one.name] = one
        module.functions[head[1]] = function
    return end

