# SPDX-License-Identifier: Apache-2.0
"""Opening bundles of many members: time, and what of the weights is read meanwhile (nothing).

The file is in memory, so it is as warm as can be. A stack has one member a part however many experts it has, but an
expert has a record of its own, so both count.
"""
from common import table, timed

SIZES = ((500, 1), (5000, 1), (5000, 128), (50000, 1))
QUICK = ((50, 2),)


def run(bench, options):
    result, rows = [], []
    for members, experts in QUICK if bench.quick else SIZES:
        _, out = timed([bench.tool("opening"), str(20 * options.rounds), str(members), str(experts)])
        index, median, least, read, _ = out.split()
        result.append({"members": members, "experts": experts, "index": int(index), "microseconds": float(median),
                       "least": float(least), "pages_of_weights": int(read)})
        rows.append([members, members // 5 * experts, f"{int(index) / 1e6:.2f}", f"{float(median) / 1e3:.2f}",
                     f"{float(least) / 1e3:.2f}", read])
    print(table(["members", "matrices", "index MB", "median ms", "least ms", "pages of weights read"], rows))
    return result
