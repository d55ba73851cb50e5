# SPDX-License-Identifier: Apache-2.0
"""Clocks, power, temperature and throttling of the GPU, as nvidia-smi reports them, sampled while a bench runs."""
import contextlib
import os
import re
import statistics
import threading

from on_device_report import output_of

INTERVAL = 1  # seconds between samples
# Newer drivers renamed the second to the first, and will drop it.
REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
# Bits of that field. An idle GPU (bit 0) is not throttled.
IDLE = 1
REASONS = {0x2: "applications clocks", 0x4: "software power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
           0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "hardware power brake",
           0x100: "display clocks"}


class Sample:
    def __init__(self, line):
        fields = [field.strip() for field in line.split(",")]
        self.reasons = int(fields[4], 16) if fields[4].startswith("0x") else 0
        self.sm, self.memory, self.watts, self.celsius = (float(text) if re.fullmatch(r"[\d.]+", text) else None
                                                          for text in fields[:4])


def span(values, unit):
    """The smallest and the largest value."""
    known = [value for value in values if value is not None]
    if not known:
        return f"unknown {unit}"
    low, high = f"{min(known):.0f}", f"{max(known):.0f}"
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def throttling(samples):
    """The reasons that any sample has, each with the number of samples."""
    counts = {name: sum(1 for sample in samples if sample.reasons & bit) for bit, name in REASONS.items()}
    found = [f"{name} in {count} of {len(samples)} samples" for name, count in counts.items() if count]
    return "throttled: " + ", ".join(found) if found else "not throttled"


def summary(samples):
    """The first sample precedes the work and the last one follows it; idle samples between them do not count."""
    middle = [sample for sample in samples[1:-1] if not sample.reasons & IDLE] or samples
    clocks = [sample.sm for sample in middle if sample.sm is not None]
    text = f"SM {span([samples[0].sm], 'MHz')} before, "
    if clocks:
        text += (f"{min(clocks):.0f} / {statistics.median(clocks):.0f} / {max(clocks):.0f} MHz (min / median / max of "
                 f"{len(clocks)} samples), ")
    return (f"{text}{span([samples[-1].sm], 'MHz')} after; memory {span([s.memory for s in middle], 'MHz')}; "
            f"{span([s.watts for s in samples], 'W')}; {span([s.celsius for s in samples], 'C')}; "
            f"{throttling(samples)}")


class Clocks:
    """Samples of the first GPU that CUDA sees. Without nvidia-smi nothing is sampled."""

    def __init__(self, report):
        self.report, self.words = report, None

    def find(self):
        """Looks for nvidia-smi and the name of the field, and reports the first sample."""
        device = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
        for field in REASON_FIELDS:
            self.words = ["nvidia-smi", "-i", device, "--format=csv,noheader,nounits",
                          f"--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,{field}"]
            sample = self.now()
            if sample:
                self.report.tell(f"clocks: SM {span([sample.sm], 'MHz')}, memory {span([sample.memory], 'MHz')}, "
                                 f"{span([sample.watts], 'W')}, {span([sample.celsius], 'C')}, {throttling([sample])}")
                return
        self.words = None
        self.report.tell("clocks: not sampled: nvidia-smi is missing, or does not report them")

    def now(self):
        """A sample, or None."""
        try:
            return Sample(output_of(*self.words, timeout=10).split("\n")[0])
        except (IndexError, ValueError):
            return None

    @contextlib.contextmanager
    def around(self, label):
        """Samples in the background, and reports a summary at the end."""
        if not self.words:
            yield
            return
        samples, done = [], threading.Event()

        def loop():
            while True:
                last = done.is_set()
                samples.append(self.now())
                if last:
                    return
                done.wait(INTERVAL)

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(5)
            known = [sample for sample in samples if sample]
            self.report.tell(f"clocks during {label}: " + (summary(known) if known else "unknown"))
