#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Check an HTML page that xfp writes: well-formed, complete, readable without scripts or a network.

    check_page.py PAGE    print every fault; status 1 if there is any

The page must parse as XML, which any unclosed element or unescaped character breaks, and as HTML; ids are unique, and
each reference to one is defined; headings skip no level; each table has a caption and column headings; each figure has
a text alternative; nothing is loaded, and no script runs.
"""
import html.parser
import re
import sys
import xml.etree.ElementTree as ElementTree

VOID = {"meta", "br", "hr", "img", "input", "link"}
LOADING = {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "source", "base", "form", "image", "use"}
SVG = "{http://www.w3.org/2000/svg}"


class Nesting(html.parser.HTMLParser):
    """Elements that are not closed in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.faults = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        if len(attrs) != len(dict(attrs)):
            self.faults.append("an attribute of <%s> is given twice" % tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append("</%s> closes another element" % tag)


def find_faults(text):
    nesting = Nesting()
    nesting.feed(text)
    nesting.close()
    yield from nesting.faults
    if nesting.open:
        yield "not closed: %s" % nesting.open
    if not text.startswith("<!DOCTYPE html>\n"):
        yield "no doctype"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text):
        yield "a control character"
    root = ElementTree.fromstring(text.split("\n", 1)[1])
    if root.get("lang") is None or not root.findtext("head/title"):
        yield "no language or no title"
    yield from find_loading(root)
    yield from find_references(root)
    yield from find_structure(root)


def find_loading(root):
    for element in root.iter():
        if element.tag.replace(SVG, "") in LOADING:
            yield "<%s> is not allowed" % element.tag
        for name, value in element.attrib.items():
            if name.startswith("on") or name in ("src", "srcset", "style"):
                yield "attribute %s is not allowed" % name
            if name.endswith("href") and not value.startswith("#"):
                yield "it links to %s" % value
        if element.tag == "style" and re.search(r"@import|url\(|expression", element.text):
            yield "the style sheet loads something"


def find_references(root):
    ids = [element.get("id") for element in root.iter() if element.get("id") is not None]
    for one in sorted({one for one in ids if ids.count(one) > 1}):
        yield "id %s is given twice" % one
    for element in root.iter():
        names = element.get("aria-labelledby", "").split() + [element.get("href", "#")[1:]]
        for name in names:
            if name and name not in ids:
                yield "id %s does not exist" % name


def find_structure(root):
    level = 0
    for element in root.iter():
        if re.fullmatch(r"h[1-6]", element.tag):
            if int(element.tag[1]) > level + 1:
                yield "heading <%s> after level %d" % (element.tag, level)
            level = int(element.tag[1])
    for table in root.iter("table"):
        columns = table.findall("thead/tr/th")
        if table.find("caption") is None or not all(th.get("scope") == "col" and th.text for th in columns):
            yield "a table lacks a caption or headings"
        for row in table.findall("tbody/tr"):
            if len(row) != len(columns):
                yield "a row has %d cells of %d: %s" % (len(row), len(columns), "".join(row.itertext())[:80])
    for svg in root.iter(SVG + "svg"):
        parts = [svg.find(SVG + tag) for tag in ("title", "desc")]
        if svg.get("role") != "img" or not all(part is not None and part.text for part in parts) or (
            svg.get("aria-labelledby", "").split() != [part.get("id") for part in parts]
        ):
            yield "a figure has no text alternative"
        for element in svg.iter():
            if any("nan" in value or "inf" in value for value in element.attrib.values()):
                yield "a coordinate is not finite"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        faults = list(find_faults(file.read()))
    for fault in faults:
        print("%s: %s" % (sys.argv[1], fault))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
