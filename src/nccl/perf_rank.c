/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/perf_rank.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "nccl/perf_rank_state.h"
#include "nccl/perf_users.h"
#include "base/banned.h"

enum { LOG_PART = 256 << 10, MOST_RANKS = 1 << 20, MOST_ITERATIONS = 1000000 };

static const int64_t MOST_BYTES = (int64_t)1 << 40;

int pp_perf_number(const json_t *order, const char *key, int64_t min, int64_t max, int64_t *ret,
		   struct pp_error *err)
{
	const json_t *v = json_object_get(order, key);

	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return pp_error_set(err, -EBADMSG, "an order without a good '%s'", key);
	*ret = json_integer_value(v);
	return 0;
}

static const char *text_of(const json_t *order, const char *key)
{
	const char *text = json_string_value(json_object_get(order, key));

	return text && *text ? text : NULL;
}

/* In place, source and target lie in the receive buffer as NCCL wants it. */
static void set_addresses(const struct pp_perf_rank *r, struct pp_perf_task *t)
{
	uint64_t size = pp_element_size(t->element), rank = (uint64_t)r->rank;

	t->to = r->gpu.receive->at;
	t->from = t->in_place ? t->to + rank * t->shape.send_step * size : r->gpu.send->at;
	if (t->in_place)
		t->to += rank * t->shape.receive_step * size;
}

int pp_perf_task(const struct pp_perf_rank *r, const json_t *order, struct pp_perf_task *ret,
		 struct pp_error *err)
{
	int64_t collective = 0, element = 0, reduction = 0, bytes = 0, salt = 0;
	struct pp_perf_task t = {0};
	uint64_t most;
	int e = pp_perf_number(order, "collective", 0, PP_COLLECTIVES - 1, &collective, err);

	e = e ? e : pp_perf_number(order, "element", 0, PP_ELEMENTS - 1, &element, err);
	e = e ? e : pp_perf_number(order, "reduction", 0, PP_REDUCTIONS - 1, &reduction, err);
	e = e ? e : pp_perf_number(order, "bytes", 0, MOST_BYTES, &bytes, err);
	e = e ? e : pp_perf_number(order, "iterations", 0, MOST_ITERATIONS, &t.iterations, err);
	e = e ? e : pp_perf_number(order, "aggregate", 1, MOST_ITERATIONS, &t.aggregate, err);
	e = e ? e : pp_perf_number(order, "limit_ns", 1, INT64_MAX, &t.limit, err);
	e = e ? e : pp_perf_number(order, "salt", 0, INT64_MAX, &salt, err);
	if (e)
		return e;
	if (!r->comm || r->broken)
		return pp_error_set(err, -EBADMSG, "no communicator");
	t.collective = (enum pp_collective)collective;
	t.element = (enum pp_element)element;
	t.reduction = (enum pp_reduction)reduction;
	t.in_place = json_is_true(json_object_get(order, "in_place"));
	t.salt = (uint64_t)salt;
	t.shape = pp_collective_shape(t.collective, t.element, (uint64_t)bytes,
				      (unsigned int)r->size);
	most = t.in_place ? t.shape.bytes : t.shape.receive * pp_element_size(t.element);
	if (!r->gpu.send || t.shape.send * pp_element_size(t.element) > r->send ||
	    most > r->receive)
		return pp_error_set(err, -EBADMSG, "more than the buffers hold");
	set_addresses(r, &t);
	*ret = t;
	return 0;
}

/* NCCL prints to standard output, which is nobody's here: what it says goes with the answers. */
static void catch_log(struct pp_perf_rank *r)
{
	const char *level = getenv("NCCL_DEBUG");
	char path[64];

	if (!level || getenv("NCCL_DEBUG_FILE"))
		return;
	r->log = memfd_create("nccl-log", MFD_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", r->log);
	if (r->log >= 0 && setenv("NCCL_DEBUG_FILE", path, 1)) {
		(void)close(r->log);
		r->log = -1;
	}
}

static void write_log(struct pp_perf_rank *r, struct pp_json *out)
{
	char *PP_AUTO_FREE text = NULL;
	struct stat st;
	ssize_t n;
	char *end;

	if (r->log < 0 || fstat(r->log, &st) || st.st_size <= r->logged)
		return;
	text = malloc(LOG_PART + 1);
	n = text ? pread(r->log, text, LOG_PART, r->logged) : -1;
	if (n <= 0)
		return;
	text[n] = '\0';
	/* Whole lines, unless one fills all there is. */
	end = strrchr(text, '\n');
	if (end)
		n = end + 1 - text;
	text[n] = '\0';
	r->logged += n;
	pp_json_str(out, "log", text);
}

static void write_clock_name(struct pp_json *out)
{
	char text[128] = "", boot[64] = "", space[48] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f && fgets(boot, sizeof(boot), f))
		boot[strcspn(boot, "\n")] = '\0';
	if (f)
		(void)fclose(f);
	if (readlink("/proc/self/ns/time", space, sizeof(space) - 1) < 0)
		space[0] = '\0';
	(void)snprintf(text, sizeof(text), "%s %s", boot, space);
	if (boot[0])
		pp_json_str(out, "clock", text);
}

/* Before any rank has a context: all of those that NVML sees are others'. */
static int do_look(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		   struct pp_error *err)
{
	int64_t ordinal = 0;
	int e = pp_perf_number(order, "ordinal", 0, 1023, &ordinal, err), users;

	if (!e && r->gpu.cuda)
		e = pp_error_set(err, -EBADMSG, "the GPU is open");
	e = e ? e : pp_perf_gpu_find(text_of(order, "gpu"), (int)ordinal, &r->gpu, err);
	if (e)
		return e;
	users = pp_perf_users(r->gpu.bdf);
	pp_json_str(out, "gpu", r->gpu.bdf);
	if (users >= 0)
		pp_json_i64(out, "users", users);
	return 0;
}

static int do_open(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		   struct pp_error *err)
{
	const char *host = text_of(order, "hostid");
	int e;

	if (!r->gpu.bdf[0] || r->gpu.cuda)
		return pp_error_set(err, -EBADMSG, "no GPU was found, or it is open");
	if (host && setenv("NCCL_HOSTID", host, 1))
		return pp_error_set(err, -ENOMEM, "no memory for NCCL_HOSTID");
	catch_log(r);
	e = pp_nccl_library_open(text_of(order, "library"), &r->library, err);
	if (!e)
		e = pp_perf_gpu_open(&r->gpu, err);
	if (e)
		return e;
	pp_json_str(out, "library", r->library.path);
	pp_json_str(out, "library_by", r->library.by);
	if (r->library.other[0])
		pp_json_str(out, "library_other", r->library.other);
	pp_json_i64(out, "version", r->library.number);
	pp_json_str(out, "gpu", r->gpu.bdf);
	pp_json_str(out, "gpu_name", r->gpu.name);
	pp_json_i64(out, "device", r->gpu.ordinal);
	pp_json_i64(out, "gpu_bytes", (int64_t)r->gpu.cuda->memory);
	if (r->gpu.mps >= 0)
		pp_json_i64(out, "mps", r->gpu.mps);
	pp_json_i64(out, "pid", getpid());
	write_clock_name(out);
	return 0;
}

static int do_buffers(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		      struct pp_error *err)
{
	int64_t send = 0, receive = 0;
	int e = pp_perf_number(order, "send", 0, MOST_BYTES, &send, err);

	(void)out;
	e = e ? e : pp_perf_number(order, "receive", 0, MOST_BYTES, &receive, err);
	if (!e && !r->gpu.cuda)
		e = pp_error_set(err, -EBADMSG, "no GPU is open");
	if (e)
		return e;
	r->kind = json_is_true(json_object_get(order, "vmm")) ? PP_MEMORY_CUDA_VMM : PP_MEMORY_CUDA;
	r->send = r->receive = 0;
	e = pp_perf_gpu_buffers(&r->gpu, r->kind, (uint64_t)send, (uint64_t)receive, err);
	if (e)
		return e;
	r->send = (uint64_t)send;
	r->receive = (uint64_t)receive;
	return 0;
}

static int do_id(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		 struct pp_error *err)
{
	char text[2 * PP_NCCL_ID + 1];
	struct pp_nccl_id id;
	int code;

	(void)order;
	if (!r->library.handle)
		return pp_error_set(err, -EBADMSG, "no library is open");
	code = r->library.call.unique_id(&id);
	if (code)
		return pp_nccl_library_fail(&r->library, NULL, "ncclGetUniqueId", code, err);
	pp_json_str(
		out, "id",
		sodium_bin2hex(text, sizeof(text), (const unsigned char *)id.bytes, PP_NCCL_ID));
	return 0;
}

/* Has NCCL loaded verbs, and are they the software device's? */
static bool is_simulated(void)
{
	void *verbs = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

	return verbs && dlsym(verbs, "peerpath_soft_dmabuf_range");
}

static int do_init(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		   struct pp_error *err)
{
	const char *text = text_of(order, "id");
	int64_t rank = 0, size = 0;
	struct pp_nccl_id id;
	size_t len = 0;
	int code, e = pp_perf_number(order, "size", 1, MOST_RANKS, &size, err);

	e = e ? e : pp_perf_number(order, "rank", 0, size - 1, &rank, err);
	if (e)
		return e;
	if (!r->library.handle || !r->gpu.cuda || r->comm || !text ||
	    sodium_hex2bin((unsigned char *)id.bytes, PP_NCCL_ID, text, strlen(text), NULL, &len,
			   NULL) ||
	    len != PP_NCCL_ID)
		return pp_error_set(err, -EBADMSG, "an order to begin that cannot be followed");
	r->rank = (int)rank;
	r->size = (int)size;
	pp_cuda_enter(r->gpu.cuda);
	code = r->library.call.init_rank(&r->comm, r->size, id, r->rank);
	if (!code) {
		pp_json_bool(out, "simulated", is_simulated());
		return 0;
	}
	r->comm = NULL;
	return pp_nccl_library_fail(&r->library, NULL, "ncclCommInitRank", code, err);
}

static int do_clock(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		    struct pp_error *err)
{
	(void)r;
	(void)order;
	(void)err;
	pp_json_i64(out, "now_ns", pp_clock_monotonic());
	return 0;
}

static int do_time(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		   struct pp_error *err)
{
	struct pp_perf_task t;
	int e = pp_perf_task(r, order, &t, err);

	return e ? e : pp_perf_rank_time(r, &t, out, err);
}

static int do_sample(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		     struct pp_error *err)
{
	struct pp_perf_task t;
	int e = pp_perf_task(r, order, &t, err);

	return e ? e : pp_perf_rank_sample(r, &t, out, err);
}

static int do_check(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		    struct pp_error *err)
{
	struct pp_perf_task t;
	int e = pp_perf_task(r, order, &t, err);

	return e ? e : pp_perf_rank_check(r, &t, out, err);
}

static int do_close(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		    struct pp_error *err)
{
	int code = r->comm && !r->broken ? r->library.call.destroy(r->comm) : 0;

	(void)order;
	(void)out;
	r->comm = NULL;
	return code ? pp_nccl_library_fail(&r->library, NULL, "ncclCommDestroy", code, err) : 0;
}

static const struct {
	const char *name;
	int (*run)(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		   struct pp_error *err);
} orders[] = {
	{"look", do_look},   {"open", do_open},	  {"buffers", do_buffers}, {"id", do_id},
	{"init", do_init},   {"clock", do_clock}, {"time", do_time},	   {"sample", do_sample},
	{"check", do_check}, {"close", do_close},
};

static int follow(struct pp_perf_rank *r, const json_t *order, struct pp_json *out,
		  struct pp_error *err)
{
	const char *what = text_of(order, "do");

	for (size_t i = 0; what && i < PP_ARRAY_LEN(orders); i++)
		if (!strcmp(orders[i].name, what))
			return orders[i].run(r, order, out, err);
	return pp_error_set(err, -EBADMSG, "no such order");
}

static int answer(struct pp_perf_rank *r, const json_t *order, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_CHANNEL_MOST);
	struct pp_json out = PP_JSON(&text, false);
	int e;

	pp_json_object(&out, NULL);
	e = follow(r, order, &out, err);
	pp_json_bool(&out, "ok", !e);
	if (e) {
		pp_json_i64(&out, "error", -e);
		pp_json_bool(&out, "remote", r->remote);
		pp_json_str(&out, "text", err->text);
	}
	write_log(r, &out);
	pp_json_end_object(&out);
	if (text.failed)
		return pp_error_set(err, text.failed, "the answer does not fit into a message");
	return pp_channel_send(r->channel, pp_buf_text(&text), text.len, err);
}

int pp_perf_rank_serve(struct pp_channel *c, const void *arg)
{
	struct pp_perf_rank *r = calloc(1, sizeof(*r));
	struct pp_error err = {0};
	json_t *order;
	int e;

	(void)arg;
	if (!r)
		return 1;
	r->channel = c;
	r->log = -1;
	/* Waiting sleeps in short naps, which the kernel shall not stretch. */
	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
	do {
		e = pp_channel_receive(c, INT64_MAX, NULL, &order, &err);
		if (e)
			break;
		err = (struct pp_error){0};
		e = answer(r, order, &err);
		json_decref(order);
	} while (!e && !r->broken);
	/* Told first: an abort may not return, and whoever keeps this process ends it then. */
	if (r->comm)
		(void)r->library.call.abort(r->comm);
	pp_perf_gpu_close(&r->gpu);
	free(r);
	return !e || e == -ECONNRESET || e == -EPIPE ? 0 : 1;
}
