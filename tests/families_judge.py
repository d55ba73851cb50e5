# SPDX-License-Identifier: Apache-2.0
"""Compare the tensors of families.py's tables with xfp-inspect's output, with a bundle, and with an unpacked copy."""
import numpy as np

import read_bundle
from safetensors_io import Checkpoint


class Judge:
    failures = 0

    def expect(self, good, what):
        if not good:
            self.failures += 1
            print(f"WRONG: {what}")


def expected_units(tensors):
    """{(unit, role): (class, experts, rows, columns)}"""
    units = {}
    for tensor in tensors:
        for role, matrix in tensor.roles().items():
            shape = ([1] + list(matrix.shape))[-3:]
            before = units.get((tensor.unit, role), (tensor.class_, 0, 0, 0))
            units[tensor.unit, role] = (tensor.class_, before[1] + shape[0], shape[1], shape[2])
    return units


def inspected(family, tensors, said):
    """Compare xfp-inspect's output with the table."""
    judge = Judge()
    judge.expect(said["family"] == family, f"family is {said['family']}, not {family}")
    judge.expect((said["family_by"] is None) == (family == "general"), f"chosen {said['family_by']}")
    for note in said["notes"]:
        judge.expect(family == "general" and "no family claims" in note["text"], note["text"])
    found = {tensor["name"]: tensor for tensor in said["tensors"]}
    for tensor in tensors:
        entry = found.pop(tensor.name)
        told = (entry["class"], entry["fate"], entry["reason"].startswith(tensor.reason()))
        judge.expect(told == (tensor.class_, tensor.fate, True), f"{tensor.name}: {told}, {entry['reason']}")
    judge.expect(not found, f"tensors from nowhere: {found}")
    units = {(unit["name"], unit["role"]): (unit["class"], unit["experts"], unit["rows"], unit["cols"])
             for unit in said["units"]}
    wanted = expected_units(tensors)
    for key in sorted(set(units) | set(wanted)):
        judge.expect(units.get(key) == wanted.get(key), f"unit {key}: {units.get(key)}, not {wanted.get(key)}")
    plans = {unit["plan"] for unit in said["units"]}
    judge.expect(plans <= {"fit"}, f"plans: {plans}")
    taken = sum(rule["tensors"] for rule in said["rules"])
    judge.expect(taken == len(said["tensors"]), f"the rules took {taken} tensors")
    judge.expect(sum(group["tensors"] for group in said["names"]) == len(said["tensors"]), "names do not add up")
    return judge.failures


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def converted(tensors, folder, bundle_path, copy):
    """Check that every projection of the bundle has its role, and that the copy has the source's tensors."""
    judge, bundle = Judge(), read_bundle.Bundle(bundle_path)
    source, again = Checkpoint(folder), Checkpoint(copy)
    stacks, quantized = {}, set()
    for tensor in tensors:
        w = source.read(tensor.name)
        for role, matrix in tensor.roles(w).items():
            stacks.setdefault((tensor.unit, role), []).append(matrix.reshape((-1,) + matrix.shape[-2:]))
        if tensor.fate == "dropped":
            judge.expect(tensor.name not in again, f"{tensor.name} is back")
            continue
        judge.expect(again.entries[tensor.name][2]["shape"] == tensor.shape, f"{tensor.name} has another shape")
        judge.expect(again.dtype(tensor.name) == tensor.dtype, f"{tensor.name} comes back {again.dtype(tensor.name)}")
        if tensor.fate in ("quantized", "tied"):
            judge.expect(cosine(w, again.read(tensor.name)) > 0.97, f"{tensor.name} comes back as something else")
        else:
            judge.expect(np.array_equal(w, again.read(tensor.name)), f"{tensor.name} is not kept as it was")
    for (unit, role), matrices in stacks.items():
        stored, w = bundle.unit(unit, role), np.concatenate(matrices)
        judge.expect(stored.shape == w.shape, f"{unit} {role}: {stored.shape}, not {w.shape}")
        if stored.shape == w.shape:
            for expert, (a, b) in enumerate(zip(stored, w)):
                judge.expect(cosine(a, b) > 0.97, f"{unit} {role}: matrix {expert} is another one")
    for record in bundle.units:
        quantized.add(read_bundle.MODES[record["mode"]])
    judge.expect("v2" in quantized, f"nothing is quantized: {quantized}")
    judge.expect({(unit["name"], unit["role"]) for unit in bundle.units} == set(stacks), "other units")
    return judge.failures
