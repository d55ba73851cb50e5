# SPDX-License-Identifier: Apache-2.0
"""Files of surveys that are damaged or cut, and imports that are killed.

A damaged or cut file is refused as a whole: status 3, a message, and no artifact in the cache. After a kill the import
is repeated. Either way, the good file is imported then, and a conversion into that cache gives the reference's bytes
without measuring a survey.
"""
import os
import shutil
import signal

from common import Failed, describe, sha256
from syscalls import not_possible

FILE, CACHE, OUT = "elsewhere/s", "elsewhere/imported", "elsewhere/again.xfp"
CALLS = {"openat": 60, "write": 40, "pwrite64": 60, "rename": 12, "fsync": 12}


def points(scene, seed):
    """IDs: surveys/flip/BYTE, surveys/cut/SIZE, surveys/kill/CALL/N"""
    size = len(exported(scene))
    yield from (f"surveys/flip/{byte}" for byte in [*range(64), *range(64 + seed % 23, size, 23)])
    yield from (f"surveys/cut/{length}" for length in [*range(0, 64, 8), *range(64 + seed % 97, size, 97), size - 1])
    if not not_possible():
        yield from (f"surveys/kill/{call}/{number}" for call, count in CALLS.items() for number in range(1, count))


def exported(scene):
    """The bytes of a file of surveys of the finished conversion; the cache to import into does not exist."""
    scene.finished()
    for path in (CACHE, OUT + ".work"):
        shutil.rmtree(scene.path(path), ignore_errors=True)
    for path in (FILE, OUT):
        if os.path.exists(scene.path(path)):
            os.unlink(scene.path(path))
    ended = scene.run(["xfp", "cache", "export", "--surveys", "--cache", "cache", "-o", FILE, "out.xfp"])
    if ended.status:
        raise Failed("export: " + describe(ended))
    with open(scene.path(FILE), "rb") as file:
        return file.read()


def run_import(scene, prefix=()):
    return scene.run([*prefix, "xfp", "cache", "import", "--cache", CACHE, FILE])


def refused(scene, content):
    with open(scene.path(FILE), "wb") as file:
        file.write(content)
    ended = run_import(scene)
    if ended.status != 3 or "elsewhere/s: " not in ended.err:
        raise Failed("it is not refused: " + describe(ended))
    if os.path.exists(scene.path(CACHE)):
        raise Failed("a refused file leaves a cache: " + describe(ended))


def run(scene, point, _):
    way, *where = point.split("/")[1:]
    good = exported(scene)
    if way == "kill":
        run_import(scene, ["strace", "-f", "-qq", "-o", "trace", "-e", f"trace={where[0]}", "-e",
                           f"inject={where[0]}:signal={signal.Signals.SIGKILL.name[3:]}:when={where[1]}"])
    elif way == "cut":
        refused(scene, good[:int(where[0])])
    else:
        byte = int(where[0])
        refused(scene, good[:byte] + bytes([good[byte] ^ 1 << byte % 8]) + good[byte + 1:])
    with open(scene.path(FILE), "wb") as file:
        file.write(good)
    ended = run_import(scene)
    if ended.status:
        raise Failed("the good file: " + describe(ended))
    ended = scene.run(scene.convert_command("same", OUT, CACHE))
    if ended.status or sha256(scene.path(OUT)) != scene.references["same"][0]:
        raise Failed("with imported surveys: " + describe(ended))
    with open(scene.path(OUT + ".work", "events"), encoding="utf-8", errors="replace") as events:
        if "survey\tmade" in "".join(line.partition("\t")[2] for line in events):
            raise Failed("a survey was measured although all were imported")
