/* SPDX-License-Identifier: Apache-2.0 */
#include "node/limits.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

/* Next line that starts with @head at or after @text; NULL. */
static const char *find_line(const char *text, const char *head)
{
	size_t len = strlen(head);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, head, len))
			return line + len;
	return NULL;
}

/* Word number @index of a line, blanks between. */
static int word_of(const char *line, unsigned int index, char *buf, size_t size)
{
	size_t len;

	for (;; line += len) {
		line += strspn(line, " \t");
		len = strcspn(line, " \t\n");
		if (!len)
			return -ENOENT;
		if (!index--)
			break;
	}
	if (len >= size)
		return -ENAMETOOLONG;
	memcpy(buf, line, len);
	buf[len] = '\0';
	return 0;
}

static int limit_of(const char *line, unsigned int index, int64_t *ret)
{
	char word[24];
	int r = word_of(line, index, word, sizeof(word));

	if (r)
		return -EBADMSG;
	if (!strcmp(word, "unlimited")) {
		*ret = -1;
		return 0;
	}
	return pp_parse_i64(word, 0, INT64_MAX, ret) ? -EBADMSG : 0;
}

int pp_limits_memlock(const char *text, int64_t *ret_soft, int64_t *ret_hard)
{
	const char *line = find_line(text, "Max locked memory");
	int64_t soft, hard;
	int r;

	if (!line)
		return -ENOENT;
	r = limit_of(line, 0, &soft);
	if (!r)
		r = limit_of(line, 1, &hard);
	if (r)
		return r;
	*ret_soft = soft;
	*ret_hard = hard;
	return 0;
}

int pp_limits_status_word(const char *text, const char *key, unsigned int index, char *buf,
			  size_t size)
{
	for (const char *line = text; (line = find_line(line, key)); line += strcspn(line, "\n"))
		if (line[0] == ':')
			return word_of(line + 1, index, buf, size);
	return -ENOENT;
}

/* Is @word one of the comma-separated words of [list, end)? */
static bool lists(const char *list, const char *end, const char *word)
{
	size_t len = strlen(word), n;

	for (; list < end; list += n + 1) {
		n = strcspn(list, ",:");
		if (n == len && !memcmp(list, word, len))
			return true;
	}
	return false;
}

/* Lines are "id:controllers:path"; version 2 has id 0 and no controllers. */
int pp_limits_cgroup(const char *text, const char *controller, char *buf, size_t size)
{
	const char *end, *list, *path;

	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		list = memchr(line, ':', (size_t)(end - line));
		path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
		if (!path)
			continue;
		if (*controller ? !lists(list + 1, path, controller)
				: line[0] != '0' || path != list + 1)
			continue;
		path++;
		if ((size_t)(end - path) >= size)
			return -ENAMETOOLONG;
		memcpy(buf, path, (size_t)(end - path));
		buf[end - path] = '\0';
		return 0;
	}
	return -ENOENT;
}

const char *pp_limits_cgroup_manager(const char *text)
{
	/* Kubernetes first: its pods are made by one of the others. */
	static const struct {
		const char *mark, *manager;
	} marks[] = {
		{"/kubepods", "kubernetes"},
		{"kubepods-", "kubernetes"},
		{"kubepods.slice", "kubernetes"},
		{"/docker/", "docker"},
		{"/docker-", "docker"},
		{"libpod", "podman"},
		{"/lxc/", "lxc"},
		{"lxc.payload", "lxc"},
		{"cri-containerd", "containerd"},
		{"/crio-", "cri-o"},
		{"systemd-nspawn@", "systemd-nspawn"},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(marks); i++)
		if (strstr(text, marks[i].mark))
			return marks[i].manager;
	return NULL;
}
