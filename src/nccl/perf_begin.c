/* SPDX-License-Identifier: Apache-2.0 */
/* Before the first operation: agents, libraries, GPUs, buffers, communicator, clocks. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "nccl/library.h"
#include "nccl/perf_state.h"
#include "base/banned.h"

/* Loading libraries and making a CUDA context: slow with many GPUs. */
#define OPEN_LIMIT   (60 * PP_SECOND)
#define CLOCK_LIMIT  (5 * PP_SECOND)
#define CLOCK_ROUNDS 16

/* Which of its host's ranks @i is. */
static unsigned int place_of(const struct pp_perf_course *c, unsigned int i)
{
	const char *host = pp_party_node(c->party, i)->host;
	unsigned int before = 0;

	for (unsigned int k = 0; k < i; k++)
		before += !strcmp(pp_party_node(c->party, k)->host, host);
	return before;
}

static void send_text(struct pp_perf_course *c, unsigned int i, struct pp_json *j,
		      struct pp_buf *text)
{
	pp_json_end_object(j);
	pp_perf_send(c, i, pp_buf_text(text), text->len);
	pp_buf_done(text);
}

static void look_one(struct pp_perf_course *c, unsigned int i)
{
	const struct pp_perf_options *o = &c->p->options;
	const struct pp_party_node *node = pp_party_node(c->party, i);
	struct pp_perf_rank_info *info = &c->p->rank[i];
	struct pp_buf text;
	struct pp_json j;

	(void)snprintf(info->node, sizeof(info->node), "%s", node->id);
	(void)snprintf(info->host, sizeof(info->host), "%s", node->host);
	pp_perf_order_begin(&j, &text, "look");
	if (o->gpu)
		pp_json_str(&j, "gpu", o->gpu);
	pp_json_u64(&j, "ordinal", o->one_gpu ? 0 : place_of(c, i));
	send_text(c, i, &j, &text);
}

static int take_users(struct pp_perf_course *c, unsigned int i, struct pp_error *err)
{
	const struct pp_perf_seat *s = &c->seat[i];
	struct pp_perf_rank_info *info = &c->p->rank[i];
	const char *gpu = json_string_value(json_object_get(s->answer, "gpu"));

	info->users = json_object_get(s->answer, "users") ? pp_perf_answer(s, "users") : -1;
	if (info->users <= 0 || c->p->options.busy_ok)
		return 0;
	return pp_error_set(err, -EBUSY,
			    "rank %u on %s: %lld process%s a context on GPU %.32s: --busy-ok runs "
			    "all the same",
			    i, info->node, (long long)info->users,
			    info->users > 1 ? "es have" : " has", gpu ? gpu : "?");
}

static void open_one(struct pp_perf_course *c, unsigned int i)
{
	const struct pp_perf_options *o = &c->p->options;
	struct pp_perf_rank_info *info = &c->p->rank[i];
	struct pp_buf text;
	struct pp_json j;

	pp_perf_order_begin(&j, &text, "open");
	if (o->library)
		pp_json_str(&j, "library", o->library);
	if (o->apart && c->n > 1) {
		info->hostid = pp_arena_printf(&c->p->arena, "%s-rank%u", info->host, i);
		pp_json_str(&j, "hostid", info->hostid);
	}
	send_text(c, i, &j, &text);
}

static void take_rank(struct pp_perf_course *c, unsigned int i)
{
	struct pp_perf_rank_info *info = &c->p->rank[i];
	const struct pp_perf_seat *s = &c->seat[i];

	info->pid = pp_perf_answer(s, "pid");
	info->device = pp_perf_answer(s, "device");
	info->mps = json_object_get(s->answer, "mps") ? pp_perf_answer(s, "mps") != 0 : -1;
	info->gpu = pp_perf_answer_text(c, s, "gpu");
	info->gpu_name = pp_perf_answer_text(c, s, "gpu_name");
	info->library = pp_perf_answer_text(c, s, "library");
	info->library_by = pp_perf_answer_text(c, s, "library_by");
	info->library_other = pp_perf_answer_text(c, s, "library_other");
	info->number = (int)pp_perf_answer(s, "version");
	pp_nccl_version_split(info->number, &info->major, &info->minor, &info->patch);
}

static bool has_this_clock(const struct pp_perf_seat *s)
{
	const char *text = json_string_value(json_object_get(s->answer, "clock"));
	char boot[64] = "", space[48] = "", own[128];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f && fgets(boot, sizeof(boot), f))
		boot[strcspn(boot, "\n")] = '\0';
	if (f)
		(void)fclose(f);
	if (readlink("/proc/self/ns/time", space, sizeof(space) - 1) < 0)
		space[0] = '\0';
	(void)snprintf(own, sizeof(own), "%s %s", boot, space);
	return boot[0] && text && !strcmp(text, own);
}

static int open_all(struct pp_perf_course *c, struct pp_error *err)
{
	int r = 0;

	for (unsigned int i = 0; i < c->n && !r; i++)
		r = pp_party_agent(c->party, i, &c->seat[i].channel, err);
	for (unsigned int i = 0; i < c->n && !r; i++)
		look_one(c, i);
	if (!r)
		r = pp_perf_await(c, OPEN_LIMIT, NULL, err);
	for (unsigned int i = 0; i < c->n && !r; i++)
		r = take_users(c, i, err);
	for (unsigned int i = 0; i < c->n && !r; i++)
		open_one(c, i);
	if (!r)
		r = pp_perf_await(c, OPEN_LIMIT, NULL, err);
	for (unsigned int i = 0; i < c->n && !r; i++) {
		take_rank(c, i);
		c->p->rank[i].same_clock = has_this_clock(&c->seat[i]);
	}
	return r;
}

/* What the largest of the first @n_sizes sizes needs, over all collectives. */
static void need(const struct pp_perf_course *c, unsigned int n_sizes, uint64_t *ret_send,
		 uint64_t *ret_receive)
{
	const struct pp_perf_options *o = &c->p->options;
	unsigned int size = pp_element_size(o->element);

	*ret_send = *ret_receive = 0;
	for (unsigned int k = 0; k < o->n_collectives; k++) {
		for (unsigned int i = 0; i < n_sizes; i++) {
			struct pp_collective_shape s =
				pp_collective_shape(o->collective[k], o->element, o->size[i], c->n);

			*ret_send = s.send * size > *ret_send ? s.send * size : *ret_send;
			*ret_receive = s.bytes > *ret_receive ? s.bytes : *ret_receive;
		}
	}
}

static int order_buffers(struct pp_perf_course *c, unsigned int n_sizes, struct pp_error *err)
{
	uint64_t send, receive;
	struct pp_buf text;
	struct pp_json j;

	need(c, n_sizes, &send, &receive);
	for (unsigned int i = 0; i < c->n; i++)
		c->seat[i].failed = false;
	pp_perf_order_begin(&j, &text, "buffers");
	pp_json_u64(&j, "send", send);
	pp_json_u64(&j, "receive", receive);
	pp_json_bool(&j, "vmm", c->p->options.vmm);
	return pp_perf_order(c, &j, &text, -1, OPEN_LIMIT, "taking its buffers", err);
}

/* Sizes nobody has asked for are left out from the largest on, and it is told. */
static int make_buffers(struct pp_perf_course *c, struct pp_error *err)
{
	struct pp_perf_options *o = &c->p->options;
	unsigned int all = o->n_sizes;
	int r = order_buffers(c, o->n_sizes, err);

	while (r == -ENOMEM && o->may_shrink && o->n_sizes > 1)
		r = order_buffers(c, --o->n_sizes, err);
	if (!r && o->n_sizes < all)
		c->p->shrunk = pp_arena_printf(
			&c->p->arena,
			"sizes above %llu bytes are left out: the GPUs' memory does "
			"not hold them now",
			(unsigned long long)o->size[o->n_sizes - 1]);
	return r;
}

static int make_communicator(struct pp_perf_course *c, struct pp_error *err)
{
	pp_ns limit = c->p->options.limit;
	const char *id;
	struct pp_buf text;
	struct pp_json j;
	int r;

	pp_perf_order_begin(&j, &text, "id");
	r = pp_perf_order(c, &j, &text, 0, OPEN_LIMIT, NULL, err);
	if (r)
		return r;
	id = pp_perf_answer_text(c, &c->seat[0], "id");
	c->p->began = true;
	for (unsigned int i = 0; i < c->n; i++) {
		struct pp_buf PP_AUTO_BUF one = PP_BUF(4096);

		j = PP_JSON(&one, false);
		pp_json_object(&j, NULL);
		pp_json_str(&j, "do", "init");
		pp_json_str(&j, "id", id ? id : "");
		pp_json_u64(&j, "rank", i);
		pp_json_u64(&j, "size", c->n);
		pp_json_end_object(&j);
		if (one.failed)
			return pp_error_set(err, -ENOMEM, "no memory for an order");
		pp_perf_send(c, i, pp_buf_text(&one), one.len);
	}
	r = pp_perf_await(c, limit, "making the communicator", err);
	for (unsigned int i = 0; i < c->n && !r; i++)
		c->p->simulated |= json_is_true(json_object_get(c->seat[i].answer, "simulated"));
	return r;
}

/* The shortest of some exchanges tells most: what its answer may be old is half of it. */
static int compare_clock(struct pp_perf_course *c, unsigned int i, double *ret_offset,
			 double *ret_error, struct pp_error *err)
{
	double best = INFINITY;
	int r = 0;

	for (int k = 0; k < CLOCK_ROUNDS && !r; k++) {
		struct pp_buf text;
		struct pp_json j;
		pp_ns sent, back;

		pp_perf_order_begin(&j, &text, "clock");
		sent = pp_clock_monotonic();
		r = pp_perf_order(c, &j, &text, (int)i, CLOCK_LIMIT, "comparing clocks", err);
		back = pp_clock_monotonic();
		if (r || (double)(back - sent) >= best)
			continue;
		best = (double)(back - sent);
		*ret_offset = (double)pp_perf_answer(&c->seat[i], "now_ns") -
			      ((double)sent + (double)back) / 2;
		*ret_error = best / 2;
	}
	return r;
}

int pp_perf_clocks(struct pp_perf_course *c, bool again, struct pp_error *err)
{
	double offset = 0, error = 0;
	int r = 0;

	for (unsigned int i = 0; i < c->n && !r; i++) {
		struct pp_perf_rank_info *info = &c->p->rank[i];

		if (info->same_clock)
			continue;
		r = compare_clock(c, i, &offset, &error, err);
		if (r)
			break;
		if (again) {
			error = fmax(error, info->error_ns) + fabs(offset - c->first_offset[i]);
			offset = info->offset_ns;
		} else {
			c->first_offset[i] = offset;
		}
		info->offset_ns = offset;
		info->error_ns = error;
	}
	return r;
}

int pp_perf_begin(struct pp_perf_course *c, struct pp_error *err)
{
	int r = open_all(c, err);

	if (!r)
		r = make_buffers(c, err);
	if (!r)
		r = make_communicator(c, err);
	return r ? r : pp_perf_clocks(c, false, err);
}
