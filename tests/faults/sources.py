# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that changes during its conversion, before or after each stage, in every way that a file can change.

A bundle is made of either the old or the new checkpoint, or there is a message and none; a rerun gives the bundle of
the current checkpoint. A script in place of the stage stops it, the change is made, and the stage continues.
"""
import itertools
import json
import mmap
import os
import shutil
import sqlite3
import struct
import time

from common import CALIBRATED, Failed, PATIENCE_S, SANE, Skipped, describe, sha256

STAGES = ["xfp-inspect", "xfp-survey", "xfp-outlier-extract", "xfp-lloyd-fit", "xfp-libfit", "xfp-autoselect",
          "xfp-pack", "xfp-bundle"]
ATTENTION, EXPERT = "model.layers.0.self_attn.", "model.layers.0.mlp.experts.1."
# By model: the tensor with the changed element, or a replacement of equal length in config.json.
CHANGES = {
    None: {"row": ATTENTION + "v_proj.weight", "expert": EXPERT + "gate_proj.weight",
           "unit-kept": ATTENTION + "q_proj.weight", "kept": "model.norm.weight", "fp8": "lm_head.weight"},
    "mixed": {"scale": ATTENTION + "v_proj.weight_scale", "zero": EXPERT + "gate_proj.weight_zero_point",
              "global": EXPERT + "up_proj.weight_global_scale", "codes": ATTENTION + "q_proj.weight_packed",
              "row-scale": EXPERT + "down_proj.weight_scale", "config": ("minmax", "median")},
    "gptq": {"scale": ATTENTION + "v_proj.scales", "zero": EXPERT + "gate_proj.qzeros",
             "codes": ATTENTION + "q_proj.qweight", "config": ("0.01", "0.02")},
    # All but the head decide the inputs of the next matrices.
    CALIBRATED: {"norm": "model.layers.0.input_layernorm.weight", "unit-kept": ATTENTION + "q_proj.weight",
                 "expert": EXPERT + "gate_proj.weight", "embedding": "model.embed_tokens.weight",
                 "config": ('"rms_norm_eps": 1e-06', '"rms_norm_eps": 1e-01'), "head": "lm_head.weight"},
}
WAYS = ["replaced", "written", "mapped", "relinked", "relinked-and-back", "relinked-back-later"]
# nothing: a first conversion; known: every artifact of both checkpoints exists, but no file was read yet
CACHES = ["nothing", "known"]


def points(scene, seed):
    """IDs: sources/STAGE/before|after/WAY/CACHE/CHANGE"""
    number, changes = seed, list(CHANGES[scene.model])
    stages = ["xfp-calibrate", "l000001", *STAGES] if scene.model == CALIBRATED else STAGES
    for stage, when, way, cache in itertools.product(stages, ["before", "after"], WAYS, CACHES):
        if way == "relinked-and-back" and when == "after":
            continue
        number += 1
        yield f"sources/{stage}/{when}/{way}/{cache}/{changes[number % len(changes)]}"


def file_of(folder, what):
    """The file that contains the tensor."""
    if isinstance(what, tuple):
        return "config.json"
    index = os.path.join(folder, "model.safetensors.index.json")
    if not os.path.exists(index):
        return "model.safetensors"
    with open(index, encoding="utf-8") as file:
        return json.load(file)["weight_map"][what]


def place(path, tensor):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        begin, end = json.loads(file.read(size))[tensor]["data_offsets"]
    return 8 + size + (begin + end) // 4 * 2 + 1  # the high byte of an element in the middle


def make_new(scene, name):
    """Make new-NAME, the changed checkpoint, and the references of both; returns the file that differs."""
    folder, what = "new-" + name, CHANGES[scene.model][name]
    changed = file_of(scene.path("m"), what)
    if folder in scene.references:
        return folder, changed
    shutil.copytree(scene.path("m"), scene.path(folder))
    with open(scene.path(folder, changed), "r+b") as file:
        if isinstance(what, tuple):
            text = file.read()
            file.seek(0)
            file.write(text.replace(*(part.encode() for part in what)))
        else:
            at = place(file.name, what)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 0x80]))  # its sign
    scene.refer(folder, folder)
    if scene.references[folder][0] == scene.references["same"][0]:
        raise Failed(f"the change {name} changes nothing")
    return folder, changed


def fresh(scene, cache, folder):
    """Make `link`, a link to `old`, which is a copy of the checkpoint that may be changed."""
    for name in ["old", "out.xfp.work", "cache", "go", "out.xfp", "link"]:
        path = scene.path(name)
        (shutil.rmtree if os.path.isdir(path) and not os.path.islink(path) else remove)(path)
    os.makedirs(scene.path("go"))
    shutil.copytree(scene.path("m"), scene.path("old"))
    os.symlink("old", scene.path("link"))
    if cache == "known":
        kept = scene.path("known-" + folder)
        if not os.path.exists(kept):
            for model in ["m", folder]:
                ended = scene.run(scene.convert_command("same", "elsewhere/o.xfp", kept, model))
                if ended.status:
                    raise Failed("without any fault: " + describe(ended))
            with sqlite3.connect(os.path.join(kept, "manifest.sqlite")) as db:
                db.execute("DELETE FROM sources")
                db.execute("DELETE FROM source_files")
            db.close()
        shutil.copytree(kept, scene.path("cache"))


def remove(path):
    if os.path.lexists(path):
        os.unlink(path)


class Change:
    """One way to change `old`, or the target of `link`."""

    def __init__(self, scene, way, new, name):
        """`name`: the file that is changed."""
        self.scene, self.way, self.new, self.name, self.map = scene, way, new, name, None
        if way == "mapped":
            # A page that is dirty already: writing to it again changes no timestamp.
            with open(scene.path("old", name), "r+b") as file:
                self.map = mmap.mmap(file.fileno(), 0)
            self.map[0] = self.map[0]

    def content(self):
        with open(self.scene.path(self.new, self.name), "rb") as file:
            return file.read()

    def make(self):
        path = self.scene.path("old", self.name)
        if self.way == "mapped":
            self.map[:] = self.content()
        elif self.way == "replaced":
            shutil.copy2(self.scene.path(self.new, self.name), path + "-new")
            os.rename(path + "-new", path)
        elif self.way == "written":
            st = os.stat(path)
            with open(path, "r+b") as file:
                file.write(self.content())
            os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
        else:
            self.link(self.new)

    def link(self, target):
        os.symlink(target, self.scene.path("link-new"))
        os.rename(self.scene.path("link-new"), self.scene.path("link"))


def run(scene, point, _):
    _, stage, when, way, cache, name = point.split("/")
    new, changed = make_new(scene, name)
    fresh(scene, cache, new)
    change = Change(scene, way, new, changed)
    tool = "xfp-calibrate" if stage == "l000001" else stage
    real, go = os.path.join(os.environ["XFP_TEST_BIN"], tool), scene.path("go")
    others = f'case "$*" in *{stage}) ;; *) exec {real} "$@" ;; esac' if tool != stage else ":"
    stop = "[ -e {go}/{when} ] || {{ : >{go}/{when}; while [ ! -e {go}/{when}-on ]; do sleep 0.003; done; }}"
    scene.put_first(tool, "\n".join([others, stop.format(go=go, when="before"), f'{real} "$@"', "status=$?",
                                      stop.format(go=go, when="after"), "exit $status"]))
    command = scene.convert_command(model="link")
    try:
        process = scene.start([scene.path("first", "xfp"), *command[1:]])
        for moment in ["before", "after"]:
            if wait_for(process, os.path.join(go, moment)):
                if moment == when:
                    change.make()
                elif way == "relinked-and-back":
                    change.link("old")
            with open(os.path.join(go, moment + "-on"), "w", encoding="ascii"):
                pass
        ended = scene.wait(process)
    finally:
        os.unlink(scene.path("first", tool))
    if not os.path.exists(os.path.join(go, when)):
        scene.expect(ended)
        raise Skipped("the stage was not needed")
    check(scene, ended, new, way == "mapped")
    back = way.startswith("relinked-")
    if back:
        change.link("old")
    rerun(scene, command, "same" if back else new, way == "mapped")


def wait_for(process, path):
    """Whether the stage ran; some are not needed if everything is cached."""
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.exists(path):
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.003)
    return True


def check(scene, ended, new, mapped):
    """A calibrated bundle depends on most weights twice, and a change between both that no timestamp shows is not
    noticed."""
    scene.check_status(ended, SANE)
    found = sha256(scene.path("out.xfp")) if os.path.exists(scene.path("out.xfp")) else None
    mixed = mapped and scene.model == CALIBRATED
    if not mixed and found not in [None, scene.references["same"][0], scene.references[new][0]]:
        raise Failed("out.xfp is of neither checkpoint: " + describe(ended))
    if not ended.status and not found:
        raise Failed("status 0 without a bundle: " + describe(ended))
    if ended.status not in (0, 1):
        raise Failed("a checkpoint that changes is no bad input: " + describe(ended))


def rerun(scene, command, right, mapped):
    """If no timestamp changed, only --rehash is certain to notice a write after the last check."""
    ended = scene.run(command)
    if mapped:
        check(scene, ended, right, True)
        ended = scene.run([*command, "--rehash"])
    try:
        scene.expect(ended, right)
    except Failed as problem:
        raise Failed(f"rerun: {problem}") from None
    scene.check_debris()
