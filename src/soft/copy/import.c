/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/import.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "soft/copy/shelf.h"

#include "base/banned.h"

static void answer(struct soft_shelf_view *view, uint32_t number, int what)
{
	if (view->answer)
		view->answer(view->answer_arg, number, what);
}

static void import_free(struct soft_import *i)
{
	i->view->imports[soft_export_place(i->number)] = NULL;
	if (i->mapping.of.fd >= 0)
		(void)close(i->mapping.of.fd);
	free(i);
}

static void released(struct soft_copy *copy)
{
	struct soft_import *i = (struct soft_import *)copy;
	struct soft_shelf_view *view = i->view;
	uint32_t number = i->number;

	import_free(i);
	answer(view, number, SOFT_IMPORT_GONE);
	soft_shelf_view_put(view);
}

static void release(struct soft_import *i)
{
	i->state = SOFT_IMPORT_LEAVES;
	soft_shelf_view_get(i->view);
	i->ask.what = SOFT_COPY_UNMAP;
	i->ask.done = released;
	if (i->own)
		released(&i->ask);
	else
		soft_copy_ask(i->copier, &i->ask);
}

static void imported(struct soft_copy *copy)
{
	struct soft_import *i = (struct soft_import *)copy;
	struct soft_shelf_view *view = i->view;
	uint32_t number = i->number;
	bool withdrawn = i->withdrawn;

	/* The mapping holds the memory; the descriptor has done. */
	if (i->mapping.of.fd >= 0)
		(void)close(i->mapping.of.fd);
	i->mapping.of.fd = -1;
	if (copy->rc) {
		int rc = copy->rc;

		import_free(i);
		answer(view, number, withdrawn ? SOFT_IMPORT_GONE : rc);
	} else {
		i->state = SOFT_IMPORT_HELD;
		if (withdrawn)
			release(i);
		else
			answer(view, number, 0);
	}
	soft_shelf_view_put(view);
}

int soft_import_begin(struct soft_shelf_view *view, struct soft_copier *copier, uint32_t number,
		      const struct soft_mapping *mapping, bool own)
{
	struct soft_import **place = &view->imports[soft_export_place(number)];
	struct soft_import *i = *place ? NULL : calloc(1, sizeof(*i));

	if (!i) {
		if (mapping->of.fd >= 0)
			(void)close(mapping->of.fd);
		return *place ? -EEXIST : -ENOMEM;
	}
	*place = i;
	i->mapping = *mapping;
	i->view = view;
	i->copier = copier;
	i->number = number;
	i->own = own;
	i->allocated = own && mapping->of.kind == SOFT_EXPORT_IPC;
	i->ask.what = SOFT_COPY_MAP;
	i->ask.mapping = &i->mapping;
	i->ask.to_device = true;
	i->ask.done = imported;
	soft_shelf_view_get(view);
	if (own)
		imported(&i->ask);
	else
		soft_copy_ask(copier, &i->ask);
	return 0;
}

void soft_import_withdraw(struct soft_shelf_view *view, uint32_t number)
{
	struct soft_import *i = view->imports[soft_export_place(number)];

	if (!i || i->number != number) {
		answer(view, number, SOFT_IMPORT_GONE);
		return;
	}
	i->withdrawn = true;
	if (i->state == SOFT_IMPORT_HELD && !i->users)
		release(i);
}

void soft_imports_release(struct soft_shelf_view *view)
{
	for (unsigned int n = 0; n < SOFT_EXPORTS_MAX; n++) {
		struct soft_import *i = view->imports[n];

		if (i && i->state == SOFT_IMPORT_HELD)
			release(i);
	}
}

int soft_import_lend(struct soft_shelf_view *view, const struct soft_direct *d, uint32_t skip,
		     uint32_t len, const struct soft_copier *copier, struct soft_loan *ret)
{
	struct soft_import *i = view->imports[soft_export_place(d->export)];
	uint64_t from, end;
	struct soft_loan loan = {.view = view, .import = i, .generation = d->generation};

	if (!soft_shelf_loan_of(d->unit, &loan.unit) || !d->generation)
		return -ENOENT;
	if (!soft_loan_good(&loan))
		return -ESTALE;
	if (!i || i->number != d->export || i->state != SOFT_IMPORT_HELD || i->withdrawn ||
	    __builtin_add_overflow(d->offset, skip, &from) ||
	    __builtin_add_overflow(from, len, &end) || end > i->mapping.of.len)
		return -ENOENT;
	if (copier && copier->device != i->copier->device)
		return -EXDEV;
	/* An address for the copier alone. */
	loan.at = (const uint8_t *)(uintptr_t)(i->mapping.at + from);
	*ret = loan;
	return 0;
}

void soft_import_get(struct soft_import *i)
{
	soft_shelf_view_get(i->view);
	i->users++;
}

void soft_import_put(struct soft_import *i)
{
	struct soft_shelf_view *view = i->view;

	if (!--i->users && i->withdrawn && i->state == SOFT_IMPORT_HELD)
		release(i);
	soft_shelf_view_put(view);
}
