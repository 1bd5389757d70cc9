#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a DDP training in PyTorch: the loss of every step, a JSON object a line; at last how fast the steps went.

usage: nccl_ddp.py RANK RANKS MEETING_DIRECTORY STEPS
"""
import json
import os
import statistics
import sys
import time

RANK, RANKS, MEETING, STEPS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402  # pylint: disable=import-error,wrong-import-position
import torch.distributed as dist  # noqa: E402  # pylint: disable=import-error,wrong-import-position

torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
GPU = int(os.environ.get("PP_GPU", "0"))
torch.cuda.set_device(GPU)
dist.init_process_group("nccl", init_method=f"file://{MEETING}/store", rank=RANK, world_size=RANKS)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(),
                            torch.nn.Linear(2048, 10)).cuda()
ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[GPU])
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
data = torch.Generator(device="cuda").manual_seed(100 + RANK)
times = []
for step in range(STEPS):
    begin = time.perf_counter()
    x = torch.randn(256, 512, device="cuda", generator=data)
    target = x[:, :10].argmax(dim=1)
    loss = torch.nn.functional.cross_entropy(ddp(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    both = loss.detach().clone()
    dist.all_reduce(both)
    print(json.dumps({"step": step, "loss": both.item() / RANKS}), flush=True)
    times.append(time.perf_counter() - begin)
own = torch.cat([p.detach().flatten() for p in model.parameters()])
other = own.clone()
dist.broadcast(other, 0)
print(json.dumps({"equal_parameters": bool(torch.equal(own, other))}), flush=True)
steady = times[len(times) // 5:]  # the first ones connect and warm up
print(json.dumps({"samples_per_s": round(256 * RANKS * len(steady) / sum(steady), 1),
                  "step_ms": round(statistics.median(steady) * 1e3, 4)}), flush=True)
dist.destroy_process_group()
sys.exit(0 if torch.equal(own, other) else 1)
