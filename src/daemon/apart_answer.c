/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/apart_answer.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "daemon/watch.h"
#include "base/banned.h"

/* A piece is one byte of kind, then numbers as they are in memory (both ends are one program), then
 * texts: four bytes of length, the text, and a NUL behind it. */
enum { LOOK = 'l', MARK = 'm', LEFT_OUT = 'o' };
static const uint32_t NONE = UINT32_MAX;

struct cursor {
	const char *at;
	size_t left;
	bool bad;
};

static void put_text(struct pp_buf *to, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	uint32_t n = text && len < NONE ? (uint32_t)len : NONE;

	pp_buf_add(to, &n, sizeof(n));
	if (n != NONE)
		pp_buf_add(to, text, len + 1);
}

void pp_apart_put_look(struct pp_buf *to, const struct pp_look *look)
{
	uint32_t kind = look->kind, yet = look->yet;

	pp_buf_char(to, LOOK);
	pp_buf_add(to, &kind, sizeof(kind));
	pp_buf_add(to, &yet, sizeof(yet));
	pp_buf_add(to, &look->number, sizeof(look->number));
	put_text(to, look->object);
	put_text(to, look->value);
	put_text(to, look->unknown);
	put_text(to, look->raw);
	put_text(to, look->named);
}

void pp_apart_put_mark(struct pp_buf *to, const char *watcher, const char *key, const char *value)
{
	pp_buf_char(to, MARK);
	put_text(to, watcher);
	put_text(to, key);
	put_text(to, value);
}

void pp_apart_put_left_out(struct pp_buf *to, size_t n)
{
	uint64_t number = n;

	pp_buf_char(to, LEFT_OUT);
	pp_buf_add(to, &number, sizeof(number));
}

static void take_bytes(struct cursor *c, void *to, size_t len)
{
	c->bad = c->bad || c->left < len;
	if (c->bad) {
		(void)memset(to, 0, len);
		return;
	}
	(void)memcpy(to, c->at, len);
	c->at += len;
	c->left -= len;
}

/* Where it lies; NULL: there is none. */
static const char *take_text(struct cursor *c)
{
	const char *text = c->at;
	uint32_t n;

	take_bytes(c, &n, sizeof(n));
	if (c->bad || n == NONE)
		return NULL;
	text += sizeof(n);
	c->bad = n >= c->left || memchr(text, '\0', (size_t)n + 1) != text + n;
	if (c->bad)
		return NULL;
	c->at += (size_t)n + 1;
	c->left -= (size_t)n + 1;
	return text;
}

static int take_look(struct cursor *c, struct pp_looks *into)
{
	struct pp_look look = {0};
	uint32_t kind, yet;

	take_bytes(c, &kind, sizeof(kind));
	take_bytes(c, &yet, sizeof(yet));
	take_bytes(c, &look.number, sizeof(look.number));
	look.object = take_text(c);
	look.value = take_text(c);
	look.unknown = take_text(c);
	look.raw = take_text(c);
	look.named = take_text(c);
	c->bad = c->bad || kind >= PP_SIGNAL_KINDS || yet > PP_LOOK_THERE || !look.object;
	look.kind = (enum pp_signal_kind)kind;
	look.yet = (enum pp_look_yet)yet;
	return c->bad || !into ? 0 : pp_looks_add(into, &look);
}

static int take_mark(struct cursor *c, const struct pp_watch_context *at)
{
	const char *watcher = take_text(c), *key = take_text(c), *value = take_text(c);

	c->bad = c->bad || !watcher || !key || !value;
	return c->bad || !at ? 0 : pp_watch_remember(at, watcher, key, value);
}

static void take_left_out(struct cursor *c, struct pp_looks *into)
{
	uint64_t n;

	take_bytes(c, &n, sizeof(n));
	if (into && !c->bad && __builtin_add_overflow(into->left_out, n, &into->left_out))
		into->left_out = SIZE_MAX;
}

/* Without @at and @into it is only looked at. */
static int walk(const char *bytes, size_t len, const struct pp_watch_context *at,
		struct pp_looks *into)
{
	struct cursor c = {bytes, len, false};
	int r = 0;

	while (!r && c.left && !c.bad) {
		char kind;

		take_bytes(&c, &kind, 1);
		if (kind == LOOK)
			r = take_look(&c, into);
		else if (kind == MARK)
			r = take_mark(&c, at);
		else if (kind == LEFT_OUT)
			take_left_out(&c, into);
		else
			c.bad = true;
	}
	return c.bad ? -EBADMSG : r;
}

int pp_apart_take(const char *bytes, size_t len, const struct pp_watch_context *at,
		  struct pp_looks *into)
{
	int r = walk(bytes, len, NULL, NULL);

	return r ? r : walk(bytes, len, at, into);
}
