# SPDX-License-Identifier: Apache-2.0
# Registration of GPU memory by DMA-BUF. What loads nvidia_peermem stays as it was: it is the way back,
# and leaves in a change of its own, when this one is proven. Format: peerpath-profile(1).

[profile]
name = dmabuf
title = DMA-BUF on the open NVIDIA module; nvidia_peermem stays where it was
registration = dmabuf
source = https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-rdma.html
  https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
reviewed = 2026-11-30

[needs]
require = nvidia.flavour == open
install = the open NVIDIA kernel module (nvidia-open; 560 and later install it by default)
fix = open-kernel-module
require = nvidia.version >= 515.43.04
install = NVIDIA driver 515.43.04 or later
# 5.12 is the kernel of kernel.org; distributions carry the verb back, so the symbol decides.
require = kernel.dmabuf_umem == yes
install = a kernel (5.12 or later) or an OFED whose RDMA core takes DMA-BUF
fix = update-kernel
# cuMemGetHandleForAddressRange: CUDA 11.7; NCCL asks for driver API 11070.
require = cuda.driver_api >= 11070
install = a driver of CUDA 11.7 or later
# ibv_reg_dmabuf_mr came with rdma-core 34 (libibverbs.so.1.12.34.0); providers took it up later (mlx5 34, efa 38, irdma 45, bnxt_re 48).
require = libibverbs.version >= 1.12.34
install = rdma-core 34 or later
fix = update-rdma-core
require = hca.firmware is known

[keep /etc/modules-load.d/peerpath-peermem.conf]
why = peermem is not removed in the change that first tests DMA-BUF

[write /etc/modprobe.d/peerpath.conf]
line = # peerpath profile
line = options nvidia-peermem persistent_api_support=1
why = as in the peermem profiles: the way back does not change

[write /etc/security/limits.d/60-peerpath.conf]
line = * soft memlock unlimited
line = * hard memlock unlimited
fix = raise-memlock
why = DMA-BUF regions are not charged, but every program registers host memory too

[write /etc/systemd/system.conf.d/60-peerpath.conf]
line = [Manager]
line = DefaultLimitMEMLOCK=infinity
fix = raise-memlock
why = services do not pass pam_limits (systemd-system.conf(5))

# 1 is the default and only permits: NCCL still falls back where the node does not support it.
[set /etc/nccl.conf]
NCCL_DMABUF_ENABLE = 1
why = permits DMA-BUF; it does not prove that it is used

[write /etc/environment.d/60-peerpath.conf]
line = UCX_CUDA_COPY_DMABUF=try
line = FI_HMEM_CUDA_USE_DMABUF=1
why = UCX and libfabric may use DMA-BUF

[values gpu-operator]
driver.kernelModuleType = open
driver.rdma.enabled = keep: as before in the change that first tests DMA-BUF; DMA-BUF needs it not, so false in a later change
driver.rdma.useHostMofed = keep: as before in this change

[values network-operator]
spec.ofedDriver = keep: as before in this change; DMA-BUF also works with the kernel's own RDMA drivers
