/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts of a scrubbed capture are collected again, from the scrubbed record: so they are what
 * a replay will give, and nothing of the original can slip in.
 */
#include "bundle/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "bundle/capture_scrub.h"
#include "base/banned.h"

enum { FACTS_MAX = 32 << 20 };

static const char HOSTNAME[] = "/proc/sys/kernel/hostname";

void pp_capture_names(struct pp_source *src)
{
	/* The name labels the bundle; all three teach the scrubber what to look for. */
	static const char *const paths[] = {HOSTNAME, "/proc/sys/kernel/domainname",
					    "/etc/hostname"};
	char text[256];

	for (size_t i = 0; i < PP_ARRAY_LEN(paths); i++)
		(void)pp_source_text(src, paths[i], text, sizeof(text));
}

/* A label fit for a file name; "node" when the host's name is not known. */
static void host_label(const struct pp_record *r, char *label, size_t size)
{
	const struct pp_entry *e = pp_record_get(r, HOSTNAME);
	const char *p = e && e->kind == PP_ENTRY_FILE ? e->content : "";
	size_t n = 0;

	for (; *p && *p != '\n' && n + 1 < size; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			     (*p >= '0' && *p <= '9') || *p == '-' || (*p == '.' && n);

		label[n++] = plain ? *p : '_';
	}
	label[n] = '\0';
	if (!n || !strcmp(label, "(none)"))
		(void)snprintf(label, size, "node");
}

static int facts_text(const struct pp_node *node, struct pp_buf *out, struct pp_error *err)
{
	struct pp_json j = PP_JSON(out, true);
	char when[32];

	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", "peerpath.facts/1");
	pp_json_str(&j, "version", PEERPATH_VERSION);
	pp_json_str(&j, "collected",
		    node->started ? pp_clock_format(node->started, when, sizeof(when)) : NULL);
	pp_node_write_facts(&j, "facts", node);
	pp_json_end_object(&j);
	return out->failed ? pp_error_set(err, out->failed, "facts over %d MiB", FACTS_MAX >> 20)
			   : 0;
}

static int write_bundle(const struct pp_node *node, struct pp_record *record,
			const struct pp_capture_options *o, struct pp_captured *to,
			struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF facts = PP_BUF(FACTS_MAX);
	struct pp_bundle_file *PP_AUTO_FREE files = calloc(1 + o->n_files, sizeof(*files));
	struct pp_bundle_content content = {.record = record, .files = files, .lost = o->lost};
	const struct pp_bundle_options options = {.host = to->host,
						  .scrubbed = o->scrub,
						  .force = o->force,
						  .created = node->started,
						  .stopped = o->stopped};
	int r = files ? facts_text(node, &facts, err) : pp_error_set(err, -ENOMEM, "no memory");

	if (r)
		return r;
	files[0] = (struct pp_bundle_file){"facts.json", facts.data, facts.len};
	if (o->n_files)
		memcpy(files + 1, o->files, o->n_files * sizeof(*files));
	content.n_files = 1 + o->n_files;
	r = pp_bundle_write(to->path, &content, &options, &to->written, err);
	if (!r)
		to->left_out = to->written.dropped + pp_record_cut(record) + o->lost;
	return r;
}

/* Collects from a scrubbed record, which is taken, and writes. */
static int write_collected(struct pp_record *record, pp_ns seen, const struct pp_capture_options *o,
			   struct pp_captured *to, struct pp_error *err)
{
	struct pp_source *src = NULL;
	struct pp_node *node = NULL;
	int r;

	host_label(record, to->host, sizeof(to->host));
	r = pp_source_replay_record(record, &src, err); /* takes it, also on failure */
	if (!r) {
		pp_source_set_time(src, seen);
		r = pp_node_collect(src, &node, err);
	}
	if (!r)
		r = write_bundle(node, record, o, to, err);
	pp_node_free(node);
	pp_source_free(src);
	return r;
}

/* The capture of another node, which is one of the files. */
static int write_nested(struct pp_record *record, pp_ns seen, const char *path,
			struct pp_error *err)
{
	const struct pp_capture_options o = {.scrub = true, .force = true};
	struct pp_captured to = {.host = "node"};

	(void)snprintf(to.path, sizeof(to.path), "%s", path);
	return write_collected(record, seen, &o, &to, err);
}

static int write_scrubbed(pp_ns seen, struct pp_record *record, const struct pp_capture_options *o,
			  struct pp_captured *to, struct pp_error *err)
{
	struct pp_capture_scrubbed s;
	struct pp_capture_options options = *o;
	int r = pp_capture_scrub(record, o->files, o->n_files, write_nested, &s, err);

	if (r)
		return r;
	options.files = s.file;
	options.n_files = s.n_files;
	options.lost += s.lost;
	to->scrubbed = s.counts;
	r = write_collected(pp_take(s.record), seen, &options, to, err);
	pp_capture_scrubbed_done(&s);
	return r;
}

int pp_capture_check(const struct pp_capture_options *options, struct pp_error *err)
{
	/* The default name is not known yet; its directory is. */
	return pp_bundle_check(options->path ? options->path : "peerpath-HOST-TIME.tar.zst",
			       options->force, err);
}

int pp_capture_write(const struct pp_node *node, struct pp_record *record,
		     const struct pp_capture_options *options, struct pp_captured *ret,
		     struct pp_error *err)
{
	struct pp_captured done = {.host = "node"};
	char stamp[32];
	int n, r;

	if (!options->scrub)
		host_label(record, done.host, sizeof(done.host));
	if (options->path)
		n = snprintf(done.path, sizeof(done.path), "%s", options->path);
	else
		n = snprintf(done.path, sizeof(done.path), "peerpath-%s-%s.tar.zst", done.host,
			     pp_clock_stamp(node->started ? node->started : pp_clock_wall(), stamp,
					    sizeof(stamp)));
	if (n < 0 || (size_t)n >= sizeof(done.path))
		return pp_error_set(err, -ENAMETOOLONG, "the name of the bundle is too long");
	r = options->scrub ? write_scrubbed(node->started, record, options, &done, err)
			   : write_bundle(node, record, options, &done, err);
	if (!r)
		*ret = done;
	return r;
}
