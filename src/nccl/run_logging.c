/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_logging.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/banned.h"

static const char *const needed[] = {"INIT", "ENV", "NET", "GRAPH", "REG"};

bool pp_nccl_logs_enough(const char *value)
{
	return value && (!strcasecmp(value, "INFO") || !strcasecmp(value, "TRACE"));
}

/* Is @word one of the list at @list, which ends at a comma each? */
static bool lists(const char *list, const char *word)
{
	size_t len;

	for (; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len == strlen(word) && !strncasecmp(list, word, len))
			return true;
	}
	return false;
}

static bool is_needed(const char *word, size_t len)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(needed); i++)
		if (len == strlen(needed[i]) && !strncasecmp(word, needed[i], len))
			return true;
	return false;
}

static void append(char *ret, size_t size, const char *word, size_t len, const char *before)
{
	size_t at = strlen(ret);

	(void)snprintf(ret + at, size - at, "%s%.*s", at > 1 || (at && *ret != '^') ? before : "",
		       (int)len, word);
}

/* What is left out is all but what is needed; when that is nothing, there is nothing to leave out.
 */
static bool without_needed(const char *list, char *ret, size_t size)
{
	bool changed = false;
	size_t len;

	(void)snprintf(ret, size, "^");
	for (; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (is_needed(list, len) || (len == 3 && !strncasecmp(list, "ALL", 3)))
			changed = true;
		else if (len)
			append(ret, size, list, len, ",");
	}
	if (changed && !ret[1])
		(void)snprintf(ret, size, "ALL");
	return changed;
}

bool pp_nccl_log_subsystems(const char *value, char *ret, size_t size)
{
	bool changed = false;

	if (value && *value == '^' && without_needed(value + 1, ret, size))
		return true;
	(void)snprintf(ret, size, "%s", value ? value : "");
	if (value && (*value == '^' || lists(value, "ALL")))
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(needed); i++) {
		if (value && lists(value, needed[i]))
			continue;
		append(ret, size, needed[i], strlen(needed[i]), ",");
		changed = true;
	}
	return changed;
}

bool pp_nccl_log_name(const char *pattern, const char *host, const char *pid, char *ret,
		      size_t size)
{
	size_t at = 0;

	if (!size)
		return false;
	*ret = '\0';
	for (const char *p = pattern; *p; p++) {
		const char *what = *p != '%' ? NULL : p[1] == 'h' ? host : p[1] == 'p' ? pid : NULL;
		size_t len = what ? strlen(what) : 1;

		if (len >= size - at)
			return false;
		memcpy(ret + at, what ? what : p, len);
		at += len;
		ret[at] = '\0';
		p += what != NULL;
	}
	return true;
}
