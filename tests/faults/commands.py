# SPDX-License-Identifier: Apache-2.0
"""Run a command repeatedly; each time, an allocation at another place in our code fails.

commands.py LIBRARY PROGRAM ARGUMENT...

LIBRARY is faults/fail_allocation.so. The command must report "out of memory" and exit with status 1, or with 0 if its
output says what is missing; or do without the memory: status 0 and the same output, except for the time and the free
space that it measured. It must leave no files that it does not leave when it succeeds.
"""
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

from allocations import OTHERS_BEGIN, who

OF_EACH = 3  # failures per place, as one helper allocates for many callers
MEASURED = re.compile(rb"(?m)^(time|disk) .*\n( .*\n)*")


def run(library, command, number, folder):
    report = os.path.join(folder, f"allocation{number}")
    environment = dict(os.environ, LD_PRELOAD=library, FAIL_ALLOCATION=f"{command[0]} {number} {report}")
    ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                           check=False)
    places = []
    if os.path.exists(report):
        with open(report, encoding="utf-8") as file:
            places = file.read().splitlines()
    return ended, places


def same(one, other):
    return MEASURED.sub(b"", one) == MEASURED.sub(b"", other)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    library, *command = sys.argv[1:]
    program = os.path.realpath(shutil.which(command[0]))
    with tempfile.TemporaryDirectory() as folder:
        usual, places = run(library, command, 0, folder)
        if usual.returncode or not places:
            sys.exit(f"without a failure: status {usual.returncode}, {len(places)} allocations\n{usual.stderr.decode()}")
        numbers = collections.defaultdict(list)
        for number, place in enumerate(places, 1):
            if not who(program, place).startswith(OTHERS_BEGIN):
                numbers[place].append(number)
        chosen = sorted(number for of in numbers.values() for number in of[::-(-len(of) // OF_EACH)])
        before = sorted(os.listdir())
        failed = 0

        def check(number):
            ended, where = run(library, command, number, folder)
            said = ended.stderr.decode(errors="replace")
            if ended.returncode == 1 and "out of memory" in said:
                return None
            if not ended.returncode and (b"out of memory" in ended.stdout or same(ended.stdout, usual.stdout)):
                return None
            return f"allocation {number}, at {' '.join(where)}: status {ended.returncode}\n{said}"

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for problem in filter(None, pool.map(check, chosen)):
                print(problem, file=sys.stderr)
                failed += 1
        if sorted(os.listdir()) != before:
            print(f"other files than before: {sorted(os.listdir())}, not {before}", file=sys.stderr)
            failed += 1
    if failed:
        sys.exit(f"{failed} of {len(chosen)} failed")
    print(f"{len(numbers)} places, {len(chosen)} allocations")


if __name__ == "__main__":
    main()
