# SPDX-License-Identifier: Apache-2.0
"""Whether labels of a plot cover each other: the boxes of all texts of an SVG, as wide as letters are on average.

    svg_boxes.py PLOT.svg        status 1 with what covers what, or leaves the picture
"""
import re
import sys
import xml.dom.minidom

LETTER, ASCENT, DESCENT = .55, .8, .2  # of the size of the font


def boxes(path):
    """Of each text: (text, left, top, right, bottom). Also the size of the picture."""
    document = xml.dom.minidom.parse(path)
    style = document.getElementsByTagName("style")[0].firstChild.data
    usual = float(re.search(r"text { font: ([0-9.]+)px", style)[1])
    sizes = dict(re.findall(r"\.([a-z]+) {[^}]*font-size: ([0-9.]+)px", style))
    found = []
    for text in document.getElementsByTagName("text"):
        size = float(sizes.get(text.getAttribute("class"), usual))
        data, x, y = text.firstChild.data, float(text.getAttribute("x")), float(text.getAttribute("y"))
        width = len(data) * LETTER * size
        x -= {"middle": width / 2, "end": width}.get(text.getAttribute("text-anchor"), 0)
        found.append((data, x, y - ASCENT * size, x + width, y + DESCENT * size))
    root = document.documentElement
    return found, float(root.getAttribute("width")), float(root.getAttribute("height"))


def faults(path):
    found, width, height = boxes(path)
    for i, (text, left, top, right, bottom) in enumerate(found):
        if left < 0 or top < 0 or right > width or bottom > height:
            yield f"{text!r} leaves the picture"
        for other, l, t, r, b in found[:i]:
            if left < r and l < right and top < b and t < bottom:
                yield f"{text!r} covers {other!r}"


if __name__ == "__main__":
    wrong = list(faults(sys.argv[1]))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))
