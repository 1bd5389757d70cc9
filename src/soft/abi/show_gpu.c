/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/abi/show_gpu.h"

#include "soft/copy/export.h"
#include "soft/engine/gpus.h"

#include "base/banned.h"

void soft_show_gpu_region(struct pp_json *json, const struct soft_mr_object *mr)
{
	struct soft_cuda_watch gpu;

	if (!mr->gpu)
		return;
	soft_cuda_device_watch(mr->gpu, &gpu);
	pp_json_str(json, "memory", mr->vmm ? "cuda-vmm" : "cuda");
	pp_json_str(json, "gpu", gpu.bus_id);
	pp_json_u64(json, "address", mr->region.far);
	pp_json_u64(json, "inode", mr->inode);
	pp_json_u64(json, "descriptor_bytes", mr->descriptor_size);
	pp_json_u64(json, "offset_bytes", mr->offset);
	pp_json_str(json, "offset", mr->offset_modelled ? "modelled" : "not modelled");
	pp_json_bool(json, "shared", mr->region.export != NULL);
	if (mr->region.export)
		pp_json_u64(json, "peers", mr->region.export->lanes);
	else if (mr->region.not_direct)
		pp_json_str(json, "not_direct", mr->region.not_direct);
}

/* What has taken too long: a copy, and the call that the thread is in. */
static void show_slow(struct pp_json *json, const struct soft_cuda_watch *w, pp_ns now)
{
	if (!w->under_way || now - w->oldest_since < SOFT_CUDA_SLOW)
		return;
	pp_json_object(json, "slow");
	pp_json_str(json, "direction",
		    w->what != SOFT_COPY ? "none"
		    : w->direct		 ? "direct"
		    : w->to_device	 ? "to-device"
					 : "to-host");
	pp_json_u64(json, "bytes", w->oldest_bytes);
	pp_json_u64(json, "since_ms", (uint64_t)((now - w->oldest_since) / PP_MILLISECOND));
	pp_json_str(json, "state", w->begun ? "not finished" : "not started");
	pp_json_end_object(json);
}

static void show_gpu(void *arg, const struct soft_cuda_watch *w)
{
	struct pp_json *json = arg;
	pp_ns now = pp_clock_monotonic();

	pp_json_object(json, NULL);
	pp_json_str(json, "bdf", w->bus_id);
	pp_json_i64(json, "ordinal", w->ordinal);
	pp_json_bool(json, "context", w->open);
	pp_json_bool(json, "mps", w->mps);
	pp_json_str(json, "allocated_by", w->kernel ? "kernel" : "copy engine");
	pp_json_u64(json, "copies", w->copies);
	pp_json_u64(json, "copied_bytes", w->bytes);
	pp_json_u64(json, "failed", w->failed);
	pp_json_u64(json, "under_way", w->under_way);
	if (w->inside && now - w->inside_since >= SOFT_CUDA_SLOW)
		pp_json_str(json, "inside", w->inside);
	show_slow(json, w, now);
	pp_json_bool(json, "simulated", true);
	pp_json_end_object(json);
}

static void show_staging(struct pp_json *json, const char *key, const struct soft_staging *s)
{
	pp_json_object(json, key);
	pp_json_u64(json, "bytes", soft_staging_room(s));
	pp_json_u64(json, "used_bytes", s->in_use);
	pp_json_u64(json, "most_used_bytes", s->most);
	pp_json_u64(json, "waits", s->refused);
	pp_json_end_object(json);
}

void soft_show_gpus(struct pp_json *json, struct soft_engine *engine)
{
	const struct soft_mover *mover = soft_gpus_mover(engine);

	/* A process without memory of GPUs has nothing to say of them. */
	if (!mover->regions)
		return;
	pp_json_array(json, "gpus");
	soft_gpus_each(engine, show_gpu, json);
	pp_json_end_array(json);
	pp_json_u64(json, "lent_copies", mover->lent);
	pp_json_u64(json, "lent_bytes", mover->lent_bytes);
	pp_json_u64(json, "direct_copies", mover->direct);
	pp_json_u64(json, "direct_bytes", mover->direct_bytes);
	show_staging(json, "staging_out", &mover->out);
	show_staging(json, "staging_in", &mover->in);
}
