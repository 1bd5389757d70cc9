/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/soft_ask.h"

#include <errno.h>
#include <string.h>

#include "soft/engine/show.h"
#include "base/banned.h"

enum { ANSWER_MS = 1000 };

static json_t *parse(const struct pp_buf *answer, const char *list)
{
	json_t *said = json_loadb(pp_buf_text(answer), answer->len, JSON_REJECT_DUPLICATES, NULL);

	if (said && json_is_object(said) && json_is_array(json_object_get(said, list)))
		return said;
	json_decref(said);
	return NULL;
}

int pp_soft_ask(unsigned int slot, const char *request, const char *list, json_t **ret)
{
	struct pp_buf PP_AUTO_BUF answer = PP_BUF(SOFT_SHOW_MAX);
	int r = soft_show_ask(slot, request, ANSWER_MS, &answer);
	json_t *said;

	if (r)
		return r == -ECONNREFUSED ? -ENOENT : r;
	said = parse(&answer, list);
	if (!said)
		return -EPROTO;
	*ret = said;
	return 0;
}

const char *pp_soft_ask_why(int error)
{
	return error == -EACCES	      ? "it is another user's"
	       : error == -ECONNRESET ? "it closed without an answer; has it ended?"
	       : error == -ETIMEDOUT  ? "nothing came within a second; is it stopped?"
				      : strerror(-error);
}

const char *pp_soft_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

json_int_t pp_soft_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}
