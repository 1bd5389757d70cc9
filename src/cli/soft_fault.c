/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath soft fault: lists, sets and takes away faults of running processes.
 *
 * The grammar is checked here first, so that a wrong word changes nobody. Who is to change is found
 * by what the processes show; each then changes itself and says so.
 */
#include "cli/soft_fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/near.h"
#include "base/parse.h"
#include "cli/session.h"
#include "cli/soft_ask.h"
#include "soft/engine/show.h"
#include "soft/fault/request.h"
#include "soft/link/slot.h"
#include "base/banned.h"

enum { TEXT_WIDTH = 100 };

struct faulting {
	const struct pp_args *args;
	struct pp_out *out;
	const char *device; /* NULL: any */
	uint64_t pid;	    /* 0: any */
	bool clear, list;
	size_t first; /* operand that is the first fault */
	struct pp_buf request;
	json_t *processes; /* that have the device: what they show, with their slot */
	unsigned int changed, failed;
};

/* ── what is asked for ── */

static int read_pid(struct faulting *f)
{
	const char *text = pp_args_get(f->args, "pid");

	if (text && pp_parse_u64(text, 1, INT32_MAX, &f->pid))
		return pp_complain(f->args, PP_EXIT_USAGE, "--pid=%s: no process number", text);
	return 0;
}

static int check_one(const struct faulting *f, const char *text)
{
	struct soft_fault_spec spec;
	struct pp_error err = {0};
	struct pp_near near = PP_NEAR(text);

	if (!soft_fault_spec_parse(text, &spec, &err))
		return 0;
	if (!strchr(text, '=')) {
		pp_near_offer(&near, "list");
		pp_near_offer(&near, "clear");
		pp_near_offer(&near, "set");
	}
	return pp_complain(f->args, PP_EXIT_USAGE, "%s%s%s%s", err.text,
			   near.best ? "; did you mean '" : "", near.best ? near.best : "",
			   near.best ? "'?" : "");
}

static int read_faults(struct faulting *f)
{
	size_t n = pp_args_operands(f->args);

	if (f->first == n)
		return pp_complain(f->args, PP_EXIT_USAGE, "set what? For example reg_mr=ENOMEM@3");
	if (n - f->first > SOFT_FAULT_REQUEST_SPECS)
		return pp_complain(f->args, PP_EXIT_USAGE, "more than %d faults at once",
				   SOFT_FAULT_REQUEST_SPECS);
	for (size_t i = f->first; i < n; i++) {
		int r = check_one(f, pp_args_operand(f->args, i));

		if (r)
			return r;
		pp_buf_printf(&f->request, " %s", pp_args_operand(f->args, i));
	}
	return 0;
}

static int read_request(struct faulting *f)
{
	const char *word = pp_args_operand(f->args, 1);
	bool lone = !word || !strcmp(word, "list") || !strcmp(word, "clear");
	int r = read_pid(f);

	f->device = pp_args_get(f->args, "device");
	f->list = !word || !strcmp(word, "list");
	f->clear = word && !strcmp(word, "clear");
	f->first = word && !strcmp(word, "set") ? 2 : 1;
	if (!r && lone && pp_args_operands(f->args) > 2)
		r = pp_complain(f->args, PP_EXIT_USAGE, "unexpected operand '%s' of %s",
				pp_args_operand(f->args, 2), word);
	pp_buf_printf(&f->request, "fault %s%s", f->device ? f->device : "*",
		      f->clear ? " clear" : "");
	if (!r && !lone)
		r = read_faults(f);
	if (!r && (f->request.failed || f->request.len >= SOFT_SHOW_REQUEST_MAX))
		r = pp_complain(f->args, PP_EXIT_USAGE, "too many faults at once");
	return r;
}

/* ── who is meant ── */

static bool has_device(const struct faulting *f, const json_t *process)
{
	size_t i;
	json_t *device;

	json_array_foreach(json_object_get(process, "devices"), i,
			   device) if (!f->device || !strcmp(pp_soft_text(device, "name"),
							     f->device)) return true;
	return false;
}

static int find_processes(struct faulting *f)
{
	for (unsigned int slot = 0; slot < SOFT_SLOTS; slot++) {
		json_t *process = NULL;
		int r = pp_soft_ask(slot, SOFT_SHOW_REQUEST, "devices", &process);

		if (r == -ENOENT)
			continue;
		if (r) {
			(void)pp_complain(f->args, 0, "the process in slot %u does not answer: %s",
					  slot, pp_soft_ask_why(r));
			f->failed += !f->pid && r != -EACCES && r != -ECONNRESET;
			continue;
		}
		if ((f->pid && (uint64_t)pp_soft_number(process, "pid") != f->pid) ||
		    !has_device(f, process)) {
			json_decref(process);
			continue;
		}
		/* By its place, not by what it says of itself. */
		if (json_object_set_new(process, "slot", json_integer(slot)) ||
		    json_array_append_new(f->processes, process))
			return pp_complain(f->args, PP_EXIT_INTERNAL, "no memory");
	}
	return 0;
}

static int nobody(const struct faulting *f)
{
	char pid[32] = "", device[96] = "the software device";

	if (f->pid)
		(void)snprintf(pid, sizeof(pid), "%llu ", (unsigned long long)f->pid);
	if (f->device)
		(void)snprintf(device, sizeof(device), "a device %s", f->device);
	return pp_complain(f->args, PP_EXIT_UNKNOWN,
			   "no process %sof this user and network namespace uses %s", pid, device);
}

/* ── changing ── */

static void faults_of(const struct faulting *f, char *ret, size_t size)
{
	size_t len = 0;

	(void)snprintf(ret, size, "%s", f->clear ? "cleared" : "");
	for (size_t i = f->first; !f->clear && i < pp_args_operands(f->args) && len < size; i++)
		len += (size_t)snprintf(ret + len, size - len, "%s%s", i > f->first ? " " : "",
					pp_args_operand(f->args, i));
}

static void change_row(struct faulting *f, const json_t *process, const json_t *device,
		       const char *error, bool unknown)
{
	char what[512];

	faults_of(f, what, sizeof(what));
	pp_out_cell_i64(f->out, pp_soft_number(process, "pid"));
	pp_out_cell(f->out, pp_soft_text(process, "program"));
	pp_out_cell(f->out, device ? json_string_value(device) : f->device);
	pp_out_cell(f->out, error ? error : what);
	if (unknown)
		pp_out_cell(f->out, NULL);
	else
		pp_out_cell_bool(f->out, !error);
}

static void change(struct faulting *f, const json_t *process)
{
	json_t *said = NULL, *device;
	const char *error = NULL;
	size_t i;
	int r = pp_soft_ask((unsigned int)pp_soft_number(process, "slot"), pp_buf_text(&f->request),
			    "changed", &said);

	if (r == -ENOENT)
		error = "it is gone";
	else if (r)
		error = pp_soft_ask_why(r);
	else
		error = json_string_value(json_object_get(said, "error"));
	if (error) {
		f->failed++;
		(void)pp_complain(f->args, 0, "process %lld (%s): %s",
				  (long long)pp_soft_number(process, "pid"),
				  pp_soft_text(process, "program"), error);
		/* Of who took the request and did not answer: a stopped one reads it later. */
		change_row(f, process, NULL, error, r == -ECONNRESET || r == -ETIMEDOUT);
	}
	json_array_foreach(json_object_get(said, "changed"), i, device)
	{
		if (error)
			break;
		f->changed++;
		change_row(f, process, device, NULL, false);
	}
	json_decref(said);
}

static void change_all(struct faulting *f)
{
	static const struct pp_out_column columns[] = {{"pid", "PID", false},
						       {"program", "PROGRAM", true},
						       {"device", "DEVICE", true},
						       {"faults", "FAULTS", true},
						       {"changed", "CHANGED", true}};
	size_t i;
	json_t *process;

	pp_out_table(f->out, "processes", columns, PP_ARRAY_LEN(columns));
	json_array_foreach(f->processes, i, process) change(f, process);
	pp_out_table_end(f->out);
}

/* ── listing ── */

static unsigned int list_rows(struct faulting *f)
{
	size_t i, j, k;
	json_t *process, *device, *fault;
	unsigned int rows = 0;

	json_array_foreach(f->processes, i, process)
	{
		json_array_foreach(json_object_get(process, "devices"), j, device)
		{
			if (f->device && strcmp(pp_soft_text(device, "name"), f->device) != 0)
				continue;
			json_array_foreach(json_object_get(device, "faults"), k, fault)
			{
				rows++;
				pp_out_cell_i64(f->out, pp_soft_number(process, "pid"));
				pp_out_cell(f->out, pp_soft_text(process, "program"));
				pp_out_cell(f->out, pp_soft_text(device, "name"));
				pp_out_cell(f->out, pp_soft_text(fault, "fault"));
				pp_out_cell_i64(f->out, pp_soft_number(fault, "matched"));
				pp_out_cell_i64(f->out, pp_soft_number(fault, "fired"));
			}
		}
	}
	return rows;
}

static void list(struct faulting *f)
{
	static const struct pp_out_column columns[] = {
		{"pid", "PID", false},	  {"program", "PROGRAM", true},	 {"device", "DEVICE", true},
		{"fault", "FAULT", true}, {"matched", "MATCHED", false}, {"fired", "FIRED", false}};
	unsigned int rows;

	pp_out_table(f->out, "faults", columns, PP_ARRAY_LEN(columns));
	rows = list_rows(f);
	pp_out_table_end(f->out);
	if (!rows && json_array_size(f->processes))
		pp_out_para(f->out, 0, "No fault is set.");
}

int pp_soft_fault(const struct pp_args *args)
{
	struct faulting f = {
		.args = args, .request = PP_BUF(SOFT_SHOW_REQUEST_MAX), .processes = json_array()};
	struct pp_session session = {0};
	int code = read_request(&f);

	if (!code)
		code = pp_session_open_output(args, &session);
	if (!code)
		code = f.processes ? find_processes(&f)
				   : pp_complain(args, PP_EXIT_INTERNAL, "no memory");
	if (!code) {
		f.out = session.out;
		pp_out_limit_width(f.out, TEXT_WIDTH);
		pp_out_document(f.out, "peerpath.soft-fault/1");
		if (f.list)
			list(&f);
		else
			change_all(&f);
		session.answered = true;
		if (!json_array_size(f.processes))
			code = nobody(&f);
		else if (f.failed)
			code = PP_EXIT_BAD;
	}
	json_decref(f.processes);
	pp_buf_done(&f.request);
	return pp_session_close(&session, code ? code : PP_EXIT_PASS);
}
