#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: bench_program.py LAB-DIR PEERPATH DATA-DIR KERNEL-DMABUF

The program itself between two guests with the kernel's rdma_rxe: `bench --listen` in one, `bench HOST` in the other, by
addresses and by librdmacm, with perftest's ib_write_bw at the same size. Witnesses beside its words, all the kernel's: rxe0's
packets, the connection manager's messages, the answer to its own method of DMA-BUF with no library between, and how memory is
registered: with tracefs proven, without it or with --no-probes not.
"""
import errno
import json
import os
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
from lab import Lab, LabError, status_of  # noqa: E402

PEERPATH, DATA, KERNEL_DMABUF = sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4]
MOUNTS = "mount -t debugfs debug /sys/kernel/debug && mount -t tracefs trace /sys/kernel/tracing"
TOKEN = "PEERPATH_TOKEN=a-token-of-two-guests"
SIZES = (4096, 65536)
NEGATIVES = {"wrong rkey", "beyond the region", "write without the right", "read without the right"}
PORT = 18516


def need(good, what):
    if not good:
        raise LabError(what)


def put():
    """The program finds its rules where its sources are: at the same place in the guests."""
    yield PEERPATH, "bin/peerpath"
    yield KERNEL_DMABUF, "bin/kernel_dmabuf"
    for kind in ("rules", "explain"):
        for rules in sorted((DATA / kind).iterdir()):
            yield str(rules), str(rules)


def kernel_counts(lab):
    """Of guest 1: packets that rxe0 sent; requests to connect that the connection manager sent and got."""
    at = "/sys/class/infiniband/rxe0/ports/1"
    out = lab.guest(1).run(f"cd {at} && cat hw_counters/sent_pkts cm_tx_msgs/req cm_rx_msgs/req").check().out
    packets, *requests = map(int, out.split())
    return packets, sum(requests)


def bench(lab, words):
    server = lab.guest(0).start(f"{TOKEN} peerpath bench --listen --once")
    lab.guest(0).wait_port(PORT)
    before = kernel_counts(lab)
    done = lab.guest(1).run(
        f"{TOKEN} peerpath bench 10.77.0.1 --rungs tcp,host,dmabuf,staged --negative --size 4K,64K "
        f"--repeats 2 --duration 20ms --iters 16 -j {words}", 180).check(2)
    server.wait(30).check()
    need(not lab.guest(0).run("pidof peerpath").out, f"{words}: a process is left behind")
    packets, requests = (now - then for now, then in zip(kernel_counts(lab), before))
    need((requests > 0) == ("-R" in words), f"{words}: {requests} requests of the connection manager")
    return json.loads(done.out), packets, done


def judge_ends(doc, words):
    pair, = doc["pairs"]
    for end in pair["ends"]:
        need((end["hca"], end["driver"], end["simulated"]) == ("virtual/rxe0", "rdma_rxe", False),
             f"{words}: an end is {end}")
    need(pair["ends"][0]["mtu_bytes"] == 1024, f"{words}: path MTU {pair['ends'][0]['mtu_bytes']} on an MTU of 1500")
    return pair


def judge_cells(pair, packets, words):
    least = 0
    for cell in pair["cells"]:
        moved = cell["rung"] in ("tcp", "host")
        need(cell["state"] == ("run" if moved else "skipped"), f"{words}: {cell}")
        need(cell["wrong_bytes"] == 0 and (not moved or cell["checked_bytes"] >= cell["size_bytes"]),
             f"{words}: payload of {cell}")
        if cell["rung"] == "host":
            least += cell["moved_bytes"] // 1024
    seen = {(c["rung"], c["measure"], c["size_bytes"]) for c in pair["cells"] if c["state"] == "run"}
    need(seen == {(r, m, s) for r in ("tcp", "host") for m in ("bandwidth", "latency") for s in SIZES},
         f"{words}: cells {seen}")
    # The coordinator's end sends what it writes, in packets of 1024 bytes: the kernel must have seen them.
    need(packets >= least / 2 > 0, f"{words}: rxe0 sent {packets} packets for {least} kB")


def judge_rungs(pair, words):
    rung = {r["rung"]: r for r in pair["rungs"]}
    refused = {n["kind"]: n for n in rung["host"]["negatives"]}
    need(set(refused) == NEGATIVES, f"{words}: negatives {sorted(refused)}")
    for kind, negative in refused.items():
        need(negative["run"] and negative["refused"] and negative["status"] == "IBV_WC_REM_ACCESS_ERR",
             f"{words}: {kind}: {negative}")
    for name in ("dmabuf", "staged"):
        need(rung[name]["state"] == "skipped" and "has no GPU" in rung[name]["why"], f"{words}: {rung[name]}")
    need(not any(r["simulated"] for r in rung.values()), f"{words}: a rung calls itself simulated")


def judge_evidence(lab, doc, pair, words, proven):
    """Both kernels were asked before the first byte, and show one region of host memory of each agent. Proven it is by the
    probe that a look of ours triggers; without one the rest leaves it open, and says how to have it. Nothing stays in the kernel."""
    rung = {r["rung"]: r for r in pair["rungs"]}
    row = next(r for r in doc["transfer"]["rows"] if r["rung"] == "host")
    print(f"{words}: {row['registration_seen']}")
    regions = [r for r in rung["host"]["evidence"] if r["scope"] == "mr"]
    need([r["end"] for r in regions] == [0, 1], f"{words}: {len(regions)} regions")
    for r in regions:
        need((r["about"], r["witness"], r["simulated"], r["registration"], r["state"]) ==
             ("registration", "kernel", False, "host", "proven" if proven else "unproven"), f"{words}: {r}")
        need(r["hca"] == "rxe0" and r["pid"] > 1 and r["comm"] == "peerpath" and r["length_bytes"] >= max(SIZES), f"{words}: {r}")
        need(any(s["sufficient"] and s["surface"] == "self-probe" for s in r["sightings"]) is proven, f"{words}: {r}")
        need(proven or any(m["surface"] == "self-probe" and m["how"] for m in r["missing"]), f"{words}: {r}")
    need((row["registration_state"], row["registration_witness"], row["mechanism"]) ==
         (("proven", "kernel", "n/a") if proven else ("unproven", "measurement", "n/a")), f"{words}: {row}")
    for node in (0, 1) if proven else ():
        left = lab.guest(node).run("cat /sys/kernel/tracing/kprobe_events; ls /sys/kernel/tracing/instances").check().out
        need(not left.strip(), f"{words}: guest {node} still has {left}")


def judge_verdict(doc, words):
    """Right bytes over a device of the kernel's are no simulation, and no proof of hardware."""
    transfer = doc["transfer"]
    need((doc["verdict"], doc["simulated"], transfer["simulated"], transfer["simulation"]) ==
         ("unknown", False, False, None), f"{words}: verdict {transfer}")
    need(transfer["software"] == "rdma_rxe" and
         "rdma_rxe is software in the kernel: no hardware was measured" in transfer["sentence"],
         f"{words}: sentence {transfer['sentence']}")
    need("proven" not in transfer["sentence"], transfer["sentence"])


def beside_perftest(doc, words):
    """Side by side on the same device and size; speed itself means nothing under emulation."""
    need("ib_write_bw" in (doc["second_witness"] or "") and "at 65536 bytes" in doc["second_witness"],
         f"{words}: second witness {doc['second_witness']}")
    print(doc["second_witness"])


def run_bench(lab, words, proven):
    doc, packets, done = bench(lab, words)
    try:
        need(doc["whole"], f"{words}: {doc['ended']}")
        pair = judge_ends(doc, words)
        judge_cells(pair, packets, words)
        judge_rungs(pair, words)
        judge_evidence(lab, doc, pair, words, proven)
        judge_verdict(doc, words)
        if "--second-witness" in words:
            beside_perftest(doc, words)
    except LabError as err:
        raise LabError(f"{err}\n{done.text[-6000:]}") from err


def dmabuf(lab):
    """Refused by the library and by the kernel alike; said so by the probe, and explained."""
    guest = lab.guest(0)
    answers = dict(line.rsplit(None, 1) for line in
                   guest.run("kernel_dmabuf rxe0").check().out.decode().splitlines())
    # the last two: the kernel read the request, so that its "kernel" is the driver's answer
    need(answers == {"library": str(errno.EOPNOTSUPP), "kernel": str(errno.EOPNOTSUPP),
                     "no domain": str(errno.ENOENT), "no method": str(errno.EPROTONOSUPPORT)}, f"kernel: {answers}")
    done = guest.run("peerpath check --probe -j").check(2)
    rows = {row["method"]: row for row in json.loads(done.out)["probe"]}
    need((rows["host"]["verdict"], rows["host"]["errno"]) == ("pass", 0), f"probe: {rows}")
    need((rows["dmabuf-fd-1"]["verdict"], rows["dmabuf-fd-1"]["errno"]) == ("fail", int(answers["kernel"])),
         f"probe: {rows}")
    done = guest.run(f"peerpath explain --check -j errno {answers['kernel']} from ibv_reg_dmabuf_mr").check(1)
    best = json.loads(done.out)["diagnoses"][0]
    need(best["rule"] == "dmabuf-software-device", f"explain: {done.text}")


def tested():
    with Lab(nodes=2, mtu=1500, put=list(put())) as lab:
        dmabuf(lab)
        run_bench(lab, "--second-witness", proven=False)
        for node in (0, 1):
            lab.guest(node).run(MOUNTS).check()
        run_bench(lab, "-R", proven=True)
        run_bench(lab, "--no-probes", proven=False)
    print("payload right, keys enforced, DMA-BUF refused and explained, by addresses and by librdmacm")


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a sanitizer's memory does not fit into the guests; the plain build runs this")
        return 77
    return status_of(tested)


if __name__ == "__main__":
    sys.exit(main())
