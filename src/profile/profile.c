/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/profile.h"

#include <string.h>

#include "base/banned.h"

bool pp_profile_is_name(const char *word)
{
	size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len && len <= 40 && !word[len] && word[0] != '-';
}

const char *pp_profile_action_name(enum pp_profile_action a)
{
	static const char *const names[] = {"write", "set", "absent", "keep"};

	return names[a];
}

const struct pp_profile_file *pp_profile_file_of(const struct pp_profile *p, const char *path)
{
	for (unsigned int i = 0; i < p->n_files; i++)
		if (!strcmp(p->file[i].path, path))
			return &p->file[i];
	return NULL;
}

/* Its end with the line break, or the end of the text. */
static const char *line_end(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

/* Bytes before the '=' of a line that assigns; 0 for another one. */
static size_t key_of(const char *line, const char *end)
{
	const char *equals = memchr(line, '=', (size_t)(end - line));

	return equals ? (size_t)(equals - line) : 0;
}

static bool sets(const char *set, const char *key, size_t len)
{
	for (const char *end; *set; set = end) {
		end = line_end(set);
		if (key_of(set, end) == len && !memcmp(set, key, len))
			return true;
	}
	return false;
}

void pp_profile_merge(const char *old, const char *set, struct pp_buf *ret)
{
	for (const char *end; *old; old = end) {
		size_t key;

		end = line_end(old);
		key = key_of(old, end);
		if (key && sets(set, old, key))
			continue;
		pp_buf_add(ret, old, (size_t)(end - old));
		if (end[-1] != '\n')
			pp_buf_char(ret, '\n');
	}
	pp_buf_str(ret, set);
}

/* The next word of a line, its length in *ret; "-" and "_" are the same to modprobe. */
static const char *word(const char *at, size_t *ret)
{
	at += strspn(at, " \t");
	*ret = strcspn(at, " \t\r\n");
	return at;
}

static bool is_peermem(const char *text, size_t len)
{
	static const char name[] = "nvidia_peermem";

	for (size_t i = 0; i < len && i < sizeof(name) - 1; i++)
		if (text[i] != name[i] && !(name[i] == '_' && text[i] == '-'))
			return false;
	return len == sizeof(name) - 1;
}

bool pp_profile_loads_peermem(const char *text)
{
	for (; *text; text = line_end(text)) {
		size_t len;
		const char *first = word(text, &len);

		if (is_peermem(first, len))
			return true;
	}
	return false;
}

bool pp_profile_blocks_peermem(const char *text)
{
	for (; *text; text = line_end(text)) {
		size_t verb_len, len;
		const char *verb = word(text, &verb_len), *name = word(verb + verb_len, &len);

		if (!is_peermem(name, len))
			continue;
		if ((verb_len == 9 && !memcmp(verb, "blacklist", 9)) ||
		    (verb_len == 7 && !memcmp(verb, "install", 7)))
			return true;
	}
	return false;
}
