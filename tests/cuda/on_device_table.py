# SPDX-License-Identifier: Apache-2.0
"""Rows of the verifier's bench, and the table that compares variants."""
import re

OP = r"(?P<op>(?:matvec|experts) \S+(?: k=\d+)?)"
ROW = re.compile(rf"(?P<case>{OP}(?: G\d+)?\s+\d+ x \d+(?: +x 8)?) .*? M=(?P<vectors>\d+) +"
                 r"[\d.]+ us +(?P<rate>[\d.]+) GB/s(?: +(?P<share>\d+) % of reads)?")
FAILED = re.compile(rf"{OP} +FAILED: ")


def op_of(line):
    """The op that a line of the bench measures, or failed to measure; None for other lines."""
    found = ROW.match(line) or FAILED.match(line)
    return found["op"] if found else None


class Comparison:
    """Rates of the cases by variant, over all rounds."""

    def __init__(self, names):
        self.names, self.ops, self.rates = names, {}, {}
        self.verdicts = {name: {} for name in names}  # of ops: True is right

    def judge(self, name, op, right):
        """A result that was wrong once stays wrong."""
        self.verdicts[name][op] = right and self.verdicts[name].get(op, True)

    def wrong(self, name):
        return not all(self.verdicts[name].values())

    def add(self, name, lines):
        """Takes the output of a bench."""
        for line in lines:
            found = ROW.match(line)
            if found:
                case = re.sub(r"\s+", " ", f"{found['case']} M={found['vectors']}")
                self.ops[case] = found["op"]
                self.rates.setdefault((case, name), []).append((float(found["rate"]), float(found["share"] or 0)))
            elif FAILED.match(line):
                self.judge(name, op_of(line), False)

    def cell(self, case, name):
        right = self.verdicts[name].get(self.ops[case])
        mark = "" if right else " WRONG" if right is False else " unverified"
        rates = self.rates.get((case, name))
        if not rates:
            return "-" + mark
        rate, share = (sum(values) / len(rates) for values in zip(*rates))
        return f"{rate:.1f}, {share:.1f} %{mark}"

    def spread(self):
        """The largest difference between rounds, as a share."""
        return max((max(rate for rate, _ in rates) / min(rate for rate, _ in rates) - 1
                    for rates in self.rates.values() if min(rate for rate, _ in rates) > 0), default=0)

    def lines(self):
        rows = [["GB/s, % of reads", *self.names]]
        rows += [[case, *(self.cell(case, name) for name in self.names)] for case in self.ops]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        table = ["  ".join([row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, len(row)))])
                 for row in rows]
        rounds = max(map(len, self.rates.values()), default=0)
        return [*table, f"means of {rounds} rounds, which differ by at most {100 * self.spread():.1f} %"]
