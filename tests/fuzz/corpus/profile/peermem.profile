# SPDX-License-Identifier: Apache-2.0
# Registration of GPU memory by nvidia_peermem: the path of before. Format: peerpath-profile(1).
# Copy it to /etc/peerpath/profiles.d to pin what your site runs: a line "require = kernel.release ==
# 6.8.0-51-generic" for each part of the tuple that must not move.

[profile]
name = peermem
title = nvidia_peermem with OFED's peer-memory API; any flavour of the NVIDIA module
registration = peermem
source = https://docs.nvidia.com/cuda/gpudirect-rdma/
  https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html
reviewed = 2026-11-30

[needs]
# nvidia-peermem comes with the driver from CUDA 11.4 and R470 on (gpudirect-rdma, "Using nvidia-peermem").
require = nvidia.version >= 470
install = NVIDIA driver R470 or later, built after the RDMA stack
# The symbol ib_register_peer_memory_client is OFED's; kernels of kernel.org never had it.
require = kernel.peer_memory_api == yes
install = DOCA-OFED (doca-ofed or MLNX_OFED), then rebuild or reinstall the NVIDIA module
require = nvidia_peermem.loaded == yes
install = nvidia_peermem of the same driver version
fix = load-peermem
require = nv_peer_mem.loaded == no
install = remove the legacy package nvidia-peer-memory: both claim the same addresses
require = libibverbs.version is known
install = rdma-core, or the libibverbs of DOCA-OFED
require = hca.firmware is known

[write /etc/modules-load.d/peerpath-peermem.conf]
line = ib_uverbs
line = nvidia-peermem
fix = load-peermem
why = nvidia-peermem is loaded by nobody else; without it registration falls back silently

[write /etc/modprobe.d/peerpath.conf]
line = # peerpath profile
# The default since 560.28.03; a driver without the parameter ignores it with a line in its log
# (kernel/module: unknown parameter ignored).
line = options nvidia-peermem persistent_api_support=1
why = the persistent client is not invalidated when memory is freed before its region

[write /etc/security/limits.d/60-peerpath.conf]
line = * soft memlock unlimited
line = * hard memlock unlimited
fix = raise-memlock
why = host memory and peermem regions are charged to RLIMIT_MEMLOCK

[write /etc/systemd/system.conf.d/60-peerpath.conf]
line = [Manager]
line = DefaultLimitMEMLOCK=infinity
fix = raise-memlock
why = services do not pass pam_limits (systemd-system.conf(5))

[absent /etc/environment.d/60-peerpath.conf]
why = nothing to choose: without an open module there is peermem only

# NCCL_DMABUF_ENABLE is not set: with a proprietary module NCCL finds no DMA-BUF by itself
# (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html: default 1, off where unsupported).
[keep /etc/nccl.conf]

[values gpu-operator]
# gpu-operator-rdma: rdma.enabled loads nvidia-peermem; useHostMofed says that OFED is on the host.
driver.rdma.enabled = true
driver.rdma.useHostMofed = keep: true where OFED is installed on the hosts, false where the Network Operator's container brings it
driver.kernelModuleType = keep: any; auto since v25.3.0

[values network-operator]
spec.ofedDriver.image = doca-driver
spec.ofedDriver.repository = nvcr.io/nvidia/mellanox
spec.ofedDriver.version = keep: the one that your release of the Network Operator names
