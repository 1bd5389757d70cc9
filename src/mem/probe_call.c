/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errno is cleared before every verb: several of them leave it alone when they fail in the
 * library, and a stale value would be taken for an answer of the driver.
 */
#include "mem/probe_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "node/verbs.h"
#include "base/banned.h"

struct session {
	struct pp_json *data;
	struct pp_verbs verbs;
	struct pp_error *err;
	size_t page;
	int64_t calls; /* reported so far */
	pp_ns start;   /* of the call in flight */
};

static void begin(struct session *s, const char *call)
{
	pp_ask_doing(call);
	errno = 0;
	s->start = pp_clock_monotonic();
}

static void end(struct session *s, const char *call, const char *arguments, int error)
{
	pp_ns took = pp_clock_monotonic() - s->start;

	pp_json_object(s->data, NULL);
	pp_json_str(s->data, "call", call);
	pp_json_str(s->data, "arguments", arguments);
	pp_json_i64(s->data, "errno", error);
	pp_json_i64(s->data, "took_ns", took);
	pp_json_end_object(s->data);
	s->calls++;
}

/* Runs the deciding verb; *ret_decided is its index among the calls. */
static void reg(struct session *s, struct ibv_pd *pd, enum pp_probe_method method,
		int64_t *ret_decided)
{
	const char *call = method == PP_PROBE_HOST ? "ibv_reg_mr" : "ibv_reg_dmabuf_mr";
	void *page = NULL;
	char arguments[96];
	struct ibv_mr *mr;
	int r;

	if (method == PP_PROBE_HOST) {
		if (posix_memalign(&page, s->page, s->page))
			return;
		(void)snprintf(arguments, sizeof(arguments), "length %zu, LOCAL_WRITE", s->page);
		begin(s, call);
		mr = s->verbs.reg_memory(pd, page, s->page, IBV_ACCESS_LOCAL_WRITE);
	} else {
		(void)snprintf(arguments, sizeof(arguments),
			       "offset 0, length %zu, iova 0, fd -1, LOCAL_WRITE", s->page);
		begin(s, call);
		mr = s->verbs.reg_dmabuf(pd, 0, s->page, 0, -1, IBV_ACCESS_LOCAL_WRITE);
	}
	r = mr ? 0 : errno ? errno : EIO;
	*ret_decided = s->calls;
	end(s, call, arguments, r);
	if (mr) {
		begin(s, "ibv_dereg_mr");
		r = s->verbs.dereg_mr(mr);
		end(s, "ibv_dereg_mr", "", r);
		/* A region that could not be undone still owns its page. */
		if (r)
			return;
	}
	free(page);
}

static int with_context(struct session *s, struct ibv_context *context, enum pp_probe_method method,
			int64_t *ret_decided)
{
	struct ibv_pd *pd;
	int r;

	begin(s, "ibv_alloc_pd");
	pd = s->verbs.alloc_pd(context);
	r = pd ? 0 : errno ? errno : EIO;
	end(s, "ibv_alloc_pd", "", r);
	if (!pd)
		return pp_error_set(s->err, -r, "ibv_alloc_pd: %s", pp_errno_name(r));
	reg(s, pd, method, ret_decided);
	begin(s, "ibv_dealloc_pd");
	r = s->verbs.dealloc_pd(pd);
	end(s, "ibv_dealloc_pd", "", r);
	return 0;
}

static int with_list(struct session *s, struct ibv_device **list, const struct pp_probe_call *call,
		     int64_t *ret_decided)
{
	struct ibv_device *device = pp_verbs_find(&s->verbs, list, call->device);
	struct ibv_context *context;
	int r;

	if (!device)
		return pp_error_set(s->err, -ENODEV, "libibverbs does not list '%s'", call->device);
	begin(s, "ibv_open_device");
	context = s->verbs.open_device(device);
	r = context ? 0 : errno ? errno : EIO;
	end(s, "ibv_open_device", call->device, r);
	if (!context)
		return pp_error_set(s->err, -r, "ibv_open_device: %s", pp_errno_name(r));
	r = with_context(s, context, call->method, ret_decided);
	begin(s, "ibv_close_device");
	end(s, "ibv_close_device", call->device, s->verbs.close_device(context));
	return r;
}

int pp_probe_call_run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct pp_probe_call *call = arg;
	struct session s = {.data = data, .err = err, .page = (size_t)sysconf(_SC_PAGESIZE)};
	int r = pp_verbs_load(&s.verbs, err), n = 0;
	struct ibv_device **list;
	int64_t decided = -1;

	if (r)
		return r;
	pp_json_str(data, "device", call->device);
	if (call->method == PP_PROBE_DMABUF_FD) {
		pp_json_bool(data, "exported", s.verbs.reg_dmabuf != NULL);
		if (!s.verbs.reg_dmabuf)
			return 0;
	}
	pp_json_array(data, "calls");
	begin(&s, "ibv_get_device_list");
	list = s.verbs.get_device_list(&n);
	r = list ? 0 : errno ? errno : EIO;
	end(&s, "ibv_get_device_list", "", r);
	if (list) {
		r = with_list(&s, list, call, &decided);
		s.verbs.free_device_list(list);
	} else {
		(void)pp_error_set(err, -r, "ibv_get_device_list: %s", pp_errno_name(r));
		r = -r;
	}
	pp_json_end_array(data);
	if (decided >= 0)
		pp_json_i64(data, "decided", decided);
	return r;
}
