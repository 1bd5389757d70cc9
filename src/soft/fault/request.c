/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/fault/request.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

static int add(void *arg, const struct soft_fault_spec *spec, struct pp_error *err)
{
	struct soft_fault_request *q = arg;

	if (q->num == SOFT_FAULT_REQUEST_SPECS)
		return pp_error_set(err, -EINVAL, "more than %d faults at once",
				    SOFT_FAULT_REQUEST_SPECS);
	q->specs[q->num++] = *spec;
	return 0;
}

int soft_fault_request_parse(const char *bytes, size_t len, struct soft_fault_request *ret,
			     struct pp_error *err)
{
	static const char head[] = "fault ";
	struct soft_fault_request q = {.clear = false};
	char text[SOFT_FAULT_REQUEST_MAX], *at;
	size_t name;
	int r = 0;

	if (len >= sizeof(text) || !pp_is_text(bytes, len))
		return pp_error_set(err, -EINVAL, "a request that is no text, or too long");
	memcpy(text, bytes, len);
	text[len] = '\0';
	if (strncmp(text, head, sizeof(head) - 1) != 0)
		return pp_error_set(err, -EINVAL, "an unknown request");
	at = text + sizeof(head) - 1;
	name = strcspn(at, " ");
	if (!name || name >= sizeof(q.device) || !at[name])
		return pp_error_set(err, -EINVAL, "a request without a device or without a fault");
	memcpy(q.device, at, name);
	at += name + 1;
	if (!strcmp(at, "clear"))
		q.clear = true;
	else
		r = soft_fault_specs_parse(at, add, &q, err);
	if (!r && !q.clear && !q.num)
		r = pp_error_set(err, -EINVAL, "no fault in the request");
	if (!r)
		*ret = q;
	return r;
}
