// SPDX-License-Identifier: GPL-2.0
/*
 * peerlab: an RDMA device for the lab's guests that registers memory, and does nothing else.
 *
 * No device that QEMU or the kernel can imitate takes DMA-BUF registrations, so evidence of them
 * could not be tested without the hardware. This one stands on QEMU's PCI device "edu", pins what
 * it is given by the calls of ib_uverbs that real drivers use, and lists it in the resource
 * tracking of the RDMA core. It has no queues: a registration is all that can be asked of it.
 *
 * It is a test's tool: loaded in a guest only, and no part of the program.
 */
#include <linux/atomic.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

enum { PEERLAB_VENDOR = 0x1234, PEERLAB_DEVICE = 0x11e8 };

static bool pinned;
module_param(pinned, bool, 0644);
MODULE_PARM_DESC(pinned, "pin DMA-BUF memory for good, as drivers without page faults do");

static bool unsized;
module_param(unsized, bool, 0644);
MODULE_PARM_DESC(unsized, "leave a DMA-BUF region's length 0 in the RDMA core, as some drivers do");

struct peerlab {
	struct ib_device ib;
	atomic_t last_key;
};

struct peerlab_context {
	struct ib_ucontext ib;
};

struct peerlab_pd {
	struct ib_pd ib;
};

struct peerlab_mr {
	struct ib_mr ib;
	struct ib_umem *umem;
};

static int peerlab_query_device(struct ib_device *ib, struct ib_device_attr *ret,
				struct ib_udata *udata)
{
	ret->max_mr_size = U64_MAX;
	ret->page_size_cap = PAGE_SIZE;
	ret->max_mr = INT_MAX;
	ret->max_pd = INT_MAX;
	return 0;
}

static int peerlab_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *ret)
{
	ret->state = IB_PORT_ACTIVE;
	ret->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	ret->max_mtu = IB_MTU_4096;
	ret->active_mtu = IB_MTU_4096;
	ret->gid_tbl_len = 1;
	ret->pkey_tbl_len = 1;
	ret->active_speed = IB_SPEED_EDR;
	ret->active_width = IB_WIDTH_4X;
	return 0;
}

static int peerlab_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *ret)
{
	ret->gid_tbl_len = 1;
	ret->pkey_tbl_len = 1;
	return 0;
}

static int peerlab_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *ret)
{
	memset(ret, 0, sizeof(*ret));
	return 0;
}

static int peerlab_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *ret)
{
	*ret = 0xffff;
	return 0;
}

static enum rdma_link_layer peerlab_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_UNSPECIFIED;
}

static int peerlab_alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void peerlab_dealloc_ucontext(struct ib_ucontext *context)
{
}

static int peerlab_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int peerlab_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

/* A region for @umem, which it takes; @length 0 leaves the length unsaid. */
static struct ib_mr *peerlab_mr_new(struct ib_pd *pd, struct ib_umem *umem, u64 length, u64 iova)
{
	struct peerlab *dev = container_of(pd->device, struct peerlab, ib);
	struct peerlab_mr *mr;

	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr) {
		ib_umem_release(umem);
		return ERR_PTR(-ENOMEM);
	}
	mr->umem = umem;
	mr->ib.lkey = (u32)atomic_add_return(0x100, &dev->last_key);
	mr->ib.rkey = mr->ib.lkey;
	mr->ib.length = length;
	mr->ib.iova = iova;
	return &mr->ib;
}

static struct ib_mr *peerlab_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
					 int access, struct ib_udata *udata)
{
	return peerlab_mr_new(pd, ib_umem_get(pd->device, start, length, access), length, iova);
}

/* Called with the buffer's reservation lock held, when its exporter wants to move it. */
static void peerlab_moved(struct dma_buf_attachment *attach)
{
	ib_umem_dmabuf_unmap_pages(attach->importer_priv);
}

static const struct dma_buf_attach_ops peerlab_attach_ops = {
	.allow_peer2peer = true,
	.move_notify = peerlab_moved,
};

/* As a driver with page faults does: attached without a pin, mapped under the buffer's lock. */
static struct ib_umem *peerlab_dynamic(struct ib_device *ib, u64 offset, u64 length, int fd,
				       int access)
{
	struct ib_umem_dmabuf *buffer;
	int err;

	buffer = ib_umem_dmabuf_get(ib, offset, length, fd, access, &peerlab_attach_ops);
	if (IS_ERR(buffer))
		return ERR_CAST(buffer);
	dma_resv_lock(buffer->attach->dmabuf->resv, NULL);
	err = ib_umem_dmabuf_map_pages(buffer);
	dma_resv_unlock(buffer->attach->dmabuf->resv);
	if (err) {
		ib_umem_release(&buffer->umem);
		return ERR_PTR(err);
	}
	return &buffer->umem;
}

static struct ib_umem *peerlab_pinned(struct ib_device *ib, u64 offset, u64 length, int fd,
				      int access)
{
	struct ib_umem_dmabuf *buffer = ib_umem_dmabuf_get_pinned(ib, offset, length, fd, access);

	return IS_ERR(buffer) ? ERR_CAST(buffer) : &buffer->umem;
}

static struct ib_mr *peerlab_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 iova,
						int fd, int access, struct ib_udata *udata)
{
	struct ib_umem *umem = pinned ? peerlab_pinned(pd->device, offset, length, fd, access)
				      : peerlab_dynamic(pd->device, offset, length, fd, access);

	return peerlab_mr_new(pd, umem, unsized ? 0 : length, iova);
}

static int peerlab_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct peerlab_mr *mr = container_of(ib, struct peerlab_mr, ib);

	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}

static const struct ib_device_ops peerlab_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,

	.alloc_pd = peerlab_alloc_pd,
	.alloc_ucontext = peerlab_alloc_ucontext,
	.dealloc_pd = peerlab_dealloc_pd,
	.dealloc_ucontext = peerlab_dealloc_ucontext,
	.dereg_mr = peerlab_dereg_mr,
	.get_link_layer = peerlab_link_layer,
	.get_port_immutable = peerlab_port_immutable,
	.query_device = peerlab_query_device,
	.query_gid = peerlab_query_gid,
	.query_pkey = peerlab_query_pkey,
	.query_port = peerlab_query_port,
	.reg_user_mr = peerlab_reg_user_mr,
	.reg_user_mr_dmabuf = peerlab_reg_user_mr_dmabuf,

	INIT_RDMA_OBJ_SIZE(ib_pd, peerlab_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, peerlab_context, ib),
};

static int peerlab_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct peerlab *dev;
	int err;

	err = pcim_enable_device(pci);
	if (err)
		return err;
	pci_set_master(pci);
	err = dma_set_mask_and_coherent(&pci->dev, DMA_BIT_MASK(64));
	if (err)
		return err;
	dev = ib_alloc_device(peerlab, ib);
	if (!dev)
		return -ENOMEM;
	ib_set_device_ops(&dev->ib, &peerlab_ops);
	dev->ib.dev.parent = &pci->dev;
	dev->ib.node_type = RDMA_NODE_UNSPECIFIED;
	dev->ib.phys_port_cnt = 1;
	dev->ib.num_comp_vectors = 1;
	err = ib_register_device(&dev->ib, "peerlab%d", &pci->dev);
	if (err) {
		ib_dealloc_device(&dev->ib);
		return err;
	}
	pci_set_drvdata(pci, dev);
	return 0;
}

static void peerlab_remove(struct pci_dev *pci)
{
	struct peerlab *dev = pci_get_drvdata(pci);

	ib_unregister_device(&dev->ib);
	ib_dealloc_device(&dev->ib);
}

static const struct pci_device_id peerlab_ids[] = {
	{PCI_DEVICE(PEERLAB_VENDOR, PEERLAB_DEVICE)},
	{},
};
MODULE_DEVICE_TABLE(pci, peerlab_ids);

static struct pci_driver peerlab_driver = {
	.name = "peerlab",
	.id_table = peerlab_ids,
	.probe = peerlab_probe,
	.remove = peerlab_remove,
};
module_pci_driver(peerlab_driver);

MODULE_DESCRIPTION("RDMA device of peerpath's lab: registers memory, moves none");
MODULE_LICENSE("GPL");
