/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each process on the software device answers for itself (soft/engine/show.h); here the answers
 * are put together. They come from other processes: nothing in them is trusted to have a shape.
 */
#include "cli/soft_show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/session.h"
#include "cli/soft_ask.h"
#include "soft/engine/show.h"
#include "soft/link/slot.h"
#include "base/banned.h"

enum { ROWS_SHOWN = 32, TEXT_WIDTH = 80 };

struct shown {
	struct pp_out *out;
	json_t *processes;
	json_t *silent; /* who is there and said nothing: slot, reason */
	bool all;
	bool gpus; /* some queue pair has sent memory of one */
};

/* Sum of the numbers of an object: its counters together. */
static json_int_t sum_of(const json_t *object)
{
	const char *key;
	json_t *value;
	json_int_t sum = 0;

	json_object_foreach((json_t *)(uintptr_t)object, key, value) sum +=
		json_integer_value(value);
	return sum;
}

static void join(const json_t *array, char *ret, size_t size)
{
	size_t i, len = 0;
	json_t *value;

	ret[0] = '\0';
	json_array_foreach(array, i, value)
	{
		const char *text = json_string_value(value);
		int n = text && len < size
				? snprintf(ret + len, size - len, "%s%s", i ? " " : "", text)
				: 0;

		len += n > 0 ? (size_t)n : 0;
	}
}

static void device_row(struct shown *s, const json_t *process, const json_t *device)
{
	char addresses[1024];

	join(json_object_get(device, "gids"), addresses, sizeof(addresses));
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(process, "pid"));
	pp_out_cell(s->out, pp_soft_text(process, "program"));
	pp_out_cell(s->out, pp_soft_text(device, "name"));
	pp_out_cell(s->out, addresses);
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(device, "mtu_bytes"));
	pp_out_cellf(s->out, "%zu", json_array_size(json_object_get(device, "queue_pairs")));
	pp_out_cellf(s->out, "%zu", json_array_size(json_object_get(device, "memory_regions")));
}

static void traffic_row(struct shown *s, const json_t *process, const json_t *device)
{
	const json_t *traffic = json_object_get(device, "traffic");
	const json_t *counters = json_object_get(device, "counters");

	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(process, "pid"));
	pp_out_cell(s->out, pp_soft_text(device, "name"));
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(traffic, "sent_packets"));
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(traffic, "received_packets"));
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(counters, "retransmitted_packets"));
	pp_out_cellf(s->out, "%lld", (long long)sum_of(json_object_get(device, "drops")));
}

static void device_rows(struct shown *s,
			void (*row)(struct shown *s, const json_t *process, const json_t *device))
{
	size_t i, j;
	json_t *process, *device;

	json_array_foreach(s->processes, i, process)
		json_array_foreach(json_object_get(process, "devices"), j, device)
			row(s, process, device);
	pp_out_table_end(s->out);
}

static void devices_tables(struct shown *s)
{
	static const struct pp_out_column devices[] = {
		{NULL, "PID", false},	   {NULL, "PROGRAM", true}, {NULL, "DEVICE", true},
		{NULL, "ADDRESSES", true}, {NULL, "MTU", false},    {NULL, "QPS", false},
		{NULL, "MRS", false},
	};
	static const struct pp_out_column traffic[] = {
		{NULL, "PID", false},	   {NULL, "DEVICE", true},	{NULL, "SENT", false},
		{NULL, "RECEIVED", false}, {NULL, "SENT AGAIN", false}, {NULL, "DROPPED", false},
	};

	pp_out_heading(s->out, "Processes on the software device");
	pp_out_table(s->out, NULL, devices, PP_ARRAY_LEN(devices));
	device_rows(s, device_row);
	pp_out_heading(s->out, "Packets");
	pp_out_table(s->out, NULL, traffic, PP_ARRAY_LEN(traffic));
	device_rows(s, traffic_row);
}

static void queue_pair_row(struct shown *s, const json_t *process, const json_t *qp)
{
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(process, "pid"));
	pp_out_cellf(s->out, "0x%06llx", (unsigned long long)pp_soft_number(qp, "qpn"));
	pp_out_cell(s->out, pp_soft_text(qp, "type"));
	pp_out_cell(s->out, pp_soft_text(qp, "state"));
	pp_out_cell(s->out, pp_soft_text(qp, "remote"));
	if (json_object_get(qp, "remote_qpn"))
		pp_out_cellf(s->out, "0x%06llx",
			     (unsigned long long)pp_soft_number(qp, "remote_qpn"));
	else
		pp_out_cell(s->out, "-");
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(qp, "send_open"));
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(qp, "recv_posted"));
	pp_out_cell(s->out, pp_soft_text(qp, "link"));
	if (!s->gpus)
		return;
	pp_out_cell(s->out, pp_soft_text(qp, "gpu_memory"));
	pp_out_cell(s->out, pp_soft_text(qp, "not_direct"));
}

static void queue_pairs_table(struct shown *s)
{
	static const struct pp_out_column columns[] = {
		{NULL, "PID", false},	{NULL, "QPN", false},	    {NULL, "TYPE", false},
		{NULL, "STATE", false}, {NULL, "REMOTE", true},	    {NULL, "REMOTE QPN", false},
		{NULL, "SENDS", false}, {NULL, "RECVS", false},	    {NULL, "LINK", true},
		{NULL, "GPU", true},	{NULL, "NOT DIRECT", true},
	};
	size_t i, j, k, rows = 0;
	json_t *process, *device, *qp;

	json_array_foreach(s->processes, i, process)
		json_array_foreach(json_object_get(process, "devices"), j, device)
			json_array_foreach(json_object_get(device, "queue_pairs"), k, qp)
				s->gpus |= json_object_get(qp, "gpu_memory") != NULL;
	pp_out_table(s->out, NULL, columns, PP_ARRAY_LEN(columns) - (s->gpus ? 0 : 2));
	json_array_foreach(s->processes, i, process)
		json_array_foreach(json_object_get(process, "devices"), j, device)
			json_array_foreach(json_object_get(device, "queue_pairs"), k,
					   qp) if (rows++ < ROWS_SHOWN || s->all)
				queue_pair_row(s, process, qp);
	pp_out_table_end(s->out);
	if (rows > ROWS_SHOWN && !s->all)
		pp_out_para(s->out, 0, "%zu more; --all shows them.", rows - ROWS_SHOWN);
}

static void begin_faults(struct shown *s)
{
	static const struct pp_out_column columns[] = {
		{NULL, "PID", false},	  {NULL, "DEVICE", true}, {NULL, "FAULT", true},
		{NULL, "MATCHED", false}, {NULL, "FIRED", false},
	};

	pp_out_heading(s->out, "Faults");
	pp_out_table(s->out, NULL, columns, PP_ARRAY_LEN(columns));
}

static unsigned int faults_rows(struct shown *s)
{
	size_t i, j, k;
	json_t *process, *device, *fault;
	unsigned int rows = 0;

	json_array_foreach(s->processes, i, process)
		json_array_foreach(json_object_get(process, "devices"), j, device)
			json_array_foreach(json_object_get(device, "faults"), k, fault)
	{
		if (rows++ == 0)
			begin_faults(s);
		pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(process, "pid"));
		pp_out_cell(s->out, pp_soft_text(device, "name"));
		pp_out_cell(s->out, pp_soft_text(fault, "fault"));
		pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(fault, "matched"));
		pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(fault, "fired"));
	}
	return rows;
}

static void gpu_row(struct shown *s, const json_t *process, const json_t *gpu)
{
	const json_t *slow = json_object_get(gpu, "slow");
	const char *inside = json_string_value(json_object_get(gpu, "inside"));

	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(process, "pid"));
	pp_out_cell(s->out, pp_soft_text(gpu, "bdf"));
	pp_out_cell(s->out, json_is_true(json_object_get(gpu, "mps")) ? "yes" : "no");
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(gpu, "copies"));
	pp_out_cellf(s->out, "%lld", (long long)pp_soft_number(gpu, "under_way"));
	if (slow)
		pp_out_cellf(s->out, "%lld bytes %s %s for %lld ms%s%s",
			     (long long)pp_soft_number(slow, "bytes"),
			     pp_soft_text(slow, "direction"), pp_soft_text(slow, "state"),
			     (long long)pp_soft_number(slow, "since_ms"), inside ? ", inside " : "",
			     inside ? inside : "");
	else
		pp_out_cell(s->out, "-");
}

static void gpus_table(struct shown *s)
{
	static const struct pp_out_column columns[] = {
		{NULL, "PID", false},	 {NULL, "GPU", true},	     {NULL, "MPS", true},
		{NULL, "COPIES", false}, {NULL, "UNDER WAY", false}, {NULL, "SLOW", true},
	};
	size_t i, j;
	json_t *process, *gpu;
	unsigned int rows = 0;

	json_array_foreach(s->processes, i, process)
		json_array_foreach(json_object_get(process, "gpus"), j, gpu)
	{
		if (rows++ == 0) {
			pp_out_heading(s->out, "Memory of GPUs (copied, simulated)");
			pp_out_table(s->out, NULL, columns, PP_ARRAY_LEN(columns));
		}
		gpu_row(s, process, gpu);
	}
	if (rows)
		pp_out_table_end(s->out);
}

static void show_text(struct shown *s)
{
	size_t silent = json_array_size(s->silent);

	if (!json_array_size(s->processes) && silent)
		pp_out_para(s->out, 0,
			    "%zu %s of this network namespace %s the software device; "
			    "none tells what it holds.",
			    silent, silent == 1 ? "process" : "processes",
			    silent == 1 ? "uses" : "use");
	else if (!json_array_size(s->processes))
		pp_out_para(s->out, 0,
			    "No process of this network namespace uses the software "
			    "device. Start one: peerpath soft -- ibv_devinfo");
	else {
		devices_tables(s);
		if (faults_rows(s))
			pp_out_table_end(s->out);
		gpus_table(s);
		pp_out_heading(s->out, "Queue pairs");
		queue_pairs_table(s);
	}
}

/* Writes a tree that jansson read into the document being written. */
static void copy_json(struct pp_json *j, const char *key, const json_t *value)
{
	const char *name;
	json_t *member;
	size_t i;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		pp_json_object(j, key);
		json_object_foreach((json_t *)(uintptr_t)value, name, member)
			copy_json(j, name, member);
		pp_json_end_object(j);
		break;
	case JSON_ARRAY:
		pp_json_array(j, key);
		json_array_foreach(value, i, member) copy_json(j, NULL, member);
		pp_json_end_array(j);
		break;
	case JSON_STRING:
		pp_json_str(j, key, json_string_value(value));
		break;
	case JSON_INTEGER:
		pp_json_i64(j, key, json_integer_value(value));
		break;
	case JSON_REAL:
		pp_json_double(j, key, json_real_value(value));
		break;
	case JSON_NULL:
		pp_json_null(j, key);
		break;
	default:
		pp_json_bool(j, key, json_is_true(value));
	}
}

static int note_silent(const struct pp_args *args, struct shown *s, unsigned int slot, int error)
{
	const char *why = pp_soft_ask_why(error);

	(void)pp_complain(args, 0, "the process in slot %u does not answer: %s", slot, why);
	return json_array_append_new(s->silent,
				     json_pack("{s:i, s:s}", "slot", (int)slot, "reason", why));
}

static int ask_all(const struct pp_args *args, struct shown *s)
{
	for (unsigned int slot = 0; slot < SOFT_SLOTS; slot++) {
		json_t *process = NULL;
		int r = pp_soft_ask(slot, SOFT_SHOW_REQUEST, "devices", &process);

		if (r == -ENOENT)
			continue;
		if (r ? note_silent(args, s, slot, r)
		      : json_array_append_new(s->processes, process))
			return -ENOMEM;
	}
	return 0;
}

static void show_json(struct shown *s)
{
	const struct {
		const char *key;
		const json_t *array;
	} lists[] = {{"processes", s->processes}, {"silent", s->silent}};
	size_t i;
	json_t *value;

	for (size_t k = 0; k < PP_ARRAY_LEN(lists); k++) {
		pp_json_array(pp_out_json(s->out), lists[k].key);
		json_array_foreach(lists[k].array, i, value)
			copy_json(pp_out_json(s->out), NULL, value);
		pp_json_end_array(pp_out_json(s->out));
	}
}

int pp_soft_show(const struct pp_args *args)
{
	struct shown s = {
		.processes = json_array(), .silent = json_array(), .all = pp_args_has(args, "all")};
	struct pp_session session = {0};
	int code = pp_session_open_output(args, &session);

	if (!code && (!s.processes || !s.silent || ask_all(args, &s)))
		code = pp_complain(args, PP_EXIT_INTERNAL, "no memory");
	if (!code) {
		s.out = session.out;
		pp_out_limit_width(s.out, TEXT_WIDTH);
		pp_out_document(s.out, "peerpath.soft/1");
		if (pp_out_is_json(s.out))
			show_json(&s);
		else
			show_text(&s);
	}
	json_decref(s.processes);
	json_decref(s.silent);
	return pp_session_close(&session, code ? code : PP_EXIT_PASS);
}
