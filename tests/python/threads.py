#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Threads: teams, the GIL, fork."""
import os
import threading
import time
import unittest

import numpy as np
from common import HEAD, Q, Case, bundle, random

import xfp


class Threads(Case):
    def test_gil_is_released(self):
        """While two threads multiply, each by a bundle of its own, this one runs."""
        during = []
        x = np.ones((150000, 64), np.float16)

        def multiply(name):
            with bundle(name) as opened, xfp.Team(1) as team:
                head = opened.linear(HEAD)
                out = np.empty((len(x), head.shape[0]), np.float16)
                begin = time.monotonic()
                head.multiply(x, out, team=team)
                during.append((begin, time.monotonic()))

        threads = [threading.Thread(target=multiply, args=(name,)) for name in ("auto.xfp", "v2.xfp")]
        for thread in threads:
            thread.start()
        ticks = []
        while any(thread.is_alive() for thread in threads):
            ticks.append(time.monotonic())
            time.sleep(0.001)
        for begin, end in during:
            # at the ends, the other thread may not have begun or finished its call, without which this one runs anyway
            inside = [tick for tick in ticks if begin + 0.1 * (end - begin) < tick < end - 0.1 * (end - begin)]
            self.assertGreater(len(inside), 3, f"{1e3 * (end - begin):.0f} ms")

    def test_teams(self):
        for bad in (-1, 1025):
            self.refused("a team has 1 to 1024 threads", xfp.Team, bad)
            self.refused("a team has 1 to 1024 threads", xfp.set_threads, bad)
        for bad in ("a", 2.0):
            self.refused("the number of threads must be an integer", xfp.Team, bad)
            self.refused("the number of threads must be an integer", xfp.set_threads, bad)
        team = xfp.Team(2)
        with bundle() as opened:
            q, x = opened.linear(Q), random(2, 64)
            y = q.multiply(x, team=team)
            team.close()
            self.refused("the team is closed; start another one", q.multiply, x, team=team)
            xfp.set_threads(1)
            self.assertEqual(q.multiply(x).tobytes(), y.tobytes())
            xfp.set_threads(0)
            self.assertEqual(q.multiply(x).tobytes(), y.tobytes())

    def test_fork(self):
        """A child has another default team; teams of the parent are refused."""
        with bundle() as opened, xfp.Team(2) as team:
            xfp.set_threads(2)
            q, x = opened.linear(Q), random(2, 64)
            y = q.multiply(x)
            child = os.fork()
            if not child:
                status = 1
                try:
                    self.assertEqual(q.multiply(x).tobytes(), y.tobytes())
                    self.refused("started before fork", q.multiply, x, team=team)
                    team.close()
                    status = 0
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(q.multiply(x, team=team).tobytes(), y.tobytes())

    def test_one_team_of_many_threads(self):
        with bundle() as opened:
            q, x = opened.linear(Q), random(4, 64)
            y, wrong = q.multiply(x).tobytes(), []

            def multiply():
                for _ in range(100):
                    if q.multiply(x).tobytes() != y:
                        wrong.append(1)

            threads = [threading.Thread(target=multiply) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
