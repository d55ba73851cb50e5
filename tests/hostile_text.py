# SPDX-License-Identifier: Apache-2.0
"""Put control characters into files wherever a reader may quote them, run commands on these files, and report each
whose output has one: hostile_text.py PART QUOTED

The folder has a model m, its bundle m.xfp, its cache xfp-cache, a text and token ids t.npy. PART is one of the
functions at the end. At least QUOTED outputs must show an escaped control character, or the files were not read."""
import contextlib
import hashlib
import json
import os
import pty
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import zipfile

import seal

# ESC, BEL, C1 as UTF-8, DEL; and C1 as a terminal of 8 bits reads it, which is not UTF-8.
CONTROLS = "\x1b\x07\x9b\x7f".encode()
BYTES = b"\x1b\x07\x9b\x7f"
ESCAPES = b"\\u001b\\u0007\\u009b\\u007f"  # as JSON spells them
here = os.path.dirname(os.path.abspath(__file__))
found = []
ran = quoted = 0


def run(what, *command):
    judge(what, subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))


def run_on_terminal(what, *command):
    """CSV, whose bytes a pipe gets unchanged."""
    ours, theirs = pty.openpty()
    with open("errors", "w+b") as errors, open(ours, "rb", 0) as screen:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=errors)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the last process has closed the terminal
            while piece := screen.read(65536):
                shown += piece
        status = process.wait()
        errors.seek(0)
        judge(what, subprocess.CompletedProcess(command, status, shown.replace(b"\r\n", b"\n"), errors.read()))


def judge(what, done):
    global ran, quoted
    ran += 1
    bad = done.returncode < 0
    for stream in done.stdout, done.stderr:
        quoted += b"\\x1b" in stream or b"\\u001B" in stream
        try:
            bad = bad or re.search("[^\n\t -~\xa0-\U0010ffff]", stream.decode())
        except UnicodeDecodeError:
            bad = True
    if bad:
        found.append((what, done.args, done.returncode, done.stdout[-600:], done.stderr[-600:]))


def remove(*paths):
    for path in paths:
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def with_model(what, model, every=False):
    """Commands that read a checkpoint; a few of them, or every one."""
    run(what, "xfp", "inspect", "--header", "--tensors", model)
    run(what, "xfp", "eval", "--text", "text", model)
    run(what, "xfp", "generate", "--prompt", "ab", "-n", "2", "--json", model)  # a pipe gets the bytes of a text
    if every:
        for words in [], ["--json"]:
            run(what, "xfp", "inspect", *words, model)
        for words in ["inspect", "--header"], ["inspect"], ["compare", "--units", "--rows", "4", "--bits", "3"]:
            run_on_terminal(what, "xfp", *words, "--csv", model)
        run(what, "xfp-inspect", "-v", model)
        run(what, "xfp", "plan", model)
        run(what, "xfp", "compare", "--rows", "4", "--bits", "3", "--outlier-sigma", "none", model)


def with_bundle(what, bundle, every=False):
    """Commands that read a bundle; a few of them, or every one."""
    for words in ["info", "--units"], ["verify"]:
        run(what, "xfp", *words, bundle)
    if every:
        for words in ["info"], ["info", "--json"], ["status"], ["unpack", "-o", "unpacked"]:
            run(what, "xfp", *words, bundle)
        run(what, "xfp-verify", bundle)
        run(what, "xfp", "eval", "--tokens", "t.npy", bundle)
        run(what, "xfp", "generate", "--prompt", "ab", "-n", "2", "--json", bundle)
        run(what, "xfp", "plan", "m", "--like", bundle)
        remove("unpacked")


def through(what, model):
    """A whole conversion."""
    run(what, "xfp", "convert", model, "-o", "o.xfp", "--bits", "3", "--on-miss", "best", "--cache", "o-cache")
    run(what, "xfp", "status", "o.xfp")
    run(what, "xfp", "cache", "ls", "--cache", "o-cache")
    if os.path.exists("o.xfp"):
        with_bundle(what, "o.xfp", True)
        run(what, "xfp", "verify", "--source", model, "o.xfp")
    remove("o.xfp", "o.xfp.work", "o-cache")


def texts_in(data, most):
    """Places of up to `most` different texts."""
    places = {}
    for match in re.finditer(rb"[A-Za-z_][A-Za-z0-9_./-]{4,}", data):
        places.setdefault(match.group(), match.span())
    chosen = list(places.values())
    return chosen[:: max(1, len(chosen) // most)]


def planted(data, span, controls):
    """Replace the beginning of a text by control characters, keeping its length."""
    first, last = span
    piece = controls[: last - first]
    return data[:first] + piece + data[first + len(piece):]


def strings(value, path=()):
    """Paths to all strings and keys of a JSON value."""
    if isinstance(value, dict):
        for key in value:
            yield path + (key,), True
            yield from strings(value[key], path + (key,))
    elif isinstance(value, list):
        for i, piece in enumerate(value[:2]):
            yield from strings(piece, path + (i,))
    elif isinstance(value, str):
        yield path, False


def changed(root, path, is_key):
    root = json.loads(json.dumps(root))
    parent = root
    for step in path[:-1]:
        parent = parent[step]
    if is_key:
        parent[CONTROLS.decode() + path[-1]] = parent.pop(path[-1])
    else:
        parent[path[-1]] = CONTROLS.decode() + parent[path[-1]]
    return root


def spoil(what, name, data, *commands, **options):
    """A model with one file replaced."""
    remove("h")
    shutil.copytree("m", "h")
    write("h/" + name, data)
    for command in commands:
        command((what, name), "h", **options)


# ---- parts ----------------------------------------------------------------------------------------


def syntax():
    """Files that are not JSON, which the JSON library quotes."""
    for name in ("config.json", "tokenizer.json", "generation_config.json", "tokenizer_config.json",
                 "model.safetensors.index.json"):
        spoil("syntax", name, b'{"a" ' + CONTROLS + b"}", with_model, every=True)
        spoil("not UTF-8", name, b'{"a" ' + BYTES + b"}", with_model)
        spoil("a string without end", name, b'{"a": "' + CONTROLS, with_model)
        spoil("a key twice", name, b'{"a' + ESCAPES + b'": 1, "a' + ESCAPES + b'": 1} x', with_model)
    for name in "config.json", "tokenizer.json":
        spoil("syntax", name, b'{"a" ' + CONTROLS + b"}", through)
    for bad in CONTROLS, BYTES:
        write("prompts.jsonl", b'{"prompt": "a" ' + bad + b"}\n")
        run("prompts", "xfp", "generate", "--batch", "prompts.jsonl", "-n", "2", "m")
        write("t.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '" + bad)
        run("ids", "xfp", "eval", "--tokens", "t.npy", "m")


def values():
    """Strings and keys of valid JSON."""
    for name in "config.json", "tokenizer.json", "generation_config.json":
        root = json.loads(read("m/" + name))
        reader = [["eval", "--text", "text", "h"], ["generate", "--prompt", "ab", "-n", "1", "--json", "h"]]
        reader = reader[name != "config.json":][:1]
        if name == "config.json":
            root.update(quantization_config={"quant_method": "x", "fmt": "y"}, layer_types=["full_attention"],
                        rope_scaling={"rope_type": "yarn"}, hidden_act="silu", torch_dtype="bfloat16")
            reader.append(["inspect", "h"])
        if name == "tokenizer.json":
            root["normalizer"] = {"type": "Replace", "pattern": {"Regex": CONTROLS.decode() + "("}, "content": ""}
            spoil("a pattern", name, json.dumps(root).encode(), with_model)
            root["normalizer"] = None
            root["model"]["vocab"] = dict(list(root["model"]["vocab"].items())[:3])
        for path, is_key in strings(root):
            spoil((path, is_key), name, json.dumps(changed(root, path, is_key)).encode())
            for words in reader:
                run((name, path, is_key), "xfp", *words)
    root = json.loads(read("m/config.json"))
    for path in ("model_type",), ("architectures", 0):
        spoil(path, "config.json", json.dumps(changed(root, path, False)).encode(), with_model, every=True)
        spoil(path, "config.json", json.dumps(changed(root, path, False)).encode(), through)


def tensors():
    """Headers of safetensors."""
    data = read("m/model.safetensors")
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header["__metadata__"] = {"format": "pt", "note": "text"}
    first, other = next(name for name in header if name != "__metadata__"), "model.layers.0.self_attn.q_proj.weight"
    for i, path in enumerate([(first,), (first, "dtype"), (other,), ("lm_head.weight",), ("__metadata__", "note"),
                              ("__metadata__",)]):
        for is_key in {True, len(path) == 1}:
            text = json.dumps(changed(header, path, is_key), ensure_ascii=i % 2 > 0).encode()
            spoil(path, "model.safetensors", struct.pack("<Q", len(text)) + text + data[8 + size:], with_model,
                  every=i < 3)
    text = json.dumps(changed(header, (first,), True)).encode()
    spoil(first, "model.safetensors", struct.pack("<Q", len(text)) + text + data[8 + size:], through)
    # Every name, with a family that accepts them.
    family = read(os.environ["XFP_DATADIR"] + "/pipelines/families/qwen3_moe.family")
    os.mkdir("rules")
    write("rules/qwen3_moe.family", family.replace(b" ^", b" ^.*"))
    os.environ["XFP_FAMILIES"] = "rules"
    text = json.dumps({name if name == "__metadata__" else CONTROLS.decode() + name: header[name] for name in header})
    spoil("every name", "model.safetensors", struct.pack("<Q", len(text)) + text.encode() + data[8 + size:], through)
    with_model("every name", "h", True)
    del os.environ["XFP_FAMILIES"]
    for bad in CONTROLS, BYTES:
        text = b'{"a' + bad + b'": ' + bad
        spoil("header", "model.safetensors", struct.pack("<Q", len(text)) + text + data[8 + size:], with_model)


def source(what, path, most):
    """A file with control characters in each of its texts."""
    data = read(path)
    for i, span in enumerate(texts_in(data[:20000], most)):
        write(path, planted(data, span, (CONTROLS, BYTES)[i % 2]))
        with_model((what, data[slice(*span)]), path if path.endswith("f") else os.path.dirname(path), i == 0)


def sources():
    """GGUF, PyTorch and archives: texts in the file's own bytes."""
    for maker, words in ("gguf", ["qwen3", "model.gguf"]), ("pytorch-checkpoint", ["meta-2", "torch"]):
        subprocess.run([sys.executable, f"{here}/make-{maker}.py", *words, "plain"], check=True,
                       stdout=subprocess.DEVNULL)
        remove("plain")
    source("GGUF", "model.gguf", 25)
    source("PyTorch", "torch/" + next(name for name in sorted(os.listdir("torch")) if name.endswith(".pth")), 12)
    with zipfile.ZipFile("h.zip", "w") as archive:
        archive.writestr("a\x1b\x07\x9b/config.json", "{")
        archive.writestr("a\x1b\x07\x9b/model.safetensors", "x" * 99)
    with_model("zip", "h.zip", True)


def bundle():
    """A bundle's index, with a matching digest, and its other parts."""
    data = read("m.xfp")
    size = int(data[124:135], 8)
    whole = data[512:512 + size]
    for i, span in enumerate(texts_in(whole, 60)):
        bad = (CONTROLS, ESCAPES[:6], BYTES, ESCAPES[:6])[i % 4]
        new = planted(whole, span, bad) if len(bad) <= span[1] - span[0] else whole
        digest = [hashlib.sha256(text).hexdigest().encode() for text in (whole, new)]
        write("h.xfp", (data[:512] + new + data[512 + size:]).replace(*digest))
        with_bundle(("xfp.json", whole[slice(*span)]), "h.xfp", i % 8 == 3)
    for i, span in enumerate(texts_in(data[512 + size:], 12)):
        span = [512 + size + at for at in span]
        write("h.xfp", planted(data, span, CONTROLS))
        with_bundle(("bundle", data[slice(*span)]), "h.xfp", i == 0)


def rules():
    """Families, profiles, command lines and the environment."""
    text = read(os.environ["XFP_DATADIR"] + "/pipelines/families/qwen3_moe.family")
    os.mkdir("rules")
    for i, span in enumerate(texts_in(text, 24)):
        write("h.family", planted(text, span, (CONTROLS, BYTES)[i % 2]))
        run(("family", text[slice(*span)]), "xfp", "inspect", "--family", "./h.family", "m")
    for bad in CONTROLS, BYTES:
        for line in b"x" + bad, b"quantize attention " + bad + b" N,K (", b"define A (" + bad, b"model_type " + bad:
            write("h.family", text + b"\n" + line + b"\n")
            run("family", "xfp", "inspect", "--family", "./h.family", "m")
        shutil.copy("h.family", "rules")
        os.environ["XFP_FAMILIES"] = "rules"
        run("families", "xfp", "plan", "m")
        del os.environ["XFP_FAMILIES"]
        for line in bad, bad + b" = 1", b"mode = " + bad, b"profile = " + bad, b"bits = " + bad:
            write("h.profile", line + b"\n")
            run("profile", "xfp", "convert", "--profile", "./h.profile", "m", "-o", "o.xfp")
    name = CONTROLS.decode()
    for option in "--override", "--format", "--mode", "--bits", "--family", "--profile", "--like", "--target-size":
        run(option, "xfp", "plan", option, name, "m")
    commands = re.findall(r"^  xfp ([a-z]+)", subprocess.check_output(["xfp", "--help"], text=True), re.MULTILINE)
    if len(commands) < 10:
        sys.exit("xfp --help lists too few commands: " + " ".join(commands))
    programs = [[name] for name in sorted(os.listdir(os.environ["XFP_TEST_BIN"]))]
    for words in programs + [["xfp", command] for command in commands] + [["xfp", "cache", "ls"]]:
        run("a name", *words, name)
        run("two names", *words, name, name)
        run("an option", *words, "--" + name)


def work():
    """A work folder and a cache: the record of a run, events, parameters, artifacts, the manifest, the log."""
    folder, cache = "m.xfp.work", "xfp-cache"
    keys = [name[:-3] for _, _, names in os.walk(cache + "/artifacts") for name in names if name.endswith(".h5")]
    for path in folder, cache:
        shutil.copytree(path, "kept-" + path)

    def again():
        for path in folder, cache:
            remove(path)
            shutil.copytree("kept-" + path, path)

    def status(what):
        for words in [], ["--json"]:
            run(what, "xfp", "status", *words, "m.xfp")

    def look(what):
        for words in ["ls"], ["stats"], ["check", "--read-data"], ["gc", "-n"], ["ls", keys[0]], ["ls", "--json"]:
            run(what, "xfp", "cache", *words, "--cache", cache)

    def all_tools(what):
        status(what)
        look(what)
        run(what, "xfp", "convert", "m", "-o", "m.xfp", "--cache", cache, "--bits", "3", "--on-miss", "best")
        run(what, "xfp", "cache", "rebuild", "--cache", cache)
        os.environ.update(XFP_WORK=folder, XFP_CACHE=cache)
        for stage in "outlier-extract", "lloyd-fit", "libfit", "autoselect", "pack", "bundle":
            run(what, "xfp-" + stage, "u000001")
        del os.environ["XFP_WORK"], os.environ["XFP_CACHE"]

    record = read(folder + "/run")
    for i, field in enumerate([b"state", b"phase", b"model", b"out", b"cache", b"folder", b"command", b"message"]):
        for state in b"failed", b"running":
            new = re.sub(rb"(^|\0)state=[^\0]*", rb"\1state=" + state, record)
            new = re.sub(rb"(^|\0)" + field + rb"=[^\0]*", b"", new)
            write(folder + "/run", b"\0".join([field + b"=" + (CONTROLS, BYTES)[i % 2], new]))
            status(("run", field))
    for stage, message in (CONTROLS.decode(), "text"), ("fit", "text " + CONTROLS.decode()):
        again()
        with open(folder + "/events", "a") as file:
            for unit in "-", "u000001":
                file.write(seal.event(unit, stage, "failed", "-", 1, 1, message))
        status("events")
    for name in "parameters.json", "bundle", "ledger.h5", "u000001-packed", "u000001-choice", "units.mk", "lock":
        again()
        data = read(f"{folder}/{name}")
        span = (texts_in(data, 1) or [(0, len(data))])[0]
        write(f"{folder}/{name}", planted(data, span, CONTROLS))
        all_tools((name, data[slice(*span)]))
    again()
    paths = sorted(os.path.join(at, name) for at, _, names in os.walk(cache + "/artifacts") for name in names)
    for path in paths[::5]:
        data = read(path)
        for i, span in enumerate(texts_in(data, 3)):
            write(path, planted(data, span, CONTROLS))
            look((path, data[slice(*span)]))
    all_tools("artifacts")
    for table, column in columns(cache):
        again()
        with sqlite3.connect(cache + "/manifest.sqlite") as db:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid <= 3", (CONTROLS.decode(),))
        db.close()
        look((table, column))
    again()
    write(cache + "/manifest.sqlite", CONTROLS * 99)
    look("manifest")
    again()
    write(os.fsencode(cache) + b"/" + CONTROLS, b"")
    write(os.fsencode(cache) + b"/artifacts/" + BYTES, b"")
    look("names in a cache")


def columns(cache):
    db = sqlite3.connect(cache + "/manifest.sqlite")
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'")
    found = [(table, row[1]) for table, in tables.fetchall() for row in db.execute(f"PRAGMA table_info({table})")
             if row[2] == "TEXT"]
    db.close()
    return found


def names():
    """Names of files and folders."""
    for bad in CONTROLS, BYTES:
        model, out = b"m" + bad, b"o" + bad + b".xfp"
        shutil.copytree(b"m", model)
        write(model + b"/extra" + bad + b".json", b"{")
        shutil.copy(b"m/model.safetensors", model + b"/other" + bad + b".safetensors")
        with_model("two files", model)
        os.remove(model + b"/other" + bad + b".safetensors")
        with_model("names", model, bad == CONTROLS)
        convert = ["xfp", "convert", model, "-o", out, "--bits", "3", "--on-miss", "best"]
        for words in [], ["--json"], ["--cache", "none", "-n"], ["-n"]:
            run("names", *convert, *words)
        run("names", "xfp", "plan", model, "-o", out)
        with_bundle("names", out, bad == CONTROLS)
        run("names", "xfp", "verify", "--source", model, out)
        shutil.copytree(b"xfp-cache", b"c" + bad)
        for words in ["ls"], ["stats"], ["check"], ["rebuild"], ["gc"]:
            run("names", "xfp", "cache", *words, "--cache", b"c" + bad)
        write(b"c" + bad + b"/manifest.sqlite", b"damaged")
        for words in ["ls"], ["check"], ["rebuild"]:
            run("names", "xfp", "cache", *words, "--cache", b"c" + bad)
        write(out, read(out)[:5000])
        with_bundle("cut", out, bad == CONTROLS)


if len(sys.argv) != 3:
    sys.exit(__doc__)
part, least_quoted = sys.argv[1:]
globals()[part]()
for one in found[:40]:
    print(*one, sep="\n    ")
print(f"{part}: {ran} commands, {quoted} outputs quote a control character, {len(found)} have one")
if found or quoted < int(least_quoted):
    sys.exit(1)
