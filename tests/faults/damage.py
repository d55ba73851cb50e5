# SPDX-License-Identifier: Apache-2.0
"""Damage to the files of an earlier run: a bit of a file, a value or a row of the manifest.

Every byte of the text files and stamps of the work folder, and of one unit's artifacts; swapped stamps; every value of
every table; of all other files ten thousand bytes, evenly spaced from a seeded start. Afterwards the same conversion
runs, or one with other options and then the same: the first run may fail, with a message, and never produces other
bytes.
"""
import os
import shutil
import sqlite3
import struct

from common import CALIBRATED, Failed, Skipped, seeded

REST = 10000
MANIFEST = "cache/manifest.sqlite"
NO_BUNDLE = ["out.xfp", "out.xfp.work/bundle"]
# Data that decides nothing: it is only shown to people, or has no bytes.
NOT_DAMAGED = {"log", "lock", "ledger.h5", "calibration.h5"}
AFTERWARDS = ["same", "floor"]
# Of a calibrated conversion, what others have as well is left out.
CALIBRATED_TABLES = {"layer_inputs", "scales", "sources", "choices"}
CALIBRATED_STEP = 7  # one byte in seven of artifacts, and one in seven of the rest
BITS = 4  # bits of each value that a choice depends on, with a new choice afterwards


# ---- selection of points -------------------------------------------------------------------------


def points(scene, seed):
    """IDs: damage/text/FILE/BYTE/THEN, damage/artifact/STAMP/BYTE, damage/rest/FILE/BYTE,
    damage/swap/STAMP/STAMP/MANIFEST/THEN, damage/manifest/TABLE/ROW/COLUMN/THEN[/BIT],
    damage/row/TABLE/ROW/THEN, damage/keys/TABLE/ROW/THEN"""
    scene.finished()
    for relative in sorted(scene.states["finished"]):
        folder, name = os.path.split(relative)
        if folder == "out.xfp.work" and name not in NOT_DAMAGED and (scene.model != CALIBRATED or of_layers(name)):
            for byte in range(os.path.getsize(scene.path(relative))):
                then = AFTERWARDS[(byte + seed) % 2]
                yield f"damage/text/{name}/{byte}/{then}"
                if name == "bundle" or name.endswith("-packed"):
                    yield f"damage/text/{name}/{byte}/{AFTERWARDS[(byte + seed + 1) % 2]}"
    yield from swaps(scene, seed)
    keys, step = scene.keys(scene.unit_with("library")), 1
    if scene.model == CALIBRATED:
        keys = {**scene.keys("l000000"), "scales": keys["scales"], "library": keys["library"]}
        step = CALIBRATED_STEP
    for stamp, key in keys.items():
        for byte in range(seed % step, os.path.getsize(scene.path(scene.artifact(key))), step):
            yield f"damage/artifact/{stamp}/{byte}"
    yield from rest(scene, seed)
    yield from manifest(scene, seed)


def of_layers(name):
    """Whether a file of the work folder differs in calibrated conversions."""
    return name.endswith(("-inputs", "-scales", ".mk")) or name in ("assigned", "parameters.json", "events")


def swaps(scene, seed):
    """Each stamp with the next one of its unit, and with the same one of the next unit; the weights of units are then
    known only from the manifest or, without it, from what the stamps name."""
    names = sorted(scene.stamps())
    for order in [names, sorted(names, key=lambda name: (name.partition("-")[2], name))]:
        for number, (one, other) in enumerate(zip(order, order[1:])):
            for manifest in ["kept", "lost"]:
                yield f"damage/swap/{one}/{other}/{manifest}/{AFTERWARDS[(number + seed) % 2]}"


def rest(scene, seed):
    one = {scene.artifact(key) for key in scene.keys(scene.unit_with("library")).values()}
    files = [relative for relative in sorted(scene.states["finished"])
             if relative in ("out.xfp.work/ledger.h5", "out.xfp.work/calibration.h5") or
             (relative.startswith("cache/") and relative not in one)]
    sizes = [(relative, os.path.getsize(scene.path(relative))) for relative in files]
    step = max(1, sum(size for _, size in sizes) // REST) * (CALIBRATED_STEP if scene.model == CALIBRATED else 1)
    at = seeded(seed, "rest").randrange(step)
    for relative, size in sizes:
        while at < size:
            yield f"damage/rest/{relative.replace('/', ':')}/{at}"
            at += step
        at -= size


def manifest(scene, seed):
    with sqlite3.connect(scene.path(MANIFEST)) as db:
        fits = {key for key, in db.execute("SELECT key FROM artifacts WHERE kind = 'fit'")}
        tables = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(CALIBRATED_TABLES if scene.model == CALIBRATED else tables):
            rows = db.execute(f'SELECT * FROM "{table}" ORDER BY 1, 2').fetchall()
            for number, row in enumerate(rows):
                for column in range(len(row)):
                    then = AFTERWARDS[(number + column + seed) % 2]
                    yield f"damage/manifest/{table}/{number}/{column}/{then}"
                    if table == "candidates" and row[0] in fits:
                        yield from (f"damage/manifest/{table}/{number}/{column}/v2-floor/{bit}" for bit in range(BITS))
                for then in [AFTERWARDS[(number + seed) % 2], "v2-floor"]:
                    yield f"damage/row/{table}/{number}/{then}"
                    if number:
                        yield f"damage/keys/{table}/{number}/{then}"
    db.close()
    scene.finished()


# ---- damage -------------------------------------------------------------------------------------


def flip(path, byte, bit):
    """Change only the content: the times are restored."""
    st = os.stat(path)
    if byte >= st.st_size:
        raise Skipped("the file is shorter this time")
    with open(path, "r+b") as file:
        file.seek(byte)
        value = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([value ^ 1 << bit]))
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def flipped(value, draw):
    """Flip one bit: of a real number a significant one, of text one of its last three bits."""
    if isinstance(value, float):
        bits, = struct.unpack("<Q", struct.pack("<d", value))
        return struct.unpack("<d", struct.pack("<Q", bits ^ 1 << draw.randrange(40, 62)))[0]
    if isinstance(value, int):
        return value ^ 1 << draw.randrange(16)
    if isinstance(value, str) and value:
        at = draw.randrange(len(value))
        return value[:at] + chr(ord(value[at]) ^ 1 << draw.randrange(3)) + value[at + 1:]
    return 1


def change_manifest(scene, kind, table, number, column, draw):
    """Bypass SQLite's own checks, like a damaged page: no triggers, no references."""
    db = sqlite3.connect(scene.path(MANIFEST), isolation_level=None)
    try:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA ignore_check_constraints = ON")
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        rows = db.execute(f'SELECT * FROM "{table}" ORDER BY 1, 2').fetchall()
        if number >= len(rows):
            raise Skipped("the table is shorter this time")
        row = rows[number]
        where = " AND ".join(f'"{name}" IS ?' for name in columns)
        db.execute("BEGIN IMMEDIATE")
        if kind == "row":
            db.execute(f'DELETE FROM "{table}" WHERE {where}', row)
        elif kind == "manifest":
            changed = flipped(row[column], draw)
            db.execute(f'UPDATE "{table}" SET "{columns[column]}" = ? WHERE {where}', (changed, *row))
        else:  # swap the rows: all columns but the first are exchanged
            other, count = rows[number - 1], len(columns)
            db.execute(f'DELETE FROM "{table}" WHERE {where}', row)
            db.execute(f'DELETE FROM "{table}" WHERE {where}', other)
            for mixed in [(row[0], *other[1:]), (other[0], *row[1:])]:
                db.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * count)})', mixed)
        db.execute("COMMIT")
    except (sqlite3.IntegrityError, UnicodeEncodeError) as why:
        raise Skipped(f"SQLite does not allow it: {str(why).split(':')[0]}") from None
    finally:
        db.close()


# ---- running a point ----------------------------------------------------------------------------


def run(scene, point, seed):
    _, kind, *rest_of = point.split("/")
    return {"text": run_text, "swap": run_swap, "artifact": run_artifact, "rest": run_rest}.get(kind, run_manifest)(
        scene, kind, rest_of, seeded(seed, point))


def check(scene, state, then, damaged=()):
    """Run with the damage, and then as before."""
    ended = scene.convert(then)
    scene.check_status(ended)
    if not ended.status:
        scene.check_bundle(ended, then)
    scene.check_kept(state, damaged)
    if ended.status:
        scene.check_rerun(state, damaged, then)
    scene.check_rerun(state, damaged)
    return state


def run_text(scene, _, where, draw):
    name, byte, then = where
    state = scene.finished()
    # The lowest bit turns a digit into its neighbour: another unit, another stage's outcome.
    flip(scene.path("out.xfp.work", name), int(byte), 0 if int(byte) % 4 else draw.randrange(8))
    return check(scene, state, then)


def run_swap(scene, _, where, __):
    """Each is valid by itself, but describes something else."""
    one, other, manifest, then = where
    state = scene.finished()
    paths = [scene.path("out.xfp.work", name) for name in (one, other)]
    between = scene.path("between")
    for old, new in [(paths[0], between), (paths[1], paths[0]), (between, paths[1])]:
        os.rename(old, new)
    if manifest == "lost":
        os.unlink(scene.path(MANIFEST))
    return check(scene, state, then)


def run_manifest(scene, kind, where, draw):
    table, number, *column = where
    then = column.pop(1 if kind == "manifest" else 0)
    state = scene.finished()
    change_manifest(scene, kind, table, int(number), int(column[0]) if column else 0, draw)
    return check(scene, state, then)


def run_artifact(scene, _, where, draw):
    """The damage is noticed only if the artifact is read: by the stage that made it, or as an input of the next stage;
    a whole conversion shows the effect if neither noticed, and occasionally if they did."""
    stamp, byte = where[0], int(where[1])
    unit = scene.unit_with("library")
    keys = {**scene.keys("l000000"), **scene.keys(unit)}
    relative = scene.artifact(keys[stamp])
    makers = {"survey": "xfp-survey", "outliers": "xfp-outlier-extract", "library": "xfp-libfit",
              "choice": "xfp-autoselect", "packed": "xfp-pack", "inputs": "xfp-calibrate", "scales": "xfp-survey"}
    readers = {"survey": "outliers", "outliers": "packed", "library": "choice", "choice": "packed", "packed": None,
               "inputs": "library", "scales": "choice"}
    if scene.model == CALIBRATED:
        readers["library"] = "packed"  # which copies codes
    if byte % 2 and readers[stamp]:
        gone = [scene.artifact(keys[readers[stamp]]), *NO_BUNDLE]
        state = scene.state("unread-" + stamp, gone)
        command = scene.by_hand(makers[readers[stamp]], unit)
    else:
        state = scene.state("no-bundle", NO_BUNDLE)
        of = "l000000" if stamp == "inputs" else unit
        command = scene.by_hand(makers[stamp], of) if stamp != "packed" or byte % 4 else scene.convert_command()
    flip(scene.path(relative), byte, draw.randrange(8))
    with open(scene.path(relative), "rb") as file:
        damaged = file.read()
    ended = scene.run(command)
    scene.check_status(ended, {0, 1, 3, 75, 76})
    scene.check_names()
    noticed = True
    if os.path.exists(scene.path(relative)):
        with open(scene.path(relative), "rb") as file:
            noticed = file.read() != damaged
    if not noticed or byte % 16 < 2:
        scene.check_rerun(state, {relative})
    else:
        scene.check_kept(state, {relative})
    return state


def run_rest(scene, _, where, draw):
    """Read in one of three ways: with a bundle to write, with another floor, or without manifest and stamps."""
    relative, byte = where[0].replace(":", "/"), int(where[1])
    way = draw.randrange(3)
    then = "floor" if way == 1 else "same"
    state = scene.finished() if way == 1 else scene.state("no-bundle", NO_BUNDLE)
    flip(scene.path(relative), byte, draw.randrange(8))
    if way == 2 and relative not in (MANIFEST, "out.xfp.work/ledger.h5"):
        os.unlink(scene.path(MANIFEST))
        shutil.rmtree(scene.path("out.xfp.work"))
    return check(scene, state, then, {relative})
