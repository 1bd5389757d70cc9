/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /push: a bundle, a document, or documents one a line. Refused before its body whatever can
 * be: without the token, too long, of unknown length.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/parse.h"
#include "store/serve_parts.h"
#include "base/banned.h"

static const char BEARER[] = "Bearer ";

/* Digests are of one length: comparing them tells nothing of how much was right. */
static bool knows_token(const struct pp_serve *s, struct MHD_Connection *c)
{
	const char *given = pp_web.lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
	uint8_t hash[crypto_hash_sha256_BYTES];

	if (!s->options.token || !given || strncmp(given, BEARER, sizeof(BEARER) - 1) != 0)
		return false;
	given += sizeof(BEARER) - 1;
	(void)crypto_hash_sha256(hash, (const unsigned char *)given, strlen(given));
	return !sodium_memcmp(hash, s->token, sizeof(hash));
}

static enum MHD_Result refuse(struct MHD_Connection *c, struct pp_serve_request *r,
			      unsigned int status, const char *why)
{
	r->answered = true;
	return pp_serve_refuse(c, status, why);
}

/* Nameless: what is left of a push that breaks off is nothing. */
static int make_file(void)
{
	const char *where = secure_getenv("TMPDIR");

	return open(where && *where == '/' ? where : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

enum MHD_Result pp_serve_push_begin(struct pp_serve *s, struct MHD_Connection *c,
				    struct pp_serve_request *r)
{
	const char *length = pp_web.lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
	uint64_t bytes;

	if (!knows_token(s, c))
		return refuse(c, r, MHD_HTTP_UNAUTHORIZED,
			      s->options.token ? "a push needs the token"
					       : "nobody may push here: no token was set");
	if (!length || pp_parse_u64(length, 0, UINT64_MAX, &bytes))
		return refuse(c, r, MHD_HTTP_LENGTH_REQUIRED, "a push says how long it is");
	if (bytes > s->options.max_push)
		return refuse(c, r, MHD_HTTP_CONTENT_TOO_LARGE, "larger than a push may be");
	r->file = make_file();
	if (r->file < 0)
		return refuse(c, r, MHD_HTTP_INSUFFICIENT_STORAGE, "no room for it here");
	return MHD_YES;
}

static void fail(struct pp_serve_request *r, unsigned int status, const char *why)
{
	if (!r->failed)
		(void)snprintf(r->why, sizeof(r->why), "%s", why);
	r->failed = r->failed ? r->failed : status;
}

void pp_serve_push_more(struct pp_serve *s, struct pp_serve_request *r, const char *data,
			size_t len)
{
	r->bytes += len;
	if (r->bytes > s->options.max_push)
		fail(r, MHD_HTTP_CONTENT_TOO_LARGE, "larger than a push may be");
	if (!r->failed && pp_fd_write(r->file, data, len))
		fail(r, MHD_HTTP_INSUFFICIENT_STORAGE, "no room for it here");
}

static unsigned int status_of(int error, const struct pp_fleet_added *added)
{
	if (added->of_input)
		return MHD_HTTP_UNPROCESSABLE_CONTENT;
	return error == -ENOSPC ? MHD_HTTP_INSUFFICIENT_STORAGE : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static enum MHD_Result accepted(struct MHD_Connection *c, const struct pp_fleet_added *added)
{
	struct MHD_Response *response;
	char text[160];
	int n = snprintf(text, sizeof(text),
			 "{\"schema\": \"peerpath.fleet/1\", \"view\": \"push\", \"results\": %zu, "
			 "\"known\": %zu}\n",
			 added->results, added->known);

	response = pp_web.create_response_from_buffer((size_t)n, text, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	(void)pp_web.add_response_header(response, "Content-Type", "application/json");
	return pp_serve_answer(c, MHD_HTTP_OK, response);
}

enum MHD_Result pp_serve_push_end(struct pp_serve *s, struct MHD_Connection *c,
				  struct pp_serve_request *r)
{
	struct pp_fleet_added added = {0};
	struct pp_error err = {0};
	char path[32];
	int result;

	if (r->failed)
		return pp_serve_refuse(c, r->failed, r->why);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", r->file);
	result = pp_fleet_renew(s->sql, &err);
	if (!result)
		result = pp_fleet_add_file(s->sql, path, &added, &err);
	if (result) {
		/* Its file has no name that would say anything to whoever pushed it. */
		pp_error_drop_name(&err, path);
		if (added.of_input)
			(void)pp_error_prefix(&err, "what was pushed");
		return pp_serve_refuse(c, status_of(result, &added), err.text);
	}
	return accepted(c, &added);
}
