/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/probe_gpu.h"

#include <errno.h>
#include <stdlib.h>

#include "mem/registration.h"
#include "node/ask.h"
#include "base/banned.h"

struct session {
	struct pp_json *data;
	struct pp_verbs verbs;
	struct pp_memory *memory;
};

static void try(struct session *s, struct ibv_pd *pd, enum pp_registration how)
{
	/* The least that a device must grant: EFA refuses atomics, which would say nothing. */
	const struct pp_registration_options options = {.how = how,
							.access = IBV_ACCESS_LOCAL_WRITE};
	struct pp_registered *r = calloc(1, sizeof(*r));
	struct pp_error err = {0};
	pp_ns took = 0;
	int error;

	if (!r)
		return;
	error = pp_register(&s->verbs, pd, s->memory, &options, r, &err);
	for (unsigned int i = 0; i < r->n_attempts; i++)
		took = r->attempt[i].took;
	if (!error)
		error = pp_unregister(r, &err);
	pp_json_object(s->data, NULL);
	pp_json_str(s->data, "registration", pp_registration_name(how));
	pp_json_i64(s->data, "errno", -error);
	pp_json_i64(s->data, "took_ns", took);
	if (error)
		pp_json_str(s->data, "refused", err.text);
	pp_json_bool(s->data, "simulated", r->simulated);
	pp_attempts_write(s->data, "attempts", r);
	pp_json_end_object(s->data);
	free(r);
}

static int with_context(struct session *s, struct ibv_context *context, const char **ret_call)
{
	struct ibv_pd *pd;

	*ret_call = "ibv_alloc_pd";
	pp_ask_doing(*ret_call);
	errno = 0;
	pd = s->verbs.alloc_pd(context);
	if (!pd)
		return errno ? -errno : -EIO;
	pp_json_array(s->data, "ways");
	try(s, pd, PP_REGISTERED_DMABUF);
	try(s, pd, PP_REGISTERED_PEERMEM);
	pp_json_end_array(s->data);
	(void)s->verbs.dealloc_pd(pd);
	return 0;
}

static int with_device(struct session *s, struct ibv_device *device, const char *name)
{
	const char *call = "ibv_open_device";
	struct ibv_context *context;
	struct pp_error err;
	char doing[96];
	int r;

	pp_json_object(s->data, NULL);
	pp_json_str(s->data, "device", name);
	(void)snprintf(doing, sizeof(doing), "%s (%.64s)", call, name);
	pp_ask_doing(doing);
	errno = 0;
	context = device ? s->verbs.open_device(device) : NULL;
	r = context ? with_context(s, context, &call) : device ? -(errno ? errno : EIO) : -ENODEV;
	if (r)
		(void)pp_error_set(&err, r, device ? "%s: %s" : "libibverbs does not list it", call,
				   pp_errno_name(r));
	if (r)
		pp_json_str(s->data, "failure", err.text);
	if (context)
		(void)s->verbs.close_device(context);
	pp_json_end_object(s->data);
	return r;
}

int pp_probe_gpu_run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct pp_probe_gpu *q = arg;
	const struct pp_memory_options options = {
		.kind = PP_MEMORY_CUDA, .size = PP_PROBE_GPU_BYTES, .gpu = q->gpu};
	struct session s = {.data = data};
	struct ibv_device **list;
	int r = pp_verbs_load(&s.verbs, err), n = 0;

	pp_json_str(data, "gpu", q->gpu);
	if (!r)
		r = pp_memory_new(&options, &s.memory, err);
	if (r)
		return r;
	pp_ask_doing("ibv_get_device_list");
	errno = 0;
	list = s.verbs.get_device_list(&n);
	if (!list) {
		r = pp_error_set(err, -(errno ? errno : EIO), "ibv_get_device_list: %s",
				 pp_errno_name(errno));
		pp_memory_free(s.memory);
		return r;
	}
	pp_json_array(data, "pairs");
	for (size_t i = 0; i < q->n; i++)
		(void)with_device(&s, pp_verbs_find(&s.verbs, list, q->devices[i]), q->devices[i]);
	pp_json_end_array(data);
	s.verbs.free_device_list(list);
	pp_memory_free(s.memory);
	return 0;
}
