#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Taking away a file or a privilege never makes a verdict better.

From a replayed machine each file, link, directory, answer and member of an answer is removed in
turn, and each file, link and directory tree is made unreadable; then whole privileges go. After
each, `prove` is asked again. Neighbours go together, and where that changes a verdict their halves, down to each alone; each
alone from the first with PEERPATH_TEST_ALL=1. The verdicts of the unchanged machine are what the others are held
against: no gate and no overall verdict may be better. A `fail` may become `unknown`, since what
proved it is gone; nothing that was not `pass` may become `pass`.
"""
import concurrent.futures
import json
import os
import queue
import random
import shutil
import sys

import machines

RANK = {"pass": 0, "degraded": 1, "unknown": 2, "fail": 3}
WORKERS = 2
COMBINED = 150
SANITIZED_STEP = 15  # of many places that are read alike
GROUP = 16  # neighbours that go together
ALL = bool(os.environ.get("PEERPATH_TEST_ALL"))
# The unchanged machine: overall verdict expected, and whether each file is denied too.
MACHINES = [
    ("good2", (), "pass", True),
    ("good2", ("narrow-link",), "degraded", False),
    ("good2", ("acs-redirect",), "degraded", False),
    ("good2", ("no-rdma-device",), "fail", False),
    ("good2", ("open-refused",), "fail", False),
]
# Without these a machine cannot have been seen to be good: what is left must not pass.
NEEDED = {
    "answers/cuda.json removed",
    "answers/cuda.json timeout",
    "answers/nvml.json removed",
    "answers/nvml.json timeout",
    "answers/verbs.json removed",
    "answers/devices.json removed",
    "answers/verbs-list.json removed",
    "answers/verbs-list.json timeout",
    "answers/verbs-devices.json removed",
    "answers/verbs-devices.json timeout",
    "every config cut to 64",
    "everything in /sys denied",
    "everything in /proc denied",
    "/sys/class/infiniband/ denied",
    "/sys/devices/pci0000:15/ denied",
    "/sys/kernel/iommu_groups/ denied",
    "/sys/module/ denied",
    "/proc/kallsyms removed",
}


class Copy:
    """A recording on disk that is changed and put back, case by case."""

    def __init__(self, top, preset, faults):
        self.top = machines.make(top, preset, faults)
        self.aside = top + ".aside"
        with open(f"{top}/raw.errors", encoding="utf-8") as f:
            self.errors = f.read()

    def verdicts(self):
        status, out, err = machines.run("prove", "--json", "--no-bundle", "--replay", self.top)
        if status not in (0, 1, 2):
            raise AssertionError(f"exit status {status}: {err.decode(errors='replace')}")
        document = json.loads(out)
        found = {g["name"]: g["verdict"] for g in document["gates"] if g["asked"]}
        found["overall"] = document["verdict"]
        return found

    def without(self, path):
        os.rename(path, self.aside)
        try:
            return self.verdicts()
        finally:
            os.rename(self.aside, path)

    def without_all(self, paths):
        moved = []
        for path in paths:
            if os.path.lexists(path):  # may have gone with a directory above it
                os.rename(path, f"{self.aside}{len(moved)}")
                moved.append(path)
        try:
            return self.verdicts()
        finally:
            for i in reversed(range(len(moved))):
                os.rename(f"{self.aside}{i}", moved[i])

    def denied(self, *paths):
        """paths as on the node"""
        with open(f"{self.top}/raw.errors", "w", encoding="utf-8") as f:
            f.write(self.errors + "".join(f"EACCES\t{p}\n" for p in paths))
        try:
            return self.verdicts()
        finally:
            with open(f"{self.top}/raw.errors", "w", encoding="utf-8") as f:
                f.write(self.errors)

    def rewritten(self, changes):
        """changes: {path on disk: bytes}"""
        before = {}
        for path, content in changes.items():
            with open(path, "rb") as f:
                before[path] = f.read()
            with open(path, "wb") as f:
                f.write(content)
        try:
            return self.verdicts()
        finally:
            for path, content in before.items():
                with open(path, "wb") as f:
                    f.write(content)


def entries(top):
    """(files and links, directories) of the raw tree, as on the node."""
    files, dirs = [], []
    for d, names, leaves in os.walk(f"{top}/raw"):
        node = d[len(top) + 4 :]
        if node:
            dirs.append(node)
        links = [n for n in names if os.path.islink(f"{d}/{n}")]
        files += [f"{node}/{n}" for n in leaves + links]
    return sorted(files), sorted(dirs)


def members(value, path=()):
    """Every member of an answer's data, as the keys and indexes that lead to it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield path + (key,)
        if isinstance(inner, (dict, list)):
            yield from members(inner, path + (key,))


def cut_members(document, paths):
    copy = json.loads(json.dumps(document))
    for path in reversed(paths):  # from the end: what is before keeps its index
        at = copy["data"]
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
    return copy


class Cut:
    """Members of one answer that are not there."""

    def __init__(self, full, document, *paths):
        self.full, self.document, self.paths = full, document, paths

    def __call__(self, c):
        return c.rewritten({f"{c.top}/{self.full}": json.dumps(cut_members(self.document, self.paths)).encode()})


def answer_cases(top):
    for file in sorted(os.listdir(f"{top}/answers")):
        full = f"answers/{file}"
        with open(f"{top}/{full}", encoding="utf-8") as f:
            document = json.load(f)

        def put(changed, full=full):
            text = json.dumps(changed).encode()
            return lambda c: c.rewritten({f"{c.top}/{full}": text})

        yield f"{full} removed", lambda c, full=full: c.without(f"{c.top}/{full}")
        yield f"{full} empty", lambda c, full=full: c.rewritten({f"{c.top}/{full}": b""})
        yield f"{full} cut", lambda c, full=full, t=json.dumps(document): c.rewritten(
            {f"{c.top}/{full}": t[: len(t) // 2].encode()}
        )
        for outcome in ("timeout", "crashed", "failed", "not-asked"):
            lost = {**document, "outcome": outcome, "detail": "permission denied", "data": None}
            yield f"{full} {outcome}", put(lost)
        yield f"{full} no data", put({**document, "data": {}})
        for path in members(document["data"]):
            yield f"{full} without {'.'.join(map(str, path))}", Cut(full, document, path)


def config_cases(top, files):
    configs = [f for f in files if f.endswith("/config") and "/devices/pci" in f]

    def cut(names, length):
        def case(c):
            changes = {}
            for name in names:
                with open(f"{c.top}/raw{name}", "rb") as f:
                    changes[f"{c.top}/raw{name}"] = f.read()[:length]
            return c.rewritten(changes)

        return case

    for length in (0, 63, 64, 256):
        yield f"every config cut to {length}", cut(configs, length)
    for name in configs:
        yield f"{name} cut to 64", cut([name], 64)


def identity_cases(files):
    """All that says what a function is, at once: it must not vanish from what is counted."""
    paths = [f[: -len("/class")] for f in files if "/devices/pci" in f and f.endswith("/class")]
    for path in paths:
        if any(p.startswith(path + "/") for p in paths):
            continue  # what leads to others is a bridge, whatever else it hides
        names = [f"{path}/{leaf}" for leaf in ("config", "class", "vendor", "device")]
        name = path.rsplit("/", 1)[1]
        yield f"identity of {name} denied", lambda c, p=names: c.denied(*p)
        yield f"identity of {name} removed", lambda c, p=names: c.without_all(
            [f"{c.top}/raw{x}" for x in p]
        )


def combined_cases(files, dirs):
    """Several at once, as a narrow container takes them away; the same ones in every run."""
    draw = random.Random(1)
    devices = [f for f in files if "/pci0" in f or "infiniband" in f or "/bus/pci/" in f]
    for n in range(COMBINED):
        chosen = draw.sample(devices, draw.randint(2, 30)) + draw.sample(dirs, draw.randint(0, 3))
        if n % 2:
            yield f"together denied: {chosen}", lambda c, p=chosen: c.denied(*p)
        else:
            yield f"together removed: {chosen}", lambda c, p=chosen: c.without_all(
                [f"{c.top}/raw{x}" for x in p]
            )


def cases(top, thorough):
    files, dirs = entries(top)
    for name in files:
        yield f"{name} removed", lambda c, n=name: c.without(f"{c.top}/raw{n}")
    for name in dirs:
        yield f"{name}/ removed", lambda c, n=name: c.without(f"{c.top}/raw{n}")
        below = [n for n in files + dirs if n == name or n.startswith(name + "/")]
        yield f"{name}/ denied", lambda c, b=below: c.denied(*b)
    if thorough:
        for name in files:
            yield f"{name} denied", lambda c, n=name: c.denied(n)
    yield from answer_cases(top)
    yield from config_cases(top, files)
    yield from identity_cases(files)
    yield from combined_cases(files, dirs)
    for top_dir in ("/sys", "/proc", "/dev", "/etc", "/usr", "/boot"):
        below = [f for f in files if f.startswith(top_dir + "/")]
        yield f"everything in {top_dir} denied", lambda c, b=below: c.denied(*b)


def alike(case):
    """With what a case may go together: None, or a word."""
    name, change = case
    if name in NEEDED:
        return None
    if isinstance(change, Cut):
        return change.full
    return next((how for how in (" removed", " denied") if name.startswith("/") and name.endswith(how)
                 and not name.endswith("/" + how)), None)


def grouped(todo, most):
    """The cases in order, neighbours that are alike in one list."""
    chunk = []
    for case in todo:
        if chunk and (len(chunk) == most or not alike(case) or alike(case) != alike(chunk[0])):
            yield chunk
            chunk = []
        chunk.append(case)
    yield chunk


def together(chunk):
    """One change for all of them."""
    how = alike(chunk[0])
    if isinstance(chunk[0][1], Cut):
        first = chunk[0][1]
        return Cut(first.full, first.document, *(path for _, cut in chunk for path in cut.paths))
    paths = [name[: -len(how)] for name, _ in chunk]
    if how == " denied":
        return lambda c: c.denied(*paths)
    return lambda c: c.without_all([f"{c.top}/raw{path}" for path in paths])


def better(before, after):
    """Gates whose verdict got better, as text."""
    for gate, old in before.items():
        new = after.get(gate, "unknown")
        if RANK[new] < RANK[old] and (old, new) != ("fail", "unknown"):
            yield f"{gate}: {old} -> {new}"


def examine(work, preset, faults, expected, thorough):
    name = "+".join((preset, *faults))
    copies = queue.SimpleQueue()
    for i in range(WORKERS):
        copies.put(Copy(f"{work}/{name}-{i}", preset, faults))
    first = copies.get()
    before = first.verdicts()
    print(f"{name}: {before}")
    failures = []
    if expected and before["overall"] != expected:
        failures.append(f"{name} unchanged: {before['overall']}, expected {expected}")
    todo = list(cases(first.top, thorough))
    missing = NEEDED - {case[0] for case in todo} if thorough else ()
    failures += [f"{name}: no case '{m}'" for m in missing]
    if machines.SANITIZED:
        todo = todo[::SANITIZED_STEP]
    copies.put(first)
    worse = 0

    def some(chunk):
        copy = copies.get()
        try:
            results = list(tried(copy, chunk))
        finally:
            copies.put(copy)
        return [fault for found, _ in results for fault in found], sum(changed for _, changed in results)

    def tried(copy, chunk):
        if len(chunk) == 1:
            yield copy_result(copy, chunk[0])
        elif not unchanged(copy, together(chunk)):
            half = len(chunk) // 2
            yield from tried(copy, chunk[:half])
            yield from tried(copy, chunk[half:])

    def unchanged(copy, change):
        try:
            return change(copy) == before
        except (AssertionError, ValueError, KeyError):
            return False  # which of them it was is found out by each alone

    def copy_result(copy, case):
        try:
            after = case[1](copy)
        except (AssertionError, ValueError, KeyError) as e:
            return [f"{name}: {case[0]}: {e}"], False
        found = [f"{name}: {case[0]}: {b}" for b in better(before, after)]
        needed = case[0] in NEEDED or case[0].startswith("identity of ")
        if needed and after["overall"] == "pass":
            found.append(f"{name}: {case[0]}: still passes")
        return found, after != before

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for found, changed in pool.map(some, grouped(todo, 1 if ALL else GROUP)):
            failures += found
            worse += changed
    print(f"{name}: {len(todo)} cases, {worse} changed a verdict, {len(failures)} failures")
    if not worse:
        failures.append(f"{name}: no removal changed anything: the test sees nothing")
    return failures


def main():
    machines.need_program()
    failures = []
    with machines.scratch() as work:
        # Sanitizers look for crashes, which one machine shows as well as four.
        for preset, faults, expected, thorough in MACHINES[: 1 if machines.SANITIZED else None]:
            failures += examine(work, preset, faults, expected, thorough)
            for d in os.listdir(work):
                shutil.rmtree(f"{work}/{d}")
    for f in failures[:60]:
        print(f"FAIL {f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
