/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One window a remote address, shared by the queue pairs that send there and gone with the last.
 */
#include "soft/engine/parts.h"

#include <stdlib.h>

#include "base/banned.h"

static struct soft_engine_window **bucket(struct soft_engine *e, const struct soft_gid *dst)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < sizeof(dst->raw); i++)
		sum = sum * 31 + dst->raw[i];
	return &e->windows[sum % SOFT_WINDOW_BUCKETS];
}

struct soft_window *soft_engine_window_get(struct soft_engine *e, const struct soft_gid *dst,
					   uint64_t limit)
{
	struct soft_engine_window **head = bucket(e, dst), *w;

	for (w = *head; w; w = w->next) {
		if (soft_gid_equal(&w->dst, dst)) {
			w->users++;
			return &w->window;
		}
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	soft_window_init(&w->window, limit);
	w->dst = *dst;
	w->users = 1;
	w->next = *head;
	*head = w;
	return &w->window;
}

void soft_engine_window_put(struct soft_engine *e, struct soft_window *window)
{
	struct soft_engine_window *w = (struct soft_engine_window *)window;

	if (!w || --w->users)
		return;
	for (struct soft_engine_window **at = bucket(e, &w->dst); *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			break;
		}
	}
	free(w);
}
