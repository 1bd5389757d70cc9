/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New records of the kernel's log that a rule of `explain` knows.
 *
 * Where the reading stands is remembered by the boot's id and a sequence number: across a restart
 * no record is told twice and none is left out that the ring still holds. What was logged before
 * the monitor was ever started on this machine is history, not an event; after another boot
 * everything is new.
 *
 * Live: /dev/kmsg stays open. A recording: the recorded answer "kmsg". Rules are loaded when the
 * first line worth a look comes: most machines never need them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "daemon/told.h"
#include "daemon/watch.h"
#include "node/kernel_log.h"
#include "base/banned.h"

enum { RECORD = 8192 + 1, READS = 4096, EVENTS = 2048, BOOT = 48 };

static const char NAME[] = "kernel-log", SEQUENCE[] = "sequence";
static const char BOOT_ID[] = "/proc/sys/kernel/random/boot_id";

struct log {
	bool begun;
	int fd; /* live; -1: cannot be read */
	int error;
	char boot[BOOT];
	uint64_t next; /* the first record that was not told */
	struct pp_told told;
	/* Of this look: */
	unsigned int events, more;
	bool overwritten;
	bool readable;
};

static void boot_of(struct pp_watch_context *at, char ret[BOOT])
{
	if (pp_source_text(at->source, BOOT_ID, ret, BOOT))
		(void)snprintf(ret, BOOT, "unknown");
}

/* "BOOT SEQUENCE": true with where to go on. */
static bool recall(struct pp_watch_context *at, struct log *l, bool *ret_other_boot)
{
	const char *text = pp_watch_recall(at, NAME, SEQUENCE), *blank;
	size_t len = strlen(l->boot);
	uint64_t next;

	*ret_other_boot = false;
	blank = text ? strchr(text, ' ') : NULL;
	if (!blank || pp_parse_u64(blank + 1, 0, UINT64_MAX, &next))
		return false;
	*ret_other_boot = (size_t)(blank - text) != len || strncmp(text, l->boot, len) != 0;
	l->next = *ret_other_boot ? 0 : next;
	return true;
}

static int remember(struct pp_watch_context *at, const struct log *l)
{
	char text[BOOT + 24];

	(void)snprintf(text, sizeof(text), "%s %" PRIu64, l->boot, l->next);
	return pp_watch_remember(at, NAME, SEQUENCE, text);
}

static int tell(struct log *l, struct pp_looks *into, const struct pp_kmsg *m)
{
	char value[PP_LOOK_TEXT], named[BOOT + 24];
	int r;

	enum pp_kmsg_family family = pp_kmsg_classify(m->text);

	if (family == PP_KMSG_OTHER || family == PP_KMSG_DRIVER)
		return 0;
	if (l->events >= EVENTS) {
		l->more++;
		return 0;
	}
	r = pp_told_line(&l->told, m->text, value, sizeof(value));
	/* These say that something is wrong even where no rule knows the number or the address. */
	if (r == -ENOENT && family != PP_KMSG_XID && family != PP_KMSG_IOMMU_FAULT)
		return 0;
	if (r == -ENOENT)
		(void)snprintf(value, sizeof(value), "%.*s", PP_LOOK_TEXT - 1, m->text);
	else if (r)
		return r;
	l->events++;
	(void)snprintf(named, sizeof(named), "%s:%" PRIu64, l->boot, m->sequence);
	return pp_look_event(into, PP_SIGNAL_KERNEL_LOG, *m->device ? m->device : "node", named,
			     m->text, value);
}

/* A record, new or not. */
static int take(struct log *l, struct pp_looks *into, const char *record, size_t len)
{
	struct pp_kmsg m;
	int r;

	if (pp_kmsg_parse(record, len, &m) || m.sequence < l->next)
		return 0;
	r = tell(l, into, &m);
	if (!r)
		l->next = m.sequence + 1;
	return r;
}

static int read_live(struct log *l, struct pp_looks *into)
{
	char record[RECORD];
	int r = 0;

	for (int i = 0; !r && i < READS; i++) {
		ssize_t n = read(l->fd, record, sizeof(record) - 1);

		if (n > 0)
			r = take(l, into, record, (size_t)n);
		else if (n < 0 && errno == EPIPE)
			l->overwritten = true;
		else if (n == 0 || errno != EINTR)
			break;
	}
	return r;
}

static int read_recorded(struct pp_watch_context *at, struct log *l, struct pp_looks *into)
{
	struct pp_answer a;
	const json_t *records;
	int r = pp_kernel_log_ask(at->source, &a);

	if (r)
		return r;
	records = json_object_get(a.data, "records");
	l->readable = a.answered;
	if (!a.answered)
		r = pp_look_unknown(into, PP_SIGNAL_KERNEL_LOG, "node", "%s", a.detail);
	for (size_t i = 0; !r && i < json_array_size(records); i++) {
		const char *text = json_string_value(json_array_get(records, i));

		if (text)
			r = take(l, into, text, strlen(text));
	}
	pp_answer_done(&a);
	return r;
}

/* Behind what there is: the sequence number that the next record will have, or more. */
static void skip_recorded(struct pp_watch_context *at, struct log *l)
{
	struct pp_answer a;
	int64_t last;

	if (pp_kernel_log_ask(at->source, &a))
		return;
	if (!pp_answer_i64(a.data, "last", &last) && last >= 0)
		l->next = (uint64_t)last + 1;
	pp_answer_done(&a);
}

static void begin(struct pp_watch_context *at, struct log *l)
{
	bool other_boot, known;

	l->begun = true;
	boot_of(at, l->boot);
	known = recall(at, l, &other_boot);
	l->fd = at->live ? open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	l->error = at->live && l->fd < 0 ? -errno : 0;
	if (known)
		return;
	if (l->fd >= 0)
		(void)lseek(l->fd, 0, SEEK_END);
	else if (!at->live)
		skip_recorded(at, l);
}

static int look_now(struct pp_watch_context *at, struct log *l, struct pp_looks *into)
{
	int r;

	l->events = l->more = 0;
	l->overwritten = false;
	l->readable = l->fd >= 0;
	if (l->error)
		return pp_look_unknown(into, PP_SIGNAL_KERNEL_LOG, "node",
				       "/dev/kmsg: %s: run as root, or set kernel.dmesg_restrict=0",
				       pp_source_why(l->error));
	r = l->fd >= 0 ? read_live(l, into) : read_recorded(at, l, into);
	if (!r && (l->more || l->overwritten)) {
		char named[BOOT + 32], text[128];

		(void)snprintf(named, sizeof(named), "%s:%" PRIu64 ":more", l->boot, l->next);
		(void)snprintf(text, sizeof(text), "%u further records of this round%s", l->more,
			       l->overwritten ? "; others were overwritten before they were read"
					      : "");
		r = pp_look_event(into, PP_SIGNAL_KERNEL_LOG, "node", named, text,
				  "more records than are told one by one");
	}
	if (!r && l->readable)
		r = pp_looks_add(into, &(struct pp_look){.kind = PP_SIGNAL_KERNEL_LOG,
							 .object = "node",
							 .value = "is followed",
							 .yet = PP_LOOK_WATCHED});
	return r ? r : remember(at, l);
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	struct log *l = pp_watch_state(state, sizeof(*l));
	int r;

	if (l && !l->begun)
		begin(at, l);
	r = l ? look_now(at, l, into) : -ENOMEM;
	return r ? pp_error_set(err, r, "watching the kernel log: %s", pp_source_why(r)) : 0;
}

static void end(void *state)
{
	struct log *l = state;

	if (l) {
		if (l->begun && l->fd >= 0)
			(void)close(l->fd);
		pp_told_done(&l->told);
	}
	free(l);
}

const struct pp_watcher pp_watch_kernel_log = {
	.name = "kernel-log", .period_ms = 5000, .look = look, .end = end};
