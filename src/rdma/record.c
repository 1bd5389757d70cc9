/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/record.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/banned.h"

enum { PART = 1 << 20, VARIANT = sodium_base64_VARIANT_ORIGINAL };

/* All questions to drivers on the node together. */
#define LIMIT (180 * PP_SECOND)

static int send_part(struct pp_channel *c, const char *bytes, size_t len, size_t left)
{
	size_t size = sodium_base64_ENCODED_LEN(len, VARIANT);
	char *text PP_AUTO_FREE = malloc(size);
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(PP_CHANNEL_MOST);
	struct pp_json j = PP_JSON(&buf, false);
	struct pp_error err;

	if (!text)
		return -ENOMEM;
	(void)sodium_bin2base64(text, size, (const unsigned char *)bytes, len, VARIANT);
	pp_json_object(&j, NULL);
	pp_json_bool(&j, "ok", true);
	pp_json_str(&j, "part", text);
	pp_json_u64(&j, "left", left);
	pp_json_end_object(&j);
	return buf.failed ? buf.failed : pp_channel_send(c, buf.data, buf.len, &err);
}

static int send_failure(struct pp_channel *c, int code)
{
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(4096);
	struct pp_json j = PP_JSON(&buf, false);
	struct pp_error err;

	pp_json_object(&j, NULL);
	pp_json_bool(&j, "ok", false);
	pp_json_str(&j, "text", strerror(-code));
	pp_json_end_object(&j);
	return pp_channel_send(c, pp_buf_text(&buf), buf.len, &err);
}

int pp_record_serve(struct pp_channel *c, const void *arg)
{
	const struct pp_party_service *service = arg;
	char *bytes PP_AUTO_FREE = NULL;
	size_t len = 0, done = 0, part;
	int r = service->record ? service->record(&bytes, &len, service->arg) : -EOPNOTSUPP;

	if (!r && len > PP_PARTY_RECORD)
		r = -EFBIG;
	if (r)
		return send_failure(c, r) ? 1 : 0;
	do {
		part = len - done < PART ? len - done : PART;
		r = send_part(c, bytes ? bytes + done : "", part, len - done - part);
		done += part;
	} while (!r && done < len);
	return r ? 1 : 0;
}

/* @m: one part. Adds it to @buf; *ret_left: bytes that are to follow. */
static int add_part(const json_t *m, struct pp_buf *buf, uint64_t *ret_left, struct pp_error *err)
{
	const char *text = json_string_value(json_object_get(m, "part"));
	const char *why = json_string_value(json_object_get(m, "text"));
	json_int_t left = json_integer_value(json_object_get(m, "left"));
	size_t size, len = 0;
	unsigned char *bytes;
	int r;

	if (!json_is_true(json_object_get(m, "ok"))) {
		(void)pp_error_set(err, -EREMOTEIO, "the node could not: %.200s", why ? why : "?");
		pp_sanitize(err->text, false);
		return -EREMOTEIO;
	}
	if (!text || left < 0 || left > PP_PARTY_RECORD)
		return pp_error_set(err, -EBADMSG, "a part of a record is malformed");
	size = strlen(text) / 4 * 3 + 1;
	bytes = malloc(size);
	if (!bytes)
		return pp_error_set(err, -ENOMEM, "no memory for a record");
	r = sodium_base642bin(bytes, size, text, strlen(text), NULL, &len, NULL, VARIANT);
	if (!r)
		pp_buf_add(buf, bytes, len);
	free(bytes);
	if (r)
		return pp_error_set(err, -EBADMSG, "a part of a record is no base64");
	/* Nothing new, and more to come: that has no end. */
	if (buf->failed || (left && !len))
		return pp_error_set(err, -EFBIG, "a record of more than %d bytes", PP_PARTY_RECORD);
	*ret_left = (uint64_t)left;
	return 0;
}

int pp_record_receive(struct pp_channel *c, bool (*stopped)(void), char **ret, size_t *ret_len,
		      struct pp_error *err)
{
	struct pp_buf buf PP_AUTO_BUF = PP_BUF(PP_PARTY_RECORD);
	pp_ns deadline = pp_clock_monotonic() + LIMIT;
	uint64_t left = 1;
	json_t *m = NULL;
	int r = 0;

	while (left) {
		r = pp_channel_receive(c, deadline, stopped, &m, err);
		if (r)
			return r;
		r = add_part(m, &buf, &left, err);
		json_decref(m);
		if (r)
			return r;
	}
	if (!buf.data)
		pp_buf_str(&buf, "");
	if (!buf.data)
		return pp_error_set(err, -ENOMEM, "no memory for a record");
	*ret_len = buf.len;
	*ret = pp_take(buf.data);
	return 0;
}
