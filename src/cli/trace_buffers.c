/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dma-buf objects behind the regions: who holds a descriptor, which devices are attached. An
 * object without an attachment is memory that was exported and not, or no longer, registered: no
 * path is claimed from it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/trace_show.h"
#include "base/banned.h"

enum { ROWS_SHOWN = 32 };

/* One object, from bufinfo, from a descriptor's fdinfo, or from both. */
struct object {
	uint64_t inode, size;
	const char *exporter;
	const struct pp_buffer *buffer; /* NULL: bufinfo does not show it, or was not read */
};

static const struct pp_process_buffer *held(const struct pp_process *p, uint64_t inode)
{
	for (size_t i = 0; i < p->n_buffers; i++)
		if (p->buffer[i].inode == inode)
			return &p->buffer[i];
	return NULL;
}

static bool listed(const struct pp_buffers *b, uint64_t inode)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->item[i].inode == inode)
			return true;
	return false;
}

/* Has a process before @last, or an earlier descriptor of it, told of this object? */
static bool told(const struct pp_processes *p, size_t last, size_t descriptor)
{
	uint64_t inode = p->item[last].buffer[descriptor].inode;

	for (size_t i = 0; i < last; i++)
		if (held(&p->item[i], inode))
			return true;
	for (size_t i = 0; i < descriptor; i++)
		if (p->item[last].buffer[i].inode == inode)
			return true;
	return false;
}

static bool wanted(const struct pp_tracing *t, uint64_t inode)
{
	const struct pp_process *p = t->pid ? pp_process_find(&t->look.processes, t->pid) : NULL;

	return !t->pid || (p && inode && held(p, inode));
}

typedef void each_object(void *arg, const struct object *o);

static void objects(const struct pp_tracing *t, each_object *each, void *arg)
{
	const struct pp_buffers *b = &t->look.buffers;
	const struct pp_processes *p = &t->look.processes;

	for (size_t i = 0; i < b->n; i++) {
		const struct object o = {b->item[i].inode, b->item[i].size, b->item[i].exporter,
					 &b->item[i]};

		if (wanted(t, o.inode))
			each(arg, &o);
	}
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->item[i].n_buffers; k++) {
			const struct pp_process_buffer *d = &p->item[i].buffer[k];
			const struct object o = {d->inode, d->has_info ? d->size : 0,
						 d->has_info ? d->exporter : NULL, NULL};

			if (wanted(t, o.inode) && !listed(b, o.inode) && !told(p, i, k))
				each(arg, &o);
		}
}

/* "0000:3b:00.0", "0000:3b:00.0 and 3 more", "none". */
static void attached_text(const struct pp_tracing *t, const struct object *o, char *buf,
			  size_t size)
{
	if (!o->buffer)
		(void)snprintf(buf, size, "unknown");
	else if (!o->buffer->n_attached)
		(void)snprintf(buf, size, "none");
	else if (o->buffer->n_attached == 1)
		(void)snprintf(buf, size, "%s", t->look.buffers.attached[o->buffer->first]);
	else
		(void)snprintf(buf, size, "%s and %" PRIu32 " more",
			       t->look.buffers.attached[o->buffer->first],
			       o->buffer->n_attached - 1);
}

static void holders_text(const struct pp_tracing *t, const struct object *o, char *buf, size_t size)
{
	const struct pp_processes *p = &t->look.processes;
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; o->inode && i < p->n && len < size; i++)
		if (held(&p->item[i], o->inode))
			len += (size_t)snprintf(buf + len, size - len, "%s%s %d", len ? ", " : "",
						p->item[i].comm, p->item[i].pid);
	if (!len)
		(void)snprintf(buf, size, "no open descriptor seen");
}

struct rows {
	const struct pp_tracing *t;
	struct pp_out *out;
	size_t n;
};

static void row(void *arg, const struct object *o)
{
	static const struct pp_out_column columns[] = {
		{NULL, "INODE", false},	  {NULL, "SIZE", false},   {NULL, "EXPORTER", true},
		{NULL, "ATTACHED", true}, {NULL, "HELD BY", true},
	};
	struct rows *r = arg;
	char text[128];

	if (r->n++ >= ROWS_SHOWN)
		return;
	if (r->n == 1) {
		pp_out_heading(r->out, "DMA-BUF objects");
		pp_out_table(r->out, NULL, columns, PP_ARRAY_LEN(columns));
	}
	pp_out_cellf(r->out, "%" PRIu64, o->inode);
	pp_out_cellf(r->out, "%" PRIu64, o->size);
	pp_out_cell(r->out, o->exporter);
	attached_text(r->t, o, text, sizeof(text));
	pp_out_cell(r->out, text);
	holders_text(r->t, o, text, sizeof(text));
	pp_out_cell(r->out, text);
}

void pp_trace_buffers_show(struct pp_out *o, const struct pp_tracing *t)
{
	struct rows r = {.t = t, .out = o};

	objects(t, row, &r);
	if (!r.n)
		return;
	pp_out_table_end(o);
	if (r.n > ROWS_SHOWN)
		pp_out_para(o, 0, "%zu more; -j lists them.", r.n - ROWS_SHOWN);
	pp_out_para(o, 0, "An object that no device is attached to is exported, not registered.");
}

struct document {
	const struct pp_tracing *t;
	struct pp_json *json;
};

static void write_object(void *arg, const struct object *o)
{
	const struct document *d = arg;
	const struct pp_processes *p = &d->t->look.processes;
	struct pp_json *j = d->json;

	pp_json_object(j, NULL);
	pp_json_u64(j, "inode", o->inode);
	pp_json_u64(j, "size_bytes", o->size);
	pp_json_str(j, "exporter", o->exporter);
	if (o->buffer) {
		pp_json_array(j, "attached");
		for (uint32_t i = 0; i < o->buffer->n_attached; i++)
			pp_json_str(j, NULL, d->t->look.buffers.attached[o->buffer->first + i]);
		pp_json_end_array(j);
	} else {
		pp_json_null(j, "attached");
	}
	pp_json_array(j, "held_by");
	for (size_t i = 0; o->inode && i < p->n; i++) {
		const struct pp_process_buffer *b = held(&p->item[i], o->inode);

		if (!b)
			continue;
		pp_json_object(j, NULL);
		pp_json_i64(j, "pid", p->item[i].pid);
		pp_json_str(j, "comm", p->item[i].comm);
		pp_json_i64(j, "fd", b->fd);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
	pp_json_end_object(j);
}

void pp_trace_buffers_write(struct pp_json *j, const char *key, const struct pp_tracing *t)
{
	struct document d = {t, j};

	pp_json_array(j, key);
	objects(t, write_object, &d);
	pp_json_end_array(j);
}
