#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Check the includes of the sources against the table of folders (rooms) in ARCHITECTURE.md, and draw the table.

    rooms.py CHECK    print every violation of CHECK, one of the functions of CHECKS
    rooms.py draw     rewrite the drawing in ARCHITECTURE.md from the table

Run in the top folder of the sources. A room is a folder. Rows of the table are ordered: a room uses only rooms of
rows above its own. The entry "base/*" stands for base and the rooms in it.
"""
import collections
import os
import re
import sys
import textwrap

PAGE = "ARCHITECTURE.md"
MAX_FILES = 45  # of a folder
MAX_SHARE = 0.15  # of all lines, of a folder
MAX_TOP_SHARE = 0.17  # of a top folder with its rooms, "commands/**"
MAX_LINES = {"commands/**": 16000}  # instead of a share
MAX_ENTRIES = 8  # of a row
MAX_IN_CIRCLE = 3  # files of one folder that include each other in a circle
OPEN_ROOMS = ("base", "schemas", "stages")  # that any row may name with /*
SILENT_ROOMS = ("conversion", "model")  # report by callbacks and messages, never print

# Known violations. Lists only shrink: a check fails if an item is no longer needed.
KNOWN_FOLDER_CIRCLES = []
KNOWN_FILE_CIRCLES = []
KNOWN_LONG_ROWS = []
KNOWN_PRINTERS = [
    "conversion/launch/child.c",  # output of a child, which goes to the log
]

SKIPPED = {".git", ".libs", ".deps", "build", "_build", "_inst", "build-aux", "autom4te.cache", "__pycache__"}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)
PRINTING = re.compile(r"\b(stdout|stderr|STDOUT_FILENO|STDERR_FILENO|v?printf|puts|putchar|perror)\b")


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def find_sources():
    """Return path and text of every source, except generated ones and tests."""
    found = {}
    for folder, folders, files in os.walk("."):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not (folder == "." and f == "tests"))
        for name in sorted(files):
            if name.endswith((".c", ".h", ".cu")) and not name.endswith("_sql.h"):
                path = os.path.join(folder, name)[2:]
                found[path] = read(path)
    return found


class Rooms:
    """The table: `row` numbers each room's row, `entries` are the rooms that it may use, as written."""

    def __init__(self, page):
        self.row, self.entries = {}, {}
        section = page.split("\n## Folders\n")[1].split("\n## ")[0]
        for number, line in enumerate(re.findall(r"^\| `.*$", section, re.M)):
            cells = [cell.strip() for cell in line.split("|")]
            for room in re.findall(r"`([^`]+)/`", cells[1]):
                self.row[room] = number
                self.entries[room] = [e.strip() for e in cells[3].split(",") if e.strip() not in ("", "–")]

    def named_by(self, entry):
        """Rooms that an entry stands for."""
        if not entry.endswith("/*"):
            return {entry} & set(self.row)
        return {room for room in self.row if (room + "/").startswith(entry[:-1])}

    def uses(self, room):
        """Rooms that a room may use."""
        return {used for entry in self.entries[room] for used in self.named_by(entry) if self.row[used] < self.row[room]}


    def top_uses(self):
        """Top folders that a top folder may use; rows with "all" are ignored."""
        uses = collections.defaultdict(set)
        for room, entries in self.entries.items():
            if entries != ["all"]:
                uses[room.split("/")[0]] |= {used.split("/")[0] for used in self.uses(room)} - {room.split("/")[0]}
        return uses


def folder_of(path):
    return os.path.dirname(path)


def stem_of(path):
    """X.c, X.h and X.cu are one node of the graph of files."""
    return os.path.splitext(path)[0]


def known_circle(known, *nodes):
    return any(set(nodes) <= set(circle.split()) for circle in known)


def find_circles(graph):
    """Strongly connected components of more than one node, by Tarjan."""
    index, low, stack, circles = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for after in sorted(graph.get(node, ())):
            if after not in index:
                visit(after)
                low[node] = min(low[node], low[after])
            elif after in stack:
                low[node] = min(low[node], index[after])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                circles.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return circles


def table(rooms, sources):
    """The table's own rules."""
    for room, entries in rooms.entries.items():
        if entries == ["all"]:
            continue
        if len(entries) > MAX_ENTRIES and room not in KNOWN_LONG_ROWS:
            yield f"{PAGE}: the row of {room}/ has {len(entries)} entries, more than {MAX_ENTRIES}"
        if len(entries) <= MAX_ENTRIES and room in KNOWN_LONG_ROWS:
            yield f"tests/rooms.py: KNOWN_LONG_ROWS no longer needs {room}"
        for entry in entries:
            if not rooms.named_by(entry):
                yield f"{PAGE}: the row of {room}/ names {entry}, which is not a room"
            elif entry.endswith("/*") and entry[:-2] not in OPEN_ROOMS + (room, room.split("/")[0]):
                yield f"{PAGE}: the row of {room}/ names {entry}; list the rooms instead"
            elif not any(rooms.row[used] < rooms.row[room] for used in rooms.named_by(entry)) and not known_circle(
                KNOWN_FOLDER_CIRCLES, room, entry
            ):
                yield f"{PAGE}: the row of {room}/ names {entry}, whose row is not above it"
    for circle in find_circles(rooms.top_uses()):
        yield f"{PAGE}: its rows let top folders use each other: {' '.join(circle)}"
    for folder in sorted({folder_of(path) for path in sources} - set(rooms.row)):
        yield f"{folder}/ is not in the table of {PAGE}"
    for room in sorted(rooms.row):
        if not os.path.isdir(room):
            yield f"{PAGE}: {room}/ does not exist"


def arrows(rooms, sources):
    """Includes that the table does not allow."""
    for path, text in sources.items():
        home = folder_of(path)
        for header in INCLUDE.findall(text):
            to = folder_of(header)
            if home in rooms.row and to != home and to not in rooms.uses(home):
                if not (to in rooms.entries[home] and known_circle(KNOWN_FOLDER_CIRCLES, home, to)):
                    yield f"{path} includes {header}"


def circles(_rooms, sources):
    """Report include cycles between folders, and those of more than a few files within a folder."""
    files, folders = collections.defaultdict(set), collections.defaultdict(set)
    for path, text in sources.items():
        for header in INCLUDE.findall(text):
            if stem_of(header) != stem_of(path):
                files[stem_of(path)].add(stem_of(header))
            if folder_of(header) != folder_of(path):
                folders[folder_of(path)].add(folder_of(header))
    found = {"KNOWN_FOLDER_CIRCLES": [" ".join(circle) for circle in find_circles(folders)]}
    found["KNOWN_FILE_CIRCLES"] = [
        " ".join(circle)
        for circle in find_circles(files)
        if len(circle) > MAX_IN_CIRCLE and len({folder_of(node) for node in circle}) == 1
    ]
    for name, circles_found in found.items():
        known = globals()[name]
        for circle in circles_found:
            if circle not in known:
                yield f"include cycle: {circle}"
        for circle in known:
            if circle not in circles_found:
                yield f"tests/rooms.py: {name} no longer needs {circle}"


def sizes(_rooms, sources):
    """Report folders that are too large."""
    lines, files = collections.Counter(), collections.Counter()
    for path, text in sources.items():
        files[folder_of(path)] += 1
        lines[folder_of(path)] += text.count("\n")
        if "/" in folder_of(path):
            lines[path.split("/")[0] + "/**"] += text.count("\n")
    total = sum(text.count("\n") for text in sources.values())
    for top in {path.split("/")[0] for path in sources}:
        lines[top + "/**"] += lines[top]
    for folder, count in sorted(files.items()):
        if count > MAX_FILES:
            yield f"{folder}/ has {count} files, more than {MAX_FILES}"
    for folder, count in sorted(lines.items()):
        share = MAX_TOP_SHARE if folder.endswith("/**") else MAX_SHARE
        most = MAX_LINES.get(folder, share * total)
        if count > most:
            yield f"{folder} has {count} lines, {100 * count / total:.1f} % of all, more than {most:.0f}"


def silence(_rooms, sources):
    """Report printing, and includes of commands/, in rooms that must not print."""
    for path, text in sources.items():
        if not path.startswith(tuple(room + "/" for room in SILENT_ROOMS)):
            continue
        found = [f"{path} includes {header}" for header in INCLUDE.findall(text) if header.startswith("commands/")]
        found += [f"{path} uses {word}" for word in PRINTING.findall(COMMENT.sub("", text))]
        if path not in KNOWN_PRINTERS:
            yield from sorted(set(found))
        elif not found:
            yield f"tests/rooms.py: KNOWN_PRINTERS no longer needs {path}"


# ---- the drawing ----------------------------------------------------------------------------------

BEGIN, END = "<!-- drawn by `make rooms` from the table above -->\n", "<!-- end of the drawing -->\n"


def drawing(rooms):
    """Draw top folders, each above those that it uses, without implied arrows."""
    uses = rooms.top_uses()
    tops = {top: [room for room in rooms.row if room.split("/")[0] == top] for top in list(uses)}

    def reached(top):
        return uses[top].union(*(reached(used) for used in uses[top]))

    def depth(top):
        return 1 + max((depth(used) for used in uses[top]), default=0)

    text = ""
    used = set().union(*uses.values())
    for top in sorted({top for top in tops if uses[top] or top in used}, key=lambda top: (-depth(top), -rooms.row[tops[top][-1]])):
        direct = {used for used in uses[top] if not any(used in reached(other) for other in uses[top])}
        arrow = "─▶ " + "  ".join(sorted(f"{used}/" for used in direct)) if direct else ""
        text += f"    {top + '/':17}{arrow}".rstrip() + "\n"
        inside = [room[len(top) + 1 :] + "/" for room in reversed(tops[top]) if room != top]
        text += textwrap.fill("  ".join(inside), 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
        text += "\n" if inside else ""
    return BEGIN + "\n" + text + "\n" + END


def drawn(page, rooms):
    begin, end = page.index(BEGIN), page.index(END) + len(END)
    return page[:begin] + drawing(rooms) + page[end:]


def current(rooms, _sources):
    """Whether the drawing is that of the table."""
    page = read(PAGE)
    if find_circles(rooms.top_uses()):
        yield f"{PAGE}: cannot be drawn, since top folders use each other"
    elif drawn(page, rooms) != page:
        yield f"{PAGE}: the drawing is not that of the table; run make rooms"


CHECKS = {check.__name__: check for check in (table, arrows, circles, sizes, silence, current)}


def main():
    page = read(PAGE)
    rooms = Rooms(page)
    if sys.argv[1:] == ["draw"]:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(drawn(page, rooms))
        return 0
    offences = list(CHECKS[sys.argv[1]](rooms, find_sources()))
    for offence in offences:
        print("#", offence)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
