# SPDX-License-Identifier: Apache-2.0
"""Plots of scale: four panels, time above and memory below, by weights and by experts; both axes logarithmic."""
import math

WIDTH, HEIGHT = 430, 250  # size of a panel, including labels
LEFT, RIGHT, TOP, BOTTOM = 58, 18, 30, 42
INK, FAINT, GRID, LINE, GUIDE = "#24292f", "#57606a", "#e4e7eb", "#1f5fa8", "#9aa4b0"

STYLE = f"""text {{ font: 12px system-ui, sans-serif; fill: {INK}; }}
.faint {{ fill: {FAINT}; font-size: 11px; }} .title {{ font-weight: 600; }}
.grid {{ stroke: {GRID}; }} .guide {{ stroke: {GUIDE}; stroke-dasharray: 5 4; fill: none; }}
.line {{ stroke: {LINE}; stroke-width: 2; fill: none; stroke-linejoin: round; }} .dot {{ fill: {LINE}; }}"""


def short(value):
    """1e9 -> 1 G, 0.5 -> 0.5."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


class Axis:
    """A logarithmic scale from data to pixels, with its ticks."""

    def __init__(self, values, low, high, base):
        least, most = min(values), max(values)
        if base == 2:
            first, last = math.floor(math.log2(least)), math.ceil(math.log2(most))
            self.ticks = [2.0 ** i for i in range(first, max(last, first + 1) + 1)]
        else:
            steps = [m * 10.0 ** e for e in range(-4, 12) for m in (1, 2, 5)]
            first = max(i for i, step in enumerate(steps) if step <= least)
            last = min(i for i, step in enumerate(steps) if step >= most)
            self.ticks = steps[first:max(last, first + 1) + 1]
            if len(self.ticks) > 8:  # one tick per decade suffices
                self.ticks = [tick for tick in self.ticks if round(math.log10(tick), 6) % 1 == 0]
        self.least, self.most = min(self.ticks[0], least), max(self.ticks[-1], most)
        self.low, self.high = low, high

    def at(self, value):
        share = math.log(value / self.least) / math.log(self.most / self.least)
        return self.low + share * (self.high - self.low)


def span(values):
    """Limits of the axis for a nearly flat curve: one and a half decades around it, so that it looks flat."""
    middle = math.sqrt(min(values) * max(values))
    return [*values, middle / 5, middle * 5] if max(values) < 4 * min(values) else values


def panel(left, top, title, points, x_label, x_base, proportional):
    """Plot `points` (x, y); the dashed line shows growth proportional to x, or no growth."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x = Axis(xs, left + LEFT, left + WIDTH - RIGHT, x_base)
    y = Axis(span(ys), top + HEIGHT - BOTTOM, top + TOP, 10)
    out = [f'<text class="title" x="{left + LEFT}" y="{top + 18}">{title}</text>']

    def label(at_x, at_y, anchor, text):
        out.append(f'<text class="faint" text-anchor="{anchor}" x="{at_x:.1f}" y="{at_y:.1f}">{text}</text>')

    for tick in x.ticks:
        out.append(f'<line class="grid" x1="{x.at(tick):.1f}" x2="{x.at(tick):.1f}" y1="{y.low}" y2="{y.high}"/>')
        label(x.at(tick), y.low + 16, "middle", short(tick))
    for tick in y.ticks:
        out.append(f'<line class="grid" x1="{x.low}" x2="{x.high}" y1="{y.at(tick):.1f}" y2="{y.at(tick):.1f}"/>')
        label(x.low - 7, y.at(tick) + 4, "end", short(tick))
    label((x.low + x.high) / 2, y.low + 34, "middle", x_label)
    if proportional:  # through the last point, within the panel
        end, begin = points[-1], max(x.least, points[-1][0] * y.least / points[-1][1])
        guide = [(begin, end[1] * begin / end[0]), end]
    else:
        middle = math.exp(sum(math.log(value) for value in ys) / len(ys))
        guide = [(x.least, middle), (x.most, middle)]
    out.append('<polyline class="guide" points="%s"/>' % " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in guide))
    out.append('<polyline class="line" points="%s"/>' % " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in points))
    out += [f'<circle class="dot" cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="3.5"/>' for a, b in points]
    return out


def write(rows, jobs, path):
    weights = sorted((row for row in rows if row["sweep"] == "weights"), key=lambda row: row["weights"])
    experts = sorted((row for row in rows if row["sweep"] == "experts"), key=lambda row: row["experts"])
    each = f"experts a stack, {short(experts[-1]['weights'] // 10 ** 6 * 10 ** 6 or 1)} weights each time"
    time, memory = f"Seconds at -j{jobs}", f"Peak memory of all processes at -j{jobs}, MiB"
    out = panel(0, 0, time, [(r["weights"], r["seconds"]) for r in weights], "weights", 10, True)
    out += panel(WIDTH, 0, time, [(r["experts"], r["seconds"]) for r in experts], each, 2, False)
    out += panel(0, HEIGHT, memory, [(r["weights"], r["peak_mib"]) for r in weights], "weights", 10, False)
    out += panel(WIDTH, HEIGHT, memory, [(r["experts"], r["peak_mib"]) for r in experts], each, 2, False)
    size = f'width="{2 * WIDTH}" height="{2 * HEIGHT + 24}" viewBox="0 0 {2 * WIDTH} {2 * HEIGHT + 24}"'
    note = (f'<text class="faint" x="{LEFT}" y="{2 * HEIGHT + 12}">Both axes are logarithmic. Dashed: growth in '
            "proportion to the weights (first panel); no growth (the others).</text>")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{STYLE}</style>\n'
                   '<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(out) + f"\n{note}\n</svg>\n")
