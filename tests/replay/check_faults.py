#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole made machines with one fault each, through `peerpath check`: the rule that must say so, the
verdict, the exit status, and the shape of the JSON document and of the page.

The faults are put into the recorded files and answers by tests/fixtures/make_machine.py, which knows
nothing of rules.
"""
import fcntl
import hashlib
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

import shared

MAKE = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "make_machine.py"
EXIT = {"pass": 0, "degraded": 1, "fail": 1, "unknown": 2}

# faults: verdict, rules that must fire and count (others may not, except those after "|")
CASES = {
    "": ("pass", set()),
    "acs-redirect": ("degraded", {"acs-redirect"}),
    "acs-unreadable": ("unknown", set()),
    "proprietary": ("degraded", {"proprietary-module-peermem"}),
    "proprietary,no-peermem": ("fail", {"no-way-peermem-not-loaded"}),
    "no-peermem": ("pass", set()),
    "narrow-link": ("degraded", {"link-narrow"}),
    "slow-link": ("degraded", {"link-slow"}),
    "far-nic": ("degraded", {"rail-far"}),
    "port-down": ("degraded", {"rail-nearer-hca-unusable", "rail-far"}),
    "no-rdma-device": ("fail", {"no-rdma-device"}),
    "memlock-64k": ("degraded", {"memlock-small"}),
    "bar1-256m": ("degraded", {"bar1-256m"}),
    "iommu-translated": ("degraded", {"iommu-translates", "acs-redirect"}),
    "vm-flat": ("degraded", {"rail-far-in-guest"}),
    "roce": ("pass", set()),
    "roce-no-gid": ("degraded", {"no-rocev2-gid"}),
    "no-dmabuf-verb": ("degraded", {"libibverbs-without-dmabuf"}),
    "no-uverbs-access": ("fail", {"uverbs-no-access"}),
    "open-refused": ("fail", {"uverbs-no-access"}),
}

faults = []


def need(condition, text):
    if not condition:
        faults.append(text)


def made(top, fault):
    out = pathlib.Path(top) / (fault.replace(",", "+") or "good")
    if not out.exists():
        args = ["--faults", fault] if fault else []
        subprocess.run([sys.executable, str(MAKE), *args, "good2", str(out)], check=True,
                       stdout=subprocess.DEVNULL)
    return str(out)


def one_case(program, top, fault):
    want, rules = CASES[fault]
    code, doc, err = shared.document(program, "peerpath.check/1", "check", "--replay", made(top, fault))
    if doc is None:
        faults.append(f"{fault}: no document, exit {code}: {err}")
        return
    fired = {f["rule"] for f in doc["findings"] if f["state"] == "fired" and f["counts"]}
    need(doc["verdict"] == want, f"{fault}: {doc['verdict']}, want {want}: {doc['claim']}")
    need(code == EXIT[want], f"{fault}: exit {code}")
    need(fired == rules, f"{fault}: fired {sorted(fired)}, want {sorted(rules)}")
    for f in doc["findings"]:
        need(f["facts"] and all("value" in x for x in f["facts"]), f"{f['rule']}: no facts")
        need(f["next"] and f["source"] and f["reviewed"], f"{f['rule']}: incomplete")
        if f["state"] == "open":
            need(any(x["value"] is None and x["unknown"] and x["how"] for x in f["facts"]),
                 f"{f['rule']}: open without a reason")
    prove, result, err = shared.document(program, "peerpath.prove/1", "prove", "--no-bundle",
                                         "--replay", made(top, fault))
    need(result and result["verdict"] == doc["verdict"] and prove == code,
         f"{fault}: prove and check disagree")


def words_of(program, top):
    """What the page and the document must say, in the places where a person looks first."""
    _, doc, _ = shared.document(program, "peerpath.check/1", "check", "--replay", made(top, "port-down"))
    need("near hca 0000:19:00.0 (PIX) has no ACTIVE port" in doc["claim"], f"port-down: {doc['claim']}")
    fired = [f["rule"] for f in doc["findings"] if f["state"] == "fired" and f["counts"]]
    need(fired[0] == "rail-nearer-hca-unusable", f"port-down: first is {fired}")
    _, text, _ = shared.run(program, "--replay", made(top, "port-down"))
    first = [line for line in text.splitlines() if line.startswith("degraded")]
    need("near hca 0000:19:00.0 (PIX) has no" in first[0], f"the screen: {first}")
    _, doc, _ = shared.document(program, "peerpath.check/1", "check", "--replay", made(top, "vm-flat"))
    acs = next(p for p in doc["prerequisites"] if p["fact"] == "pair.acs_redirect")
    need(acs["state"] == "unknown" and "virtual machine" in acs["value"], f"vm-flat: {acs}")
    code, doc, _ = shared.document(program, "peerpath.check/1", "check", "--probe", "--replay", made(top, ""))
    need(doc["verdict"] == "pass" and code == 0, f"a probe that was not made judges: {doc['verdict']}")
    hosts = [p["note"] for p in doc["probe"] if p["method"] == "host"]
    need(hosts and all("whether others use it is not known" in n for n in hosts), f"probe: {hosts}")
    need(all(p["gpu"] for p in doc["probe"] if p["method"].startswith("gpu-")), "a GPU row without its GPU")
    _, text, _ = shared.run(program, "check", "--details", "--root", top)
    need("next                  peerpath check" not in text, "check --details is its own next step")
    _, text, _ = shared.run(program, "--root", top)
    need("Whether there is a GPU is unknown: /sys/bus/pci/devices" in text and "No GPU was" not in text and
         re.search(r"but \d+ needed facts are unknown", text), f"an empty root: {text}")
    _, text, _ = shared.run(program, "prove", "--no-bundle", "--through", "3", "--replay", made(top, ""))
    words = " ".join(text.split())
    need("whether NCCL uses the direct path is unknown: no job was observed" in words and
         "no workload was measured" in words and "state     proven" in text, f"prove: {text}")
    _, doc, _ = shared.document(program, "peerpath.check/1", "check", "--replay", made(top, "no-uverbs-access"))
    need("cannot work for this process" in doc["claim"], f"no-uverbs-access: {doc['claim']}")
    plan = pathlib.Path(top) / "plan.conf"
    shared.run(program, "topo", "--expect-write", str(plan), "--replay", made(top, "vm-flat"))
    need(plan.exists() and "redirect = no" not in plan.read_text(), "a plan from a flat guest says redirect")


def probe_case(program, top, fault, want, *more):
    args = ("check", "--probe", *more, "--replay", made(top, fault))
    code, doc, err = shared.document(program, "peerpath.check/1", *args)
    need(doc and doc["verdict"] == want and code == EXIT[want], f"{fault}: {code} {doc and doc['claim']} {err}")
    _, text, _ = shared.run(program, *args)
    return doc, text


def probes(program, top):
    """A recorded probe: its rows, what they make of the gate, and pairs that are alike in one line."""
    doc, text = probe_case(program, top, "probed", "pass")
    rows = doc["probe"]
    need(len(rows) == 12 and all(r["verdict"] == "pass" for r in rows), f"probed: {rows}")
    need(all(bool(r["gpu"]) == r["method"].startswith("gpu-") for r in rows), "rows and their GPUs")
    need("pass: gpu-dmabuf, 4 pairs (the first 0000:" in text and "pass: gpu-peermem, 4 pairs" in text,
         f"probed: {text}")
    doc, text = probe_case(program, top, "probed-524", "degraded")
    bad = [r for r in doc["probe"] if r["verdict"] == "fail"]
    need(len(bad) == 2 and all(r["errno"] == 524 and r["method"] == "gpu-dmabuf" for r in bad), f"524: {bad}")
    need("was refused GPU memory by DMA-BUF" in doc["claim"], f"524: {doc['claim']}")
    need("fail: gpu-dmabuf, 2 pairs" in text and "errno 524" in text, f"524: {text}")
    doc, _ = probe_case(program, top, "probed-no-way", "fail")
    need("could register GPU memory in no way" in doc["claim"], f"no way: {doc['claim']}")
    doc, text = probe_case(program, top, "probed,gpu-busy", "pass")
    busy = [r for r in doc["probe"] if r["verdict"] == "unknown"]
    need(len(busy) == 4 and all("3 processes compute on it" in r["note"] for r in busy), f"busy: {busy}")
    need(doc["probe_busy_gpus"] == 1, "busy GPUs are counted")
    doc, _ = probe_case(program, top, "probed,gpu-busy", "pass", "--busy-ok")
    need(doc["busy_ok"] and all(r["verdict"] == "pass" for r in doc["probe"]), "--busy-ok")


def rule_set(program, top):
    """A result says by which rules it was made: the digest is that of the files themselves."""
    rules = pathlib.Path(top) / "other.d"
    rules.mkdir()
    own = pathlib.Path(__file__).resolve().parents[2] / "data" / "rules"
    for path in own.glob("*.rules"):
        (rules / path.name).write_bytes(path.read_bytes())
    text = b"".join(p.read_bytes() for p in sorted(rules.iterdir(), key=lambda p: p.name.encode()))
    policy = pathlib.Path(top) / "site.conf"
    policy.write_text("[forbid]\niommu-passthrough = isolation\n")
    options = ("--rules", str(rules), "--policy", str(policy), "--replay", made(top, ""))
    for args in (("check",), ("prove", "--no-bundle")):
        _, doc, err = shared.document(program, f"peerpath.{args[0]}/1", *args, *options)
        said = doc["rule_set"]
        need(said["directory"] == "other.d" and said["sha256"] == hashlib.sha256(text).hexdigest() and
             said["rules"] == text.count(b"\n[") + text.startswith(b"[") and said["disabled"] == [] and
             said["policy"] == "site.conf" and said["forbidden"] == ["iommu-passthrough"], f"{args}: {said}")
        _, page, _ = shared.run(program, *args, *options)
        need("other.d: " in page and said["sha256"][:16] in page, f"{args}: the page hides its rules")
        _, page, _ = shared.run(program, *args, *options[4:])
        need("SHA-256" not in page, f"{args}: the page tells of the program's own rules")
    run = subprocess.run([program, "check", *options[4:]], capture_output=True, text=True, check=False,
                         timeout=60, env=dict(os.environ, PEERPATH_RULES=str(rules)))
    need(run.stderr.count("\n") == 1 and "PEERPATH_RULES" in run.stderr, f"PEERPATH_RULES: {run.stderr}")


def page_width(program, machine):
    """The page on a terminal of 80 columns; the longest line. 0 where there is no terminal."""
    try:
        main, side = pty.openpty()
    except OSError as error:
        print(f"no pseudo-terminal here ({error}): page widths are e2e-terminal's to skip and to count")
        return 0
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    run = subprocess.Popen([program, "check", "--details", "--color", "never", "--replay", machine],
                           stdout=side, stderr=subprocess.DEVNULL)
    os.close(side)
    text = b""
    try:
        while block := os.read(main, 65536):
            text += block
    except OSError:
        pass  # the other side is closed
    run.wait(timeout=60)
    os.close(main)
    text = text.decode()
    _, doc, _ = shared.document(program, "peerpath.check/1", "check", "--replay", machine)
    for url in {u for f in doc["findings"] if f["state"] == "fired" for u in f["source"]}:
        need(url in text, f"{url} is broken over two lines")
    # An address that is longer than the line runs over.
    return max(len(line) for line in text.split("\r\n") if not re.match(r"^ *http\S+$", line))


def site_files(program, top):
    machine = made(top, "iommu-translated")
    policy = pathlib.Path(top) / "policy.conf"
    policy.write_text("[forbid]\niommu-passthrough = isolation is required\n")
    code, doc, _ = shared.document(program, "peerpath.check/1", "check", "--policy", str(policy),
                                   "--replay", machine)
    blocked = {f["rule"]: f["blocked"] for f in doc["findings"] if f["blocked"]}
    need(blocked.get("iommu-translates") == "isolation is required", f"blocked: {blocked}")
    need(code == 1, "a forbidden fix must not change the exit status")
    _, text, _ = shared.run(program, "check", "--policy", str(policy), "--replay", machine)
    need("blocked by site policy: isolation" in " ".join(text.split()), "the page hides the policy")
    policy.write_text("[forbid]\niommu-passthru = x\n")
    code, text, err = shared.run(program, "check", "--policy", str(policy), "--replay", machine)
    need(code == 65 and not text and "did you mean 'iommu-passthrough'" in err, f"policy: {code} {err}")
    rules = pathlib.Path(top) / "rules"
    rules.mkdir()
    (rules / "a.rules").write_text("[a]\ntitel = x\n")
    code, text, err = shared.run(program, "check", "--rules", str(rules), "--replay", machine)
    need(code == 65 and not text and "a.rules:2: unknown key 'titel'" in err, f"rules: {code} {err}")
    code, _, _ = shared.run(program, "check", "--fail-on", "fail", "--replay", machine)
    need(code == 0, f"--fail-on fail: exit {code}")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as top:
        for fault in CASES:
            one_case(program, top, fault)
        words_of(program, top)
        probes(program, top)
        rule_set(program, top)
        site_files(program, top)
        for fault in ("", "iommu-translated", "acs-unreadable"):
            width = page_width(program, made(top, fault))
            need(width <= 80, f"{fault or 'good'}: a line of {width} columns on a terminal of 80")
    print("\n".join(faults) or f"{len(CASES)} machines judged as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
