#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each made fault gets its verdict, from the rule that is about it and no other.

The fault is made in bits, files and answers of the recording; what is expected is written down
here. The healthy machines are the near misses: on them no rule that judges may fire.
"""
import json
import sys

import machines

# faults: (verdict, rules that must have fired or be open with it)
EXPECTED = {
    ("acs-redirect",): ("degraded", {"acs-redirect"}),
    ("acs-unreadable",): ("unknown", {"acs-redirect", "acs-direct-translated-without-ats"}),
    ("proprietary",): ("degraded", {"proprietary-module-peermem"}),
    ("proprietary", "no-peermem"): ("fail", {"no-way-peermem-not-loaded"}),
    ("no-peermem",): ("pass", set()),
    ("narrow-link",): ("degraded", {"link-narrow"}),
    ("slow-link",): ("degraded", {"link-slow"}),
    ("far-nic",): ("degraded", {"rail-far"}),
    ("port-down",): ("degraded", {"rail-far", "rail-nearer-hca-unusable"}),
    ("no-rdma-device",): ("fail", {"no-rdma-device"}),
    ("memlock-64k",): ("degraded", {"memlock-small"}),
    ("bar1-256m",): ("degraded", {"bar1-256m"}),
    ("iommu-translated",): ("degraded", {"acs-redirect", "iommu-translates"}),
    ("vm-flat",): ("degraded", {"rail-far-in-guest"}),
    ("roce",): ("pass", set()),
    ("roce-no-gid",): ("degraded", {"no-rocev2-gid"}),
    ("no-dmabuf-verb",): ("degraded", {"libibverbs-without-dmabuf"}),
    ("no-uverbs-access",): ("fail", {"uverbs-no-access"}),
    ("open-refused",): ("fail", {"uverbs-no-access"}),
}
STATUS = {"pass": 0, "degraded": 1, "unknown": 2, "fail": 1}


def judge(name, tree, verdict, rules):
    status, out, err = machines.run("check", "--json", "--replay", tree)
    try:
        d = json.loads(out)
    except ValueError:
        return [f"{name}: exit status {status}, no JSON: {err!r}"]
    found = {f["rule"] for f in d["findings"] if f["verdict"] != "pass"}
    wrong = []
    if d["verdict"] != verdict or status != STATUS[verdict]:
        wrong.append(f"{name}: {d['verdict']}, exit status {status}; expected {verdict}")
    if found != rules:
        wrong.append(f"{name}: rules {sorted(found)}; expected {sorted(rules)}")
    return wrong


def main():
    machines.need_program()
    failures = []
    with machines.scratch() as work:
        for faults, (verdict, rules) in EXPECTED.items():
            name = "+".join(faults)
            tree = machines.make(f"{work}/{name}", "good2", faults)
            failures += judge(name, tree, verdict, rules)
        for preset in ("good2", "good8"):
            tree = machines.make(f"{work}/{preset}", preset)
            failures += judge(preset, tree, "pass", set())
    for f in failures:
        print(f"FAIL {f}")
    print(f"faults: {len(EXPECTED) + 2} machines, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
