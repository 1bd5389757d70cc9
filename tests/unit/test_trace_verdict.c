/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts by the rules that reference pages of the kernel give for each surface, on machines made
 * by hand: which line suffices, what must hold besides, what weakens it.
 */
#include "trace_world.h"

#include "base/compiler.h"

static const uint64_t MIB = 1 << 20;
static const char NIC[] = "0000:3b:00.0";

static void is(const struct world *w, uint32_t mrn, enum pp_registration how, enum pp_claim state,
	       bool gpu)
{
	const struct pp_region *r = world_row(w, mrn);

	if (!r->known || r->registration != how || r->state != state || r->gpu_memory != gpu)
		fail_msg("region %u is %s %s, gpu %d: %s", mrn,
			 r->known ? pp_registration_name(r->registration) : "unknown",
			 pp_claim_name(r->state), r->gpu_memory, r->why);
}

static void is_unknown(const struct world *w, uint32_t mrn)
{
	const struct pp_region *r = world_row(w, mrn);

	if (r->known || r->state != PP_UNPROVEN || !*r->why || !r->missing)
		fail_msg("region %u is %s (%s)", mrn,
			 r->known ? pp_registration_name(r->registration) : "unknown", r->why);
}

/* One mlx5 hca, one process of 42 with a GPU in use. */
static void start(struct world *w, int64_t pinned_kb)
{
	world_init(w);
	world_hca(w, "mlx5_0", NIC, "mlx5_core");
	world_process(w, 42, pinned_kb)->gpu_descriptors = 3;
}

static struct pp_event *region_dmabuf(struct world *w, uint32_t mrn, const char *exporter,
				      uint64_t inode)
{
	struct pp_event *e = world_region(w, 42, "mlx5_0", mrn, PP_YES, PP_UNSAID);

	event_buffer(e, exporter, NIC, inode, 2 * MIB);
	return e;
}

/* B: is_dmabuf, NVIDIA's exporter, the hca's function; a control ring of host memory beside it. */
static void self_dmabuf(struct world *w, const char *exporter)
{
	start(w, 4);
	world_mr(w, 7, 42, 2 * MIB);
	world_mr(w, 8, 42, 4096);
	region_dmabuf(w, 7, exporter, 900);
	world_region(w, 42, "mlx5_0", 8, PP_NO, PP_UNSAID);
	world_buffer(w, exporter, 900, 2 * MIB, NIC, 1);
}

static void test_self_dmabuf(void **state)
{
	struct world *w = *state;
	const struct pp_trace_process *p;

	self_dmabuf(w, "nv_dmabuf");
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	is(w, 8, PP_REGISTERED_HOST, PP_PROVEN, false);
	assert_string_equal(world_row(w, 7)->exporter, "nv_dmabuf");
	assert_string_equal(world_row(w, 7)->importer, NIC);
	assert_int_equal(world_row(w, 7)->pid, 42);
	assert_int_equal(w->t.n_processes, 1);
	p = &w->t.process[0];
	assert_int_equal(p->mix, PP_MIX_ONE);
	assert_int_equal(p->gpu_by, PP_REGISTERED_DMABUF);
	assert_int_equal(p->state, PP_PROVEN);
	assert_int_equal(pp_trace_verdict(&w->t), PP_PASS);
	self_dmabuf(w, "nvidia"); /* drivers 515 to 575 */
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
}

/* The registration is proven, that it is GPU memory is not: others may stage in host memory. */
static void test_other_exporter(void **state)
{
	struct world *w = *state;

	self_dmabuf(w, "amdgpu");
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, false);
	assert_int_equal(w->t.process[0].mix, PP_MIX_NONE);
	assert_false(w->t.process[0].host_staged);
}

static void test_wrong_device(void **state)
{
	struct world *w = *state;
	struct pp_event *e;

	self_dmabuf(w, "nv_dmabuf");
	e = &w->event[0];
	(void)snprintf(e->device, sizeof(e->device), "0000:af:00.0");
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
	/* mlx5's data-direct function is another one */
	w->hca[0].data_direct = "0000:af:00.0";
	(void)snprintf(w->attached[0], 48, "0000:af:00.0");
	world_judge(w);
	is(w, 7, PP_REGISTERED_DATA_DIRECT, PP_PROVEN, true);
	/* an hca without a PCI function has a device nevertheless */
	w->hca[0].data_direct = w->hca[0].bdf = "";
	w->hca[0].parent = "0000:af:00.0";
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
}

static void test_wrong_inode(void **state)
{
	struct world *w = *state;

	self_dmabuf(w, "nv_dmabuf");
	w->buffer[0].inode = 901;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
	/* kernels before 5.18 show none: nothing to compare */
	w->buffer[0].inode = 0;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	w->buffer[0].inode = 900;
	(void)snprintf(w->buffer[0].exporter, sizeof(w->buffer[0].exporter), "system");
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
}

/* A: attach and umem by the thread that added the region. */
static void live_dmabuf(struct world *w)
{
	struct pp_event *e;

	start(w, 0);
	world_mr(w, 7, 42, 2 * MIB);
	w->buffers.report.state = PP_SURFACE_REFUSED;
	e = world_event(w, PP_EVENT_DMABUF, 42, "ib_umem_dmabuf_get");
	e->result = -9; /* a library's question with descriptor -1 */
	e->fd = -1;
	e = world_event(w, PP_EVENT_ATTACH, 42, "dma_buf_dynamic_attach");
	event_buffer(e, "nv_dmabuf", NIC, 900, 2 * MIB);
	world_event(w, PP_EVENT_DMABUF, 42, "ib_umem_dmabuf_get");
	world_added(w, PP_EVENT_ADDED, 42, "mlx5_0", 7);
}

static void test_live_dmabuf(void **state)
{
	struct world *w = *state;

	live_dmabuf(w);
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	w->events.lost = 1;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
	w->events.lost = 0;
	w->event[1].tid = 43; /* another thread's attach */
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, false);
	w->event[1].tid = 42;
	w->event[3].mrn = 6; /* another region's beginning */
	world_judge(w);
	is_unknown(w, 7);
	w->event[3].mrn = 7;
	w->event[3].pid = w->event[2].pid = w->event[1].pid = 44; /* a number used again */
	world_judge(w);
	is_unknown(w, 7);
}

/* A, where the region's own structure is read as it is added: the attach names the buffer. */
static void added_dmabuf(struct world *w)
{
	struct pp_event *e;

	start(w, 0);
	world_mr(w, 7, 42, 2 * MIB);
	w->buffers.report.state = PP_SURFACE_REFUSED;
	e = world_event(w, PP_EVENT_ATTACH, 42, "dma_buf_dynamic_attach");
	event_buffer(e, "nv_dmabuf", NIC, 900, 2 * MIB);
	e->has_result = false; /* its return is not watched */
	e = world_added(w, PP_EVENT_ADDED, 42, "mlx5_0", 7);
	e->has_umem = e->is_dmabuf = PP_YES;
}

static void test_added_dmabuf(void **state)
{
	struct world *w = *state;

	added_dmabuf(w);
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	assert_string_equal(world_row(w, 7)->exporter, "nv_dmabuf");
	w->events.lost = 1; /* the attach may be another's */
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
	w->events.lost = 0;
	w->event[0].tid = 43; /* it is */
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, false);
	w->event[0].tid = 42;
	(void)snprintf(w->event[0].device, sizeof(w->event[0].device), "0000:af:00.0");
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
	/* the other function is mlx5's data-direct one: the region has its memory from an inner one
	 */
	w->event[1].data_direct = PP_YES;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DATA_DIRECT, PP_PROVEN, true);
}

/* The kernel's own event of the attach, with either kind of probe. */
static void test_tracepoint(void **state)
{
	struct world *w = *state;

	added_dmabuf(w);
	w->event[0].by = PP_SURFACE_TRACEPOINTS;
	w->event[0].has_result = true;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	live_dmabuf(w);
	w->event[1].by = PP_SURFACE_TRACEPOINTS;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	assert_int_equal(world_row(w, 7)->sighting[0].by, PP_SURFACE_TRACEPOINTS);
	(void)snprintf(w->event[1].device, sizeof(w->event[1].device), "0000:af:00.0");
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
}

static struct pp_event *call(struct world *w, const char *symbol, int64_t result, uint32_t lkey)
{
	struct pp_event *e = world_event(w, PP_EVENT_REGISTER, 42, symbol);

	e->pid = 0; /* a uprobe names its thread */
	e->has_result = true;
	e->result = result;
	e->lkey = lkey;
	e->has_lkey = !result;
	e->length = 2 * MIB;
	return e;
}

static void is_called(const struct world *w, uint32_t mrn, const char *symbol, enum pp_claim state)
{
	const struct pp_region *r = world_row(w, mrn);

	assert_non_null(r->called);
	assert_string_equal(r->called, symbol);
	if (r->called_state != state)
		fail_msg("%s() is %s: %s", symbol, pp_claim_name(r->called_state), r->why);
}

/* The library's word beside the kernel's, which is believed. */
static void test_called(void **state)
{
	struct world *w = *state;

	added_dmabuf(w);
	w->event[1].lkey = 0x1007;
	w->event[1].has_lkey = true;
	call(w, "ibv_reg_dmabuf_mr", -61, 0); /* one that failed says nothing */
	world_judge(w);
	assert_null(world_row(w, 7)->called);
	w->events.n--;
	call(w, "ibv_reg_dmabuf_mr", 0, 0x1007);
	call(w, "ibv_reg_dmabuf_mr", 0, 0x1007); /* one call made of another */
	world_judge(w);
	assert_int_equal(w->t.n, 1);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	is_called(w, 7, "ibv_reg_dmabuf_mr", PP_PROVEN);
	w->event[1].is_dmabuf = PP_NO;
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_PROVEN, false);
	is_called(w, 7, "ibv_reg_dmabuf_mr", PP_REFUTED);
	assert_non_null(strstr(world_row(w, 7)->why, "the kernel says otherwise"));
	assert_int_equal(pp_trace_verdict(&w->t), PP_FAIL);
	w->event[1].is_dmabuf = PP_YES;
	w->events.n = 2;
	call(w, "ibv_reg_mr_iova2", 0, 0x1007);
	world_judge(w);
	is_called(w, 7, "ibv_reg_mr_iova2", PP_REFUTED);
}

/* It says yes, and the kernel nothing. */
static void test_called_alone(void **state)
{
	struct world *w = *state;
	const struct pp_region *r;

	start(w, 0);
	world_mr(w, 7, 42, 2 * MIB);
	call(w, "ibv_reg_dmabuf_mr", 0, 0x1007);
	world_judge(w);
	assert_int_equal(w->t.n, 1);
	is_unknown(w, 7);
	is_called(w, 7, "ibv_reg_dmabuf_mr", PP_UNPROVEN);
	assert_non_null(strstr(world_row(w, 7)->why, "no witness of the kernel"));
	w->event[0].lkey = 0x2000; /* of no region that is listed */
	world_judge(w);
	assert_int_equal(w->t.n, 2);
	is_unknown(w, 7);
	r = w->t.region[0].has_mrn ? &w->t.region[1] : &w->t.region[0];
	assert_false(r->known);
	assert_int_equal(r->lkey, 0x2000);
	assert_int_equal(r->called_state, PP_UNPROVEN);
	assert_non_null(strstr(r->why, "nothing of the kernel shows the region"));
	assert_int_equal(pp_trace_verdict(&w->t), PP_UNKNOWN);
}

/* What was attached and given up: the umem says that it is not of that. */
static void test_added_others(void **state)
{
	struct world *w = *state;

	added_dmabuf(w);
	w->event[1].is_dmabuf = w->event[1].is_peer = PP_NO;
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_PROVEN, false);
	w->event[1].is_peer = PP_UNSAID; /* without the patch; and no client in sight */
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_PROVEN, false);
	w->peermem = (struct pp_peermem){.references = 2, .loaded = true};
	w->peermem.report.state = PP_SURFACE_READ;
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_UNPROVEN, false);
	w->event[1].is_peer = PP_YES;
	w->process[0].pinned_kb = 2048;
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_PROVEN, true);
	/* device memory of the hca, or what a driver keeps elsewhere: nothing is said */
	w->event[1].has_umem = PP_NO;
	w->event[1].is_peer = w->event[1].is_dmabuf = PP_UNSAID;
	world_judge(w);
	is_unknown(w, 7);
}

/* B on mlx5's data-direct: the umem is the inner region's, its function another than the hca's. */
static void test_self_data_direct(void **state)
{
	struct world *w = *state;

	self_dmabuf(w, "nv_dmabuf");
	(void)snprintf(w->event[0].device, sizeof(w->event[0].device), "0000:3c:00.0");
	(void)snprintf(w->attached[0], sizeof(w->attached[0]), "0000:3c:00.0");
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
	w->event[0].data_direct = PP_YES;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DATA_DIRECT, PP_PROVEN, true);
	assert_string_equal(world_row(w, 7)->importer, "0000:3c:00.0");
	w->event[0].exporter[0] = '\0';
	world_judge(w);
	is(w, 7, PP_REGISTERED_DATA_DIRECT, PP_UNPROVEN, false);
}

/* As kernels say it: only a region's beginning names the process, the others their thread. */
static void test_live_thread(void **state)
{
	struct world *w = *state;

	live_dmabuf(w);
	for (size_t i = 0; i < 3; i++)
		w->event[i].pid = 0;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	w->event[1].pid = 44; /* a number used again: the region is not of that attachment */
	world_judge(w);
	is_unknown(w, 7);
}

/* What was given up is no part of the registration that follows. */
static void test_live_fallback(void **state)
{
	struct world *w = *state;
	struct pp_event *e;

	start(w, 2048);
	world_mr(w, 7, 42, 2 * MIB);
	e = world_event(w, PP_EVENT_ATTACH, 42, "dma_buf_dynamic_attach");
	event_buffer(e, "nv_dmabuf", NIC, 900, 2 * MIB);
	world_event(w, PP_EVENT_DMABUF, 42, "ib_umem_dmabuf_get")->result = -12;
	world_event(w, PP_EVENT_HOST, 42, "ib_umem_get");
	world_added(w, PP_EVENT_ADDED, 42, "mlx5_0", 7);
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_PROVEN, false);
	assert_int_equal(w->t.process[0].mix, PP_MIX_NONE);
	assert_true(w->t.process[0].host_staged);
	/* the umem stood, the hca refused, and then host memory was registered */
	w->event[1].result = 0;
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_PROVEN, false);
	/* its way is the absence of others: all have to be watched */
	w->events.report[PP_SURFACE_LIVE_PROBE].state = PP_SURFACE_CUT;
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_UNPROVEN, false);
}

/* Regions of the past, for a command that was watched from the start. */
static void test_gone(void **state)
{
	struct world *w = *state;

	live_dmabuf(w);
	w->resources.n = w->processes.n = 0;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true); /* not listed, and no end was seen */
	world_added(w, PP_EVENT_REMOVED, 42, "mlx5_0", 7);
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	assert_true(world_row(w, 7)->gone);
	/* the same number is another region's now */
	world_mr(w, 7, 0, 4096);
	world_judge(w);
	assert_int_equal(w->t.n, 2);
}

/* bufinfo alone: the number of attachments says it, with nobody else there. */
static void counted(struct world *w)
{
	start(w, 0);
	world_mr(w, 7, 42, 2 * MIB);
	world_buffer(w, "nv_dmabuf", 900, 2 * MIB, NIC, 1);
}

static void test_counted(void **state)
{
	struct world *w = *state;

	counted(w);
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	/* pinned host memory of that size, and an attachment of something else (DevX) */
	w->process[0].pinned_kb = 2048;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
	w->process[0].pinned_kb = -1;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, true);
	w->process[0].pinned_kb = 0;
	/* too long for the buffer */
	w->resource[0].length = 3 * MIB;
	world_judge(w);
	is_unknown(w, 7);
	w->resource[0].length = 2 * MIB;
	/* two regions, one attachment: which has it is not told */
	world_mr(w, 8, 42, 4096);
	world_judge(w);
	is_unknown(w, 7);
	is_unknown(w, 8);
	assert_int_equal(pp_trace_verdict(&w->t), PP_UNKNOWN);
}

static void test_rival(void **state)
{
	struct world *w = *state;

	counted(w);
	world_process(w, 50, 0);
	world_mr(w, 8, 50, 4096);
	world_judge(w);
	is_unknown(w, 7);
	is_unknown(w, 8);
	/* a descriptor that is still open tells whose it is */
	w->fd[0][0] = (struct pp_process_buffer){.fd = 5, .inode = 900};
	w->process[0].n_buffers = 1;
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
	w->fd[0][0].inode = 901; /* another buffer's */
	world_judge(w);
	is_unknown(w, 7);
	w->fd[0][0].inode = 900;
	w->fd[1][0] = w->fd[0][0]; /* both have it */
	w->process[1].n_buffers = 1;
	world_judge(w);
	is_unknown(w, 7);
	w->process[1].n_buffers = 0;
	w->resource[1].tid = 0; /* that other region's owner is unknown: it may be ours */
	world_judge(w);
	is_unknown(w, 7);
}

/* irdma and bnxt_re set no length of a region by DMA-BUF. */
static void test_no_length(void **state)
{
	struct world *w = *state;

	start(w, 0);
	w->hca[0].driver = "irdma";
	w->buffers.report.state = PP_SURFACE_REFUSED;
	world_mr(w, 7, 42, 0);
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_UNPROVEN, false);
	w->hca[0].driver = "mlx5_core";
	world_judge(w);
	is_unknown(w, 7);
	/* with as many attachments it is proven, whatever is pinned: host memory has a length */
	w->hca[0].driver = "bnxt_re";
	w->process[0].pinned_kb = 1 << 20;
	w->buffers.report.state = PP_SURFACE_READ;
	world_buffer(w, "nv_dmabuf", 900, 2 * MIB, NIC, 1);
	world_judge(w);
	is(w, 7, PP_REGISTERED_DMABUF, PP_PROVEN, true);
}

static void peermem(struct world *w)
{
	start(w, 2048);
	world_mr(w, 7, 42, 2 * MIB);
	w->peermem =
		(struct pp_peermem){.loaded = true, .module = "nvidia_peermem", .references = 1};
	w->peermem.report.state = PP_SURFACE_READ;
}

static void test_self_peermem(void **state)
{
	struct world *w = *state;

	peermem(w);
	world_region(w, 42, "mlx5_0", 7, PP_NO, PP_YES);
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_PROVEN, true);
	assert_int_equal(w->t.process[0].gpu_by, PP_REGISTERED_PEERMEM);
	w->process[0].pinned_kb = 1024; /* peer memory is pinned memory */
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_UNPROVEN, true);
	w->process[0].pinned_kb = -1;
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_UNPROVEN, true);
	w->process[0].pinned_kb = 2048;
	w->peermem.references = 0;
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_UNPROVEN, true);
}

static void test_live_peermem(void **state)
{
	struct world *w = *state;

	peermem(w);
	/* acquire tries once, and takes: two calls a region */
	world_event(w, PP_EVENT_P2P, 42, "nvidia_p2p_get_pages_persistent");
	world_event(w, PP_EVENT_P2P, 42, "nvidia_p2p_get_pages_persistent");
	world_event(w, PP_EVENT_PEER, 42, "ib_peer_umem_get");
	world_event(w, PP_EVENT_PEER, 42, "ib_umem_get_peer");
	world_added(w, PP_EVENT_ADDED, 42, "mlx5_0", 7);
	w->peermem.references = -1; /* A alone */
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_PROVEN, true);
	/* gdrcopy's call in the same thread before a host region: only the outer call is seen */
	w->event[2].kind = PP_EVENT_REGISTER;
	w->event[2].has_result = false;
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_PROVEN, false);
	w->event[2] = w->event[1];
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_UNPROVEN, true);
}

static void test_counted_peermem(void **state)
{
	struct world *w = *state;

	peermem(w);
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_PROVEN, true);
	w->process[0].pinned_kb = 1 << 20; /* something large is pinned that is no region */
	world_judge(w);
	is(w, 7, PP_REGISTERED_PEERMEM, PP_UNPROVEN, true);
	w->process[0].pinned_kb = 2052;
	world_mr(w, 8, 42, 4096);
	world_judge(w);
	is_unknown(w, 7);
	w->peermem.references = 0;
	world_judge(w);
	is(w, 7, PP_REGISTERED_HOST, PP_UNPROVEN, false); /* by exclusion */
	is(w, 8, PP_REGISTERED_HOST, PP_UNPROVEN, false);
	assert_int_equal(pp_trace_verdict(&w->t), PP_UNKNOWN);
}

static void test_efa(void **state)
{
	struct world *w = *state;

	start(w, 0);
	w->hca[0].driver = "efa";
	world_mr(w, 7, 42, 2 * MIB);
	world_event(w, PP_EVENT_HOST, 42, "ib_umem_get")->result = -14;
	world_event(w, PP_EVENT_P2P, 42, "nvidia_p2p_get_pages");
	world_added(w, PP_EVENT_ADDED, 42, "mlx5_0", 7);
	world_judge(w);
	is(w, 7, PP_REGISTERED_EFA_P2P, PP_UNPROVEN, true);
	assert_non_null(strstr(world_row(w, 7)->why, "the kernel log was not read"));
	w->in.efa_logged = PP_NO;
	w->in.why_efa = "the kernel log does not say it";
	world_judge(w);
	is(w, 7, PP_REGISTERED_EFA_P2P, PP_UNPROVEN, true);
	assert_non_null(strstr(world_row(w, 7)->why, w->in.why_efa));
	w->in.efa_logged = PP_YES;
	world_judge(w);
	is(w, 7, PP_REGISTERED_EFA_P2P, PP_PROVEN, true);
	w->hca[0].driver = "mlx5_core";
	world_judge(w);
	is_unknown(w, 7);
}

static void test_mixed(void **state)
{
	struct world *w = *state;

	self_dmabuf(w, "nv_dmabuf");
	world_mr(w, 9, 42, MIB);
	world_region(w, 42, "mlx5_0", 9, PP_NO, PP_YES);
	w->process[0].pinned_kb = 1028;
	w->peermem.references = 1;
	w->peermem.loaded = true;
	w->peermem.report.state = PP_SURFACE_READ;
	world_judge(w);
	is(w, 9, PP_REGISTERED_PEERMEM, PP_PROVEN, true);
	assert_int_equal(w->t.process[0].mix, PP_MIX_MIXED);
	assert_int_equal(w->t.process[0].count[PP_REGISTERED_HOST], 1);
}

/* All of it host memory: staging, if a GPU is in use and nothing can be hidden. */
static void test_staged(void **state)
{
	struct world *w = *state;

	start(w, 4);
	world_mr(w, 8, 42, 4096);
	world_region(w, 42, "mlx5_0", 8, PP_NO, PP_NO);
	world_judge(w);
	assert_int_equal(w->t.process[0].mix, PP_MIX_NONE);
	assert_int_equal(w->t.process[0].state, PP_PROVEN);
	assert_true(w->t.process[0].host_staged);
	/* an attachment that no region accounts for */
	world_buffer(w, "nv_dmabuf", 900, MIB, NIC, 1);
	world_judge(w);
	assert_int_equal(w->t.process[0].mix, PP_MIX_UNKNOWN);
	/* mlx5 has DevX: without bufinfo it cannot be excluded */
	w->buffers.n = w->buffers.n_attached = 0;
	w->buffers.report.state = PP_SURFACE_REFUSED;
	world_judge(w);
	assert_int_equal(w->t.process[0].mix, PP_MIX_UNKNOWN);
	assert_true(w->t.process[0].missing & 1U << PP_SURFACE_BUFINFO);
	w->hca[0].driver = "rdma_rxe";
	world_judge(w);
	assert_int_equal(w->t.process[0].mix, PP_MIX_NONE);
	w->process[0].descriptors_read = false;
	world_judge(w);
	assert_int_equal(w->t.process[0].mix, PP_MIX_UNKNOWN);
	w->process[0].descriptors_read = true;
	w->process[0].gpu_descriptors = 0;
	world_judge(w);
	assert_int_equal(w->t.process[0].mix, PP_MIX_NONE);
	assert_false(w->t.process[0].host_staged);
}

/* Without is_peer in the kernel's structure a host verdict needs peer memory to be impossible. */
static void test_no_member(void **state)
{
	struct world *w = *state;

	start(w, 4);
	world_mr(w, 8, 42, 4096);
	world_region(w, 42, "mlx5_0", 8, PP_NO, PP_UNSAID);
	world_judge(w);
	is(w, 8, PP_REGISTERED_HOST, PP_PROVEN, false);
	w->peermem = (struct pp_peermem){.loaded = true, .references = 2};
	w->peermem.report.state = PP_SURFACE_READ;
	world_judge(w);
	is(w, 8, PP_REGISTERED_HOST, PP_UNPROVEN, false);
	w->peermem.references = 1; /* as many as regions, and this one is not by DMA-BUF */
	world_judge(w);
	is(w, 8, PP_REGISTERED_PEERMEM, PP_PROVEN, true);
	w->peermem.report.state = PP_SURFACE_UNASKED;
	w->peermem.loaded = false;
	world_judge(w);
	is(w, 8, PP_REGISTERED_HOST, PP_UNPROVEN, false);
	/* no umem: memory of the hca, or what is not followed */
	w->event[0].has_umem = PP_NO;
	world_judge(w);
	is_unknown(w, 8);
}

static void test_disagree(void **state)
{
	struct world *w = *state;

	live_dmabuf(w);
	world_region(w, 42, "mlx5_0", 7, PP_NO, PP_NO);
	world_judge(w);
	is_unknown(w, 7);
}

/* Netlink names no thread that has ended: domain, context, then who alone has the device open. */
static void test_owner(void **state)
{
	struct world *w = *state;
	const struct pp_resource pd = {
		.kind = PP_RESOURCE_PD, .id = 1, .has_parent = true, .parent = 3};
	const struct pp_resource ctx = {.kind = PP_RESOURCE_CTX, .id = 3, .tid = 42};

	start(w, 0);
	world_mr(w, 7, 43, MIB);
	w->thread[0][w->process[0].n_threads++] = 43;
	world_judge(w);
	assert_int_equal(world_row(w, 7)->pid, 42);
	w->process[0].n_threads--;
	world_judge(w);
	assert_int_equal(world_row(w, 7)->pid, 0);
	assert_true(*world_row(w, 7)->why_process);
	assert_int_equal(w->t.unowned, 1);
	w->resource[0].tid = 0;
	world_add(w, &pd);
	world_add(w, &ctx);
	world_judge(w);
	assert_int_equal(world_row(w, 7)->pid, 42);
	w->resources.n = 1;
	w->hca[0].uverbs = "uverbs0";
	(void)snprintf(w->process[0].uverbs[0], 16, "uverbs0");
	w->process[0].n_uverbs = 1;
	world_judge(w);
	assert_int_equal(world_row(w, 7)->pid, 42);
	w->processes.unreadable = 1; /* somebody else may have it open, too */
	world_judge(w);
	assert_int_equal(world_row(w, 7)->pid, 0);
	/* B knows the process though its thread is gone */
	world_region(w, 42, "mlx5_0", 7, PP_NO, PP_NO);
	world_judge(w);
	assert_int_equal(world_row(w, 7)->pid, 42);
	/* as the machine's first namespace counts, which is not ours */
	w->processes.host_pid_ns = false;
	world_judge(w);
	assert_int_equal(world_row(w, 7)->pid, 0);
	is(w, 7, PP_REGISTERED_HOST, PP_UNPROVEN, false);
}

static void test_only(void **state)
{
	struct world *w = *state;

	counted(w);
	world_process(w, 50, 0);
	world_mr(w, 8, 50, 4096);
	w->in.only = 42;
	world_judge(w);
	assert_int_equal(w->t.n, 1);
	is_unknown(w, 7); /* those that are not shown are rivals, too */
	w->in.only = 51;
	world_process(w, 51, 0);
	world_judge(w);
	assert_int_equal(w->t.n, 0);
	assert_int_equal(w->t.n_processes, 1);
	assert_int_equal(w->t.process[0].pid, 51);
}

/* Kernel modules' own regions are no rows; the software device's are never proven. */
static void test_others(void **state)
{
	struct world *w = *state;
	static const struct pp_trace_software soft[] = {
		{.hca = "soft0", .program = "ib_write_bw", .pid = 42, .lkey = 9, .length = 65536},
		{.hca = "soft0",
		 .program = "ib_write_bw",
		 .pid = 42,
		 .lkey = 10,
		 .length = 65536,
		 .dmabuf = true,
		 .gpu = true},
	};

	self_dmabuf(w, "nv_dmabuf");
	(void)snprintf(world_mr(w, 9, 0, 0)->kernel_user, 32, "ib_core");
	w->in.software = soft;
	w->in.n_software = 2;
	world_judge(w);
	assert_int_equal(w->t.kernel, 1);
	assert_int_equal(w->t.n, 4);
	assert_int_equal(w->t.n_processes, 2);
	assert_false(w->t.process[0].simulated);
	assert_true(w->t.process[1].simulated);
	for (size_t i = 2; i < 4; i++) {
		assert_true(w->t.region[i].simulated);
		assert_int_equal(w->t.region[i].state, PP_UNPROVEN);
	}
	assert_int_equal(w->t.process[1].count[PP_REGISTERED_DMABUF], 1);
	assert_int_equal(pp_trace_verdict(&w->t), PP_PASS); /* of the hardware alone */
}

static void test_nothing(void **state)
{
	struct world *w = *state;

	world_init(w);
	world_judge(w);
	assert_int_equal(pp_trace_verdict(&w->t), PP_PASS);
	w->in = (struct pp_trace_input){0};
	world_judge(w);
	assert_int_equal(pp_trace_verdict(&w->t), PP_UNKNOWN);
}

/* Claims of a base machine, to be compared with those of the same with something taken away. */
struct claim {
	uint32_t mrn;
	bool proven, gpu;
	enum pp_registration how;
};

static size_t claims(const struct world *w, struct claim *ret)
{
	for (size_t i = 0; i < w->t.n; i++) {
		const struct pp_region *r = &w->t.region[i];

		ret[i] = (struct claim){r->mrn, r->known && r->state == PP_PROVEN, r->gpu_memory,
					r->registration};
	}
	return w->t.n;
}

static void weaker(struct world *w, const struct claim *base, size_t n, const char *what,
		   size_t nth)
{
	world_judge(w);
	for (size_t i = 0; i < w->t.n; i++) {
		const struct pp_region *r = &w->t.region[i];
		bool fine = r->state != PP_PROVEN;

		for (size_t k = 0; k < n && r->state == PP_PROVEN; k++)
			fine |= base[k].mrn == r->mrn && base[k].proven &&
				base[k].how == r->registration && (base[k].gpu || !r->gpu_memory);
		if (!fine)
			fail_msg("without %s %zu region %u is %s: %s", what, nth, r->mrn,
				 pp_registration_name(r->registration), r->why);
	}
}

#define EACH_GONE(array, count, what)                                                              \
	for (size_t i_ = 0; i_ < (count); i_++) {                                                  \
		struct world PP_AUTO_FREE *v = malloc(sizeof(*v));                                 \
		copy(v, w);                                                                        \
		memmove(&v->array[i_], &v->array[i_ + 1], ((count)-i_ - 1) * sizeof(v->array[0])); \
		cut_##what(v);                                                                     \
		weaker(v, base, n, #what, i_);                                                     \
		world_done(v);                                                                     \
	}

static void copy(struct world *v, const struct world *w)
{
	*v = *w;
	v->judged = false;
	v->resources.device = v->device;
	v->resources.item = v->resource;
	v->processes.item = v->process;
	for (size_t i = 0; i < PP_ARRAY_LEN(v->process); i++) {
		v->process[i].buffer = v->fd[i];
		v->process[i].thread = v->thread[i];
	}
	v->buffers.item = v->buffer;
	v->buffers.attached = v->attached;
	v->events.item = v->event;
	v->in.resources = w->in.resources ? &v->resources : NULL;
	v->in.processes = &v->processes;
	v->in.buffers = &v->buffers;
	v->in.peermem = &v->peermem;
	v->in.events = &v->events;
	v->in.hca = v->hca;
}

static void cut_resource(struct world *v)
{
	v->resources.n--;
}

static void cut_process(struct world *v)
{
	v->processes.n--;
	for (size_t i = 0; i < v->processes.n; i++) /* lists stay with their place */
		v->process[i].buffer = v->fd[i];
}

static void cut_buffer(struct world *v)
{
	v->buffers.n--;
}

static void cut_event(struct world *v)
{
	v->events.n--;
}

static void cut_hca(struct world *v)
{
	v->in.n_hcas--;
}

static void without_surfaces(struct world *w, const struct claim *base, size_t n)
{
	struct world PP_AUTO_FREE *v = malloc(sizeof(*v));
	const void **whole[] = {(const void **)&v->in.resources, (const void **)&v->in.processes,
				(const void **)&v->in.buffers, (const void **)&v->in.peermem,
				(const void **)&v->in.events};

	for (size_t i = 0; i < PP_ARRAY_LEN(whole); i++) {
		copy(v, w);
		*whole[i] = NULL;
		weaker(v, base, n, "surface", i);
		world_done(v);
	}
	for (size_t i = 0; i < 8 + PP_SURFACES; i++) {
		struct pp_surface_report *report[] = {&v->resources.resources, &v->resources.keys,
						      &v->processes.processes, &v->processes.fdinfo,
						      &v->buffers.report,      &v->peermem.report};

		copy(v, w);
		if (i < PP_ARRAY_LEN(report))
			report[i]->state = PP_SURFACE_CUT;
		else if (i < PP_ARRAY_LEN(report) + PP_SURFACES)
			v->events.report[i - PP_ARRAY_LEN(report)].state = PP_SURFACE_CUT;
		else if (i == PP_ARRAY_LEN(report) + PP_SURFACES)
			v->events.lost = 1;
		else
			v->process[0].pinned_kb = -1;
		weaker(v, base, n, "report", i);
		world_done(v);
	}
}

static void remove_each(struct world *w)
{
	struct claim base[WORLD_MANY];
	size_t n;
	bool any = false;

	world_judge(w);
	n = claims(w, base);
	for (size_t i = 0; i < n; i++)
		any |= base[i].proven;
	assert_true(any);
	EACH_GONE(resource, w->resources.n, resource);
	EACH_GONE(process, w->processes.n, process);
	EACH_GONE(buffer, w->buffers.n, buffer);
	EACH_GONE(event, w->events.n, event);
	EACH_GONE(hca, w->in.n_hcas, hca);
	without_surfaces(w, base, n);
}

static void make_live_host(struct world *w)
{
	start(w, 2048);
	world_mr(w, 7, 42, 2 * MIB);
	world_event(w, PP_EVENT_HOST, 42, "ib_umem_get");
	world_added(w, PP_EVENT_ADDED, 42, "mlx5_0", 7);
}

static void make_live_peermem(struct world *w)
{
	peermem(w);
	world_event(w, PP_EVENT_P2P, 42, "nvidia_p2p_get_pages");
	world_event(w, PP_EVENT_PEER, 42, "ib_peer_umem_get");
	world_event(w, PP_EVENT_PEER, 42, "ib_umem_get_peer");
	world_added(w, PP_EVENT_ADDED, 42, "mlx5_0", 7);
}

static void make_self_peermem(struct world *w)
{
	peermem(w);
	world_region(w, 42, "mlx5_0", 7, PP_NO, PP_YES);
}

static void make_self(struct world *w)
{
	self_dmabuf(w, "nv_dmabuf");
}

static void make_gone(struct world *w)
{
	live_dmabuf(w);
	w->resources.n = 0;
	world_added(w, PP_EVENT_REMOVED, 42, "mlx5_0", 7);
}

static void make_held(struct world *w)
{
	counted(w);
	w->fd[0][0] = (struct pp_process_buffer){.fd = 5, .inode = 900};
	w->process[0].n_buffers = 1;
}

static void make_efa(struct world *w)
{
	start(w, 0);
	w->hca[0].driver = "efa";
	w->in.efa_logged = PP_YES;
	world_mr(w, 7, 42, 2 * MIB);
	world_event(w, PP_EVENT_HOST, 42, "ib_umem_get")->result = -14;
	world_event(w, PP_EVENT_P2P, 42, "nvidia_p2p_get_pages");
	world_added(w, PP_EVENT_ADDED, 42, "mlx5_0", 7);
}

/* Whatever is taken from what proves something, nothing else becomes proven by it. */
static void test_removal(void **state)
{
	static void (*const make[])(struct world *) = {
		make_self, live_dmabuf,	      added_dmabuf,   counted,
		make_held, peermem,	      make_gone,      make_live_peermem,
		make_efa,  make_self_peermem, make_live_host,
	};
	struct world *w = *state;

	for (size_t i = 0; i < PP_ARRAY_LEN(make); i++) {
		make[i](w);
		remove_each(w);
		world_done(w);
	}
}

/* Both ends of the scale: the same verdicts among many others. */
static void test_many(void **state)
{
	enum { MANY = 1000 };
	struct world *w = *state;
	struct pp_resource *mr = calloc(MANY, sizeof(*mr));
	struct pp_event *event = calloc(MANY, sizeof(*event));

	start(w, 0);
	assert_non_null(mr);
	assert_non_null(event);
	for (uint32_t i = 0; i < MANY; i++) {
		w->resources.n = w->events.n = 0;
		mr[i] = *world_mr(w, i, i % 3 ? 42 : 0, 2 * MIB);
		event[i] = *region_dmabuf(w, i, "nv_dmabuf", i + 1);
	}
	w->resources.item = mr;
	w->events.item = event;
	w->resources.n = w->events.n = MANY;
	world_judge(w);
	assert_int_equal(w->t.n, MANY);
	assert_int_equal(w->t.process[0].count[PP_REGISTERED_DMABUF], MANY);
	assert_int_equal(w->t.process[0].unproven, MANY); /* bufinfo has none of these buffers */
	w->buffers.report.state = PP_SURFACE_REFUSED;
	world_judge(w);
	assert_int_equal(w->t.process[0].unproven, 0);
	world_done(w);
	free(mr);
	free(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_self_dmabuf),
		WORLD_TEST(test_other_exporter),
		WORLD_TEST(test_wrong_device),
		WORLD_TEST(test_wrong_inode),
		WORLD_TEST(test_live_dmabuf),
		WORLD_TEST(test_added_dmabuf),
		WORLD_TEST(test_added_others),
		WORLD_TEST(test_tracepoint),
		WORLD_TEST(test_called),
		WORLD_TEST(test_called_alone),
		WORLD_TEST(test_self_data_direct),
		WORLD_TEST(test_live_thread),
		WORLD_TEST(test_live_fallback),
		WORLD_TEST(test_gone),
		WORLD_TEST(test_counted),
		WORLD_TEST(test_rival),
		WORLD_TEST(test_no_length),
		WORLD_TEST(test_self_peermem),
		WORLD_TEST(test_live_peermem),
		WORLD_TEST(test_counted_peermem),
		WORLD_TEST(test_efa),
		WORLD_TEST(test_mixed),
		WORLD_TEST(test_staged),
		WORLD_TEST(test_no_member),
		WORLD_TEST(test_disagree),
		WORLD_TEST(test_owner),
		WORLD_TEST(test_only),
		WORLD_TEST(test_others),
		WORLD_TEST(test_nothing),
		WORLD_TEST(test_removal),
		WORLD_TEST(test_many),
	};

	return cmocka_run_group_tests_name("trace-verdict", tests, NULL, NULL);
}
