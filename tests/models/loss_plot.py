# SPDX-License-Identifier: Apache-2.0
"""The plot beside a table of table.py: loss at the output, on a logarithmic scale, by true bits."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 420, 62, 120, 34, 66
LETTER, ASCENT, DESCENT = 6.1, 9, 3  # size of a label: width of a letter, ascent and descent
COLOURS = {"v2": "#8a6d3b", "v2a": "#7b4fa3", "v2c": "#1f5fa8", "v2c/32": "#1f5fa8", "v2c/16": "#2b8a8a",
           "auto": "#2e7d32", "llama.cpp": "#c0392b"}
STYLE = """svg { background: #ffffff; } text { font: 12px system-ui, sans-serif; fill: #24292f; }
.faint { fill: #57606a; font-size: 11px; } .title { font-weight: 600; } .grid { stroke: #e4e7eb; }"""


def ticks(least, most):
    """1, 2 and 5 times powers of ten, from below the least to above the most."""
    steps = [m * 10.0 ** e for e in range(-8, 8) for m in (1, 2, 5)]
    first = max(i for i, step in enumerate(steps) if step <= least)
    last = min(i for i, step in enumerate(steps) if step >= most)
    return steps[first:last + 1]


def place(at, label, taken):
    """Left, baseline and box of a label beside a point, or as near as possible without covering anything in `taken`."""
    width = len(label) * LETTER
    for off in range(0, HEIGHT, 2):
        for side in (-1, 1):
            for left in (at[0] + 6, at[0] - 6 - width):
                line = at[1] + 4 + side * off
                box = left, line - ASCENT, left + width, line + DESCENT
                if left > LEFT and left + width < WIDTH - RIGHT and TOP < box[1] and box[3] < HEIGHT - BOTTOM and \
                        not any(b[0] < box[2] and box[0] < b[2] and b[1] < box[3] and box[1] < b[3] for b in taken):
                    return left, line, box
    raise ValueError(f"no room for the label {label}")


def plot(title, points):
    """`points`: (series, label, bits, loss). One line per series; only points of llama.cpp are labelled, where labels
    cover no point and no other label."""
    xs, ys = [p[2] for p in points], [p[3] for p in points]
    low, high = math.floor(min(xs) * 2) / 2, math.ceil(max(xs) * 2) / 2
    marks = ticks(min(ys), max(ys))

    def x(bits):
        return LEFT + (bits - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(loss):
        share = math.log(loss / marks[0]) / math.log(marks[-1] / marks[0])
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
           f'height="{HEIGHT}"><style>{STYLE}</style>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text class="title" x="{LEFT}" y="20">{title}</text>']
    for half in range(int(2 * low), int(2 * high) + 1):
        at = x(half / 2)
        out.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        out.append(f'<text class="faint" text-anchor="middle" x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}">{half / 2:g}</text>')
    for mark in marks:
        at = y(mark)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        out.append(f'<text class="faint" text-anchor="end" x="{LEFT - 7}" y="{at + 4:.1f}">{mark:g}</text>')
    out.append(f'<text class="faint" text-anchor="middle" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 30}">'
               'true bits per weight</text>')
    out.append(f'<text class="faint" x="{LEFT}" y="{HEIGHT - 10}">a point is a setting, at fixed bits or '
               'at a floor; lines join those of a mode</text>')
    taken = [(x(p[2]) - 4, y(p[3]) - 4, x(p[2]) + 4, y(p[3]) + 4) for p in points]
    for number, (series, colour) in enumerate(COLOURS.items()):
        mine = sorted(p[2:] + (p[1],) for p in points if p[0] == series)
        if not mine:
            continue
        out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 18 * number + 12}" style="fill: {colour}">{series}</text>')
        if series != "llama.cpp":
            line = " ".join(f"{x(bits):.1f},{y(loss):.1f}" for bits, loss, _ in mine)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for bits, loss, label in mine:
            out.append(f'<circle cx="{x(bits):.1f}" cy="{y(loss):.1f}" r="3.5" fill="{colour}"/>')
            if series == "llama.cpp":
                left, line, box = place((x(bits), y(loss)), label, taken)
                taken.append(box)
                out.append(f'<text class="faint" x="{left:.1f}" y="{line:.1f}">{label}</text>')
    return "\n".join(out) + "\n</svg>\n"
