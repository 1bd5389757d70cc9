/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question "dma-buf": the text of bufinfo, read in a helper, since the kernel takes every
 * object's lock while it writes it.
 *
 * Data: {"text", "cut": bool}, or {"errno", "debugfs": is it mounted at all?}
 */
#include "trace/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "trace/surface_report.h"
#include "base/banned.h"

enum { ESCAPED_MAX = 15 << 20, MOUNTS_MAX = 1 << 20 }; /* a helper's answer: at most 16 MiB */

static const char BUFINFO[] = "/sys/kernel/debug/dma_buf/bufinfo";
static const char MOUNTS[] = "/proc/self/mounts", MOUNTED[] = " /sys/kernel/debug debugfs ";

/*
 * Names in the text are what programs wrote: what is not ASCII becomes '?', and what would not fit
 * into an answer once it is escaped is cut.
 */
static bool fit(char *text, size_t len)
{
	size_t escaped = 0;

	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] >= 0x7f || !text[i])
			text[i] = '?';
		escaped += strchr("\n\t\"\\", text[i]) ? 2 : 1;
		if (escaped > ESCAPED_MAX) {
			text[i] = '\0';
			return false;
		}
	}
	text[len] = '\0';
	pp_sanitize(text, true);
	return true;
}

static void write_error(struct pp_json *data, struct pp_source *s, int error)
{
	char *PP_AUTO_FREE mounts = malloc(MOUNTS_MAX + 1);
	size_t len = 0;

	pp_json_i64(data, "errno", -error);
	if (error != -ENOENT || !mounts || pp_source_read(s, MOUNTS, mounts, MOUNTS_MAX, &len))
		return;
	mounts[len] = '\0';
	pp_json_bool(data, "debugfs", strstr(mounts, MOUNTED) != NULL);
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	/* Of the parent's source only what is const there is used: a helper has its own copy. */
	struct pp_source *const *source = arg;
	char *PP_AUTO_FREE text = malloc(PP_BUFFER_TEXT_MAX + 1);
	size_t len = 0;
	int r;

	if (!text)
		return pp_error_set(err, -ENOMEM, "out of memory");
	pp_ask_doing("reading /sys/kernel/debug/dma_buf/bufinfo");
	r = pp_source_read(*source, BUFINFO, text, PP_BUFFER_TEXT_MAX, &len);
	if (r && r != -EFBIG) {
		write_error(data, *source, r);
		return 0;
	}
	pp_json_bool(data, "cut", !fit(text, len) || r == -EFBIG);
	pp_json_str(data, "text", text);
	return 0;
}

int pp_buffers_ask(struct pp_source *s, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "dma-buf", .run = run, .arg = &s};

	return pp_ask(s, &q, ret);
}

static void read_error(const struct pp_answer *a, struct pp_surface_report *r)
{
	int64_t error = EIO;
	bool mounted = true;

	(void)pp_answer_i64(a->data, "errno", &error);
	(void)pp_answer_bool(a->data, "debugfs", &mounted);
	if (error <= 0 || error > 4095)
		error = EIO;
	if (error == ENOENT && !mounted)
		pp_surface_set(r, PP_SURFACE_ABSENT, "debugfs is not mounted on /sys/kernel/debug");
	else if (error == ENOENT)
		pp_surface_set(r, PP_SURFACE_ABSENT, "this kernel has no %s", BUFINFO);
	else
		pp_surface_set(r, pp_surface_of_error((int)-error), "%s: %s", BUFINFO,
			       pp_source_why((int)-error));
}

int pp_buffers_read(const struct pp_answer *a, struct pp_buffers *ret)
{
	const json_t *text = json_object_get(a->data, "text");
	bool cut = false;
	int r;

	*ret = (struct pp_buffers){0};
	if (!pp_surface_answered(&ret->report, a))
		return 0;
	if (!json_is_string(text)) {
		read_error(a, &ret->report);
		return 0;
	}
	r = pp_buffers_parse(json_string_value(text), json_string_length(text), ret);
	if (r == -EBADMSG)
		pp_surface_set(&ret->report, PP_SURFACE_CUT, "%s has a grammar that is not known",
			       BUFINFO);
	(void)pp_answer_bool(a->data, "cut", &cut);
	if (cut)
		pp_surface_cut(&ret->report, "%s is longer than what is taken", BUFINFO);
	return r == -EBADMSG ? 0 : r;
}
