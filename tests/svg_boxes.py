# SPDX-License-Identifier: Apache-2.0
"""Whether labels of a plot cover each other: the boxes of all texts of an SVG, as wide as letters are on average. Names
of points (class "name") are mostly capitals and digits: they are as wide as in DejaVu Sans, which few fonts exceed, and
must not cover a ring (class "peer") nor a line from another ring to its name (class "leader").

    svg_boxes.py PLOT.svg        status 1 with what covers what, or leaves the picture
"""
import re
import sys
import xml.dom.minidom

LETTER, ASCENT, DESCENT = .55, .8, .2  # relative to the font size


def wide(text):
    """The width of a name, relative to the font size."""
    return sum(.87 if c in "MW" else .7 if c.isupper() else .4 if c in "-fijlrt" else .64 for c in text)


def boxes(path):
    """For each text: (text, left, top, right, bottom). Also the size of the picture."""
    document = xml.dom.minidom.parse(path)
    style = document.getElementsByTagName("style")[0].firstChild.data
    usual = float(re.search(r"text { font: ([0-9.]+)px", style)[1])
    sizes = dict(re.findall(r"\.([a-z]+) {[^}]*font-size: ([0-9.]+)px", style))
    found = []
    for text in document.getElementsByTagName("text"):
        size = float(sizes.get(text.getAttribute("class"), usual))
        data, x, y = text.firstChild.data, float(text.getAttribute("x")), float(text.getAttribute("y"))
        width = (wide(data) if text.getAttribute("class") == "name" else len(data) * LETTER) * size
        x -= {"middle": width / 2, "end": width}.get(text.getAttribute("text-anchor"), 0)
        found.append((data, x, y - ASCENT * size, x + width, y + DESCENT * size))
    root = document.documentElement
    return found, float(root.getAttribute("width")), float(root.getAttribute("height"))


def crosses(line, box):
    """Whether a line, (x1, y1, x2, y2), meets a box: the part of it between all four edges, if any."""
    (x1, y1, x2, y2), (left, top, right, bottom) = line, box
    begin, end = 0, 1
    for at, step, low, high in (x1, x2 - x1, left, right), (y1, y2 - y1, top, bottom):
        if not step:
            if not low < at < high:
                return False
            continue
        near, far = sorted(((low - at) / step, (high - at) / step))
        begin, end = max(begin, near), min(end, far)
    return begin < end


def marks(path):
    """Boxes of the rings, lines to names, and boxes of the names."""
    document = xml.dom.minidom.parse(path)

    def numbers(element, *names):
        return [float(element.getAttribute(name)) for name in names]

    of_class = {c: [e for n in ("circle", "line") for e in document.getElementsByTagName(n) if e.getAttribute("class") == c]
                for c in ("peer", "leader")}
    rings = [(x - r, y - r, x + r, y + r) for x, y, r in (numbers(e, "cx", "cy", "r") for e in of_class["peer"])]
    names = {t.firstChild.data for t in document.getElementsByTagName("text") if t.getAttribute("class") == "name"}
    return rings, [numbers(e, "x1", "y1", "x2", "y2") for e in of_class["leader"]], names


def faults(path):
    found, width, height = boxes(path)
    rings, leaders, names = marks(path)
    for text, *box in found:
        if text in names:
            if any(box[0] < r and l < box[2] and box[1] < b and t < box[3] for l, t, r, b in rings):
                yield f"{text!r} covers a ring"
            if any(crosses(line, box) for line in leaders):
                yield f"{text!r} covers a line to another name"
    for i, (text, left, top, right, bottom) in enumerate(found):
        if left < 0 or top < 0 or right > width or bottom > height:
            yield f"{text!r} leaves the picture"
        for other, l, t, r, b in found[:i]:
            if left < r and l < right and top < b and t < bottom:
                yield f"{text!r} covers {other!r}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = list(faults(sys.argv[1]))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))
