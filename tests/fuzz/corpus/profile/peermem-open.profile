# SPDX-License-Identifier: Apache-2.0
# The step between: the open module, still nvidia_peermem. After it "dmabuf" differs in the path alone,
# so that what changes then is the path's doing. Format: peerpath-profile(1).

[profile]
name = peermem-open
title = nvidia_peermem on the open NVIDIA module; DMA-BUF is there and switched off
registration = peermem
source = https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html
  https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html
reviewed = 2026-11-30

[needs]
require = nvidia.flavour == open
install = the open NVIDIA kernel module (nvidia-open; 560 and later install it by default), of the same version as before
fix = open-kernel-module
# Open modules for data-centre GPUs since 515.43.04.
require = nvidia.version >= 515.43.04
install = NVIDIA driver 515.43.04 or later, built after the RDMA stack
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

[set /etc/nccl.conf]
NCCL_DMABUF_ENABLE = 0
why = NCCL prefers DMA-BUF where the module can export it (default 1 since 2.13): off, so that the path does not change with the module

# UCX and libfabric choose by themselves likewise (UCX_CUDA_COPY_DMABUF, FI_HMEM_CUDA_USE_DMABUF).
[write /etc/environment.d/60-peerpath.conf]
line = UCX_CUDA_COPY_DMABUF=no
line = FI_HMEM_CUDA_USE_DMABUF=0
why = UCX and libfabric prefer DMA-BUF too

[values gpu-operator]
driver.kernelModuleType = open
driver.rdma.enabled = true
driver.rdma.useHostMofed = keep: true where OFED is installed on the hosts, false where the Network Operator's container brings it

[values network-operator]
spec.ofedDriver.image = doca-driver
spec.ofedDriver.repository = nvcr.io/nvidia/mellanox
spec.ofedDriver.version = keep: the one that your release of the Network Operator names
