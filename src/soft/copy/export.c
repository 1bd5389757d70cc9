/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/export.h"

#include <string.h>
#include <unistd.h>

#include "base/banned.h"

struct soft_export *soft_exports_use(struct soft_exports *x, const struct soft_allocation *a)
{
	for (unsigned int i = 0; i < SOFT_EXPORTS_MAX; i++) {
		struct soft_export *e = &x->at[i];

		/* One that nobody lies in any more is on its way out. */
		if (!e->number || !e->regions || e->of.base != a->base || e->of.len != a->len ||
		    e->of.id != a->id || e->of.kind != a->kind)
			continue;
		e->regions++;
		return e;
	}
	return NULL;
}

struct soft_export *soft_exports_add(struct soft_exports *x, const struct soft_allocation *a)
{
	for (unsigned int i = 0; i < SOFT_EXPORTS_MAX; i++) {
		struct soft_export *e = &x->at[i];

		if (e->number)
			continue;
		/* 2^24 of them at one place before one comes round. */
		x->given++;
		if (x->given == UINT32_MAX / SOFT_EXPORTS_MAX)
			x->given = 1;
		*e = (struct soft_export){
			.number = x->given * SOFT_EXPORTS_MAX + i, .regions = 1, .of = *a};
		return e;
	}
	return NULL;
}

struct soft_export *soft_exports_find(struct soft_exports *x, uint32_t number)
{
	struct soft_export *e = &x->at[soft_export_place(number)];

	return number && e->number == number ? e : NULL;
}

void soft_export_settle(struct soft_export *e)
{
	if (!e->number || e->regions || e->lanes)
		return;
	if (e->of.fd >= 0)
		(void)close(e->of.fd);
	memset(e, 0, sizeof(*e));
}

void soft_exports_done(struct soft_exports *x)
{
	for (unsigned int i = 0; i < SOFT_EXPORTS_MAX; i++)
		if (x->at[i].number && x->at[i].of.fd >= 0)
			(void)close(x->at[i].of.fd);
	memset(x, 0, sizeof(*x));
}
