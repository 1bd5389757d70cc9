#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ladder.sh BUILD OUT: the whole of gate 2 on a machine with a GPU, the software device for a NIC:
# real CUDA memory, real DMA-BUF descriptors. Leaves documents and pages in OUT, one line a run here.
# Exit 1 when one is not as it must be, 77 without a GPU.
set -u
build=$(cd "$1" && pwd) out=$2 bad=0
peerpath=$build/src/cli/peerpath
[ -e /dev/nvidiactl ] || { echo "no GPU here"; exit 77; }
mkdir -p "$out"

say() { # NAME WANTED GOT
	if [ "$2" = "$3" ]; then echo "ok   $1: $3"; else echo "BAD  $1: $3, not $2"; bad=1; fi
}

figure() { # FILE: wrong bytes, and the median of each rung's largest bandwidth
	python3 - "$1" <<-'EOF'
	import json, statistics, sys
	d = json.load(open(sys.argv[1]))
	cells = [c for p in d["pairs"] for c in p["cells"] if c["state"] == "run"]
	wrong, checked = sum(c["wrong_bytes"] for c in cells), sum(c["checked_bytes"] for c in cells)
	line = f"{checked} bytes compared, {wrong} wrong;"
	for rung in ("tcp", "host", "dmabuf", "staged"):
	    fit = [c for c in cells if c["rung"] == rung and c["measure"] == "bandwidth"]
	    if fit:
	        top = max(fit, key=lambda c: c["size_bytes"])
	        line += f" {rung} {statistics.median(top['samples_mb_per_s']):.0f} MB/s at {top['size_bytes']}"
	print("    ", line)
	EOF
}

ladder() { # NAME DEVICE OPTION...
	name=$1 device=$2
	shift 2
	PEERPATH_SOFT=$device timeout 200 "$peerpath" bench --simulate --json --force \
		--html "$out/$name.html" "$@" >"$out/$name.json" 2>"$out/$name.err"
	say "$name" 0 $?
	figure "$out/$name.json" || bad=1
}

near=name=soft0,address=127.0.0.1
wire=$near,same-host=no
ladder h200-cuda "$near" --memory cuda --size 8,4K,64K,1M,4M --repeats 20 --duration 30ms --negative
ladder h200-cuda-wire "$wire" --memory cuda --size 64K,1M,4M --repeats 20 --duration 30ms
ladder h200-vmm "$near" --memory cuda-vmm --segments 2 --size 64K,1M,4M --repeats 20 --duration 30ms
ladder h200-inside "$near" --memory cuda --inside 12288 --size 64K,1M,4M --repeats 20 --duration 30ms
ladder h200-ops "$near" --memory cuda --op write,read,send --measure bandwidth,bidirectional,latency \
	--size 64K,4M --rungs host,dmabuf --repeats 6 --duration 30ms

# A client that registers wrongly must be caught by the bytes, or by the device.
for mutant in offset short skipped first; do
	PEERPATH_MUTANT=$mutant PEERPATH_SOFT=$near timeout 60 "$peerpath" soft -- \
		"$build/tests/soft/bench_mutant" rungs=dmabuf ops=write measures=bandwidth sizes=65536 repeats=2 each_ms=20 \
		memory=cuda inside=12288 >"$out/mutant.json" 2>/dev/null
	caught=$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
bad = [r for p in d["pairs"] for r in p["rungs"] if r["rung"] == "dmabuf" and r["state"] != "run"]
bad += [c for p in d["pairs"] for c in p["cells"] if c["wrong_bytes"] or c["state"] == "failed"]
print("caught" if bad else "passed")' "$out/mutant.json")
	say "mutant $mutant" caught "$caught"
done
rm -f "$out/mutant.json"

timeout 200 "$peerpath" prove --simulate --size 64K,1M,4M --duration 50ms --force \
	-o "$out/prove.tar.zst" >"$out/prove.txt" 2>"$out/prove.err"
say "prove --simulate" 0 $?
exit $bad
