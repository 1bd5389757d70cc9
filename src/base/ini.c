/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ini.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/banned.h"

enum { MAX_LINE = 4096, MAX_VALUE = 8192 };

struct parser {
	const char *name;
	pp_ini_handler *handler;
	void *arg;
	struct pp_error *err;
	char section[256];
	char key[128]; /* empty: no key is waiting for its continuation lines */
	struct pp_buf value;
	unsigned int key_line, line;
};

static int refuse(struct parser *p, const char *what)
{
	return pp_error_set(p->err, -EINVAL, "%s:%u: %s", p->name, p->line, what);
}

static int report(struct parser *p, const char *key, const char *value, unsigned int line)
{
	int r = p->handler(p->arg, p->section, key, value, line, p->err);

	return r < 0 ? pp_error_prefix(p->err, "%s:%u", p->name, line) : 0;
}

/* A key is complete when the next line is no continuation. */
static int finish_key(struct parser *p)
{
	int r;

	if (!p->key[0])
		return 0;
	if (p->value.failed == -EFBIG)
		return refuse(p, "value is longer than 8 KiB");
	if (p->value.failed)
		return pp_error_set(p->err, -ENOMEM, "%s:%u: out of memory", p->name, p->line);
	r = report(p, p->key, pp_buf_text(&p->value), p->key_line);
	p->key[0] = '\0';
	pp_buf_reset(&p->value);
	return r;
}

static int section_line(struct parser *p, char *text)
{
	size_t len = strlen(text);
	char *inner;

	if (text[len - 1] != ']')
		return refuse(p, "a section line must end with ']'");
	text[len - 1] = '\0';
	inner = pp_trim(text + 1);
	if (!*inner || strlen(inner) >= sizeof(p->section))
		return refuse(p, "a section needs a name of 1 to 255 bytes");
	memcpy(p->section, inner, strlen(inner) + 1);
	return report(p, NULL, NULL, p->line);
}

static int key_line(struct parser *p, char *text)
{
	char *equals = strchr(text, '='), *key, *value;

	if (!equals)
		return refuse(p, "expected 'key = value' or '[section]'");
	if (!p->section[0])
		return refuse(p, "a key stands before the first [section]");
	*equals = '\0';
	key = pp_trim(text);
	value = pp_trim(equals + 1);
	if (!*key || strlen(key) >= sizeof(p->key))
		return refuse(p, "a key needs 1 to 127 bytes");
	memcpy(p->key, key, strlen(key) + 1);
	p->key_line = p->line;
	pp_buf_str(&p->value, value);
	return 0;
}

static int one_line(struct parser *p, char *text)
{
	bool indented = isspace((unsigned char)text[0]);
	int r;

	text = pp_trim(text);
	if (*text == '#' || *text == ';')
		return 0;
	if (!*text)
		return finish_key(p);
	if (indented && p->key[0]) {
		pp_buf_char(&p->value, ' ');
		pp_buf_str(&p->value, text);
		return 0;
	}
	r = finish_key(p);
	if (r)
		return r;
	return *text == '[' ? section_line(p, text) : key_line(p, text);
}

static int all_lines(struct parser *p, const char *text, size_t len)
{
	char line[MAX_LINE];
	const char *end;
	size_t n;
	int r;

	while (len) {
		end = memchr(text, '\n', len);
		n = end ? (size_t)(end - text) : len;
		p->line++;
		if (n >= sizeof(line))
			return refuse(p, "line is longer than 4095 bytes");
		if (!pp_is_text(text, n))
			return refuse(p, "line holds bytes that are not text");
		memcpy(line, text, n);
		line[n] = '\0';
		r = one_line(p, line);
		if (r)
			return r;
		n += end ? 1 : 0;
		text += n;
		len -= n;
	}
	return finish_key(p);
}

int pp_ini_parse(const char *name, const char *text, size_t len, pp_ini_handler *handler, void *arg,
		 struct pp_error *err)
{
	struct parser p = {.name = name,
			   .handler = handler,
			   .arg = arg,
			   .err = err,
			   .value = PP_BUF(MAX_VALUE)};
	int r = all_lines(&p, text, len);

	pp_buf_done(&p.value);
	return r;
}
