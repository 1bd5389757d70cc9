/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs by number. The low bits are an index that walks on, so that a number is not given
 * again soon: packets of a dead queue pair must not find a new one. A process that takes the slot
 * of a dead one begins anywhere, for the same reason.
 */
#include "soft/engine/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/banned.h"

/* 0 and 1 are the standard's management queue pairs, 0xffffff its multicast. */
enum { FIRST_INDEX = 2, LAST_INDEX = SOFT_QP_INDEXES - 2 };

static uint32_t first_index(void)
{
	uint16_t random = 0;

	/* Without randomness numbers begin where they began before, and peers' retries end soon. */
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	return FIRST_INDEX + random % (LAST_INDEX - FIRST_INDEX + 1);
}

int soft_qp_table_init(struct soft_qp_table *t)
{
	/* calloc of this size is untouched memory: only pages in use cost anything. */
	t->by_index = calloc(SOFT_QP_INDEXES, sizeof(*t->by_index));
	t->wires = calloc(SOFT_QP_INDEXES, sizeof(*t->wires));
	t->next = first_index();
	if (!t->by_index || !t->wires) {
		soft_qp_table_done(t);
		return -ENOMEM;
	}
	return 0;
}

void soft_qp_table_done(struct soft_qp_table *t)
{
	free(t->by_index);
	free(t->wires);
	t->by_index = NULL;
	t->wires = NULL;
}

int soft_qp_table_add(struct soft_qp_table *t, unsigned int slot, struct soft_wire *wire,
		      struct soft_qp *qp)
{
	if (t->used >= LAST_INDEX - FIRST_INDEX)
		return -ENOSPC;
	while (t->by_index[t->next])
		t->next = t->next >= LAST_INDEX ? FIRST_INDEX : t->next + 1;
	qp->num = slot << SOFT_SLOT_SHIFT | t->next;
	t->by_index[t->next] = qp;
	t->wires[t->next] = wire;
	t->next = t->next >= LAST_INDEX ? FIRST_INDEX : t->next + 1;
	t->used++;
	qp->table_next = t->all;
	t->all = qp;
	return 0;
}

void soft_qp_table_remove(struct soft_qp_table *t, struct soft_qp *qp)
{
	uint32_t index = qp->num & (SOFT_QP_INDEXES - 1);

	for (struct soft_qp **at = &t->all; *at; at = &(*at)->table_next) {
		if (*at != qp)
			continue;
		*at = qp->table_next;
		t->by_index[index] = NULL;
		t->wires[index] = NULL;
		t->used--;
		return;
	}
}

struct soft_qp *soft_qp_table_find(const struct soft_qp_table *t, uint32_t num)
{
	struct soft_qp *qp = t->by_index[num & (SOFT_QP_INDEXES - 1)];

	return qp && qp->num == num ? qp : NULL;
}

struct soft_wire *soft_qp_table_wire(const struct soft_qp_table *t, const struct soft_qp *qp)
{
	return t->wires[qp->num & (SOFT_QP_INDEXES - 1)];
}
