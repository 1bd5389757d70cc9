/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations of GPUs shown by one process and mapped by another: one export for each, whatever
 * lies in it; what a reader refuses of a sender that says anything; and that nothing is let go
 * while a copy reads there, nor kept when its owner takes it back.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "soft/copy/import.h"
#include "soft/copy/shelf.h"

enum { LEN = 10 << 20 };

static struct soft_allocation allocation(uint64_t base, uint64_t id, int fd)
{
	return (struct soft_allocation){
		.kind = SOFT_EXPORT_VMM, .base = base, .len = LEN, .id = id, .fd = fd};
}

static void exports(void **state)
{
	static struct soft_exports x;
	struct soft_allocation a = allocation(0x7f0000000000, 1, open("/dev/null", O_RDONLY)),
			       b = allocation(0x7f0000000000, 2, -1), longer = a, other = a;
	struct soft_export *one, *two;
	uint32_t number;
	int fd = a.fd;

	(void)state;
	longer.len++;
	other.kind = SOFT_EXPORT_IPC;
	assert_null(soft_exports_use(&x, &a));
	one = soft_exports_add(&x, &a);
	assert_non_null(one);
	for (int i = 0; i < 1000; i++)
		assert_ptr_equal(soft_exports_use(&x, &a), one);
	assert_int_equal(one->regions, 1001);
	/* The same place is not enough. */
	assert_null(soft_exports_use(&x, &b));
	assert_null(soft_exports_use(&x, &longer));
	assert_null(soft_exports_use(&x, &other));
	number = one->number;
	assert_ptr_equal(soft_exports_find(&x, number), one);
	assert_null(soft_exports_find(&x, number + SOFT_EXPORTS_MAX));
	assert_null(soft_exports_find(&x, 0));
	/* It stays as long as a region lies in it, or a peer has it; nobody comes to it then. */
	one->regions = 0;
	one->lanes = 1;
	soft_export_settle(one);
	assert_ptr_equal(soft_exports_find(&x, number), one);
	assert_null(soft_exports_use(&x, &a));
	two = soft_exports_add(&x, &b);
	assert_ptr_not_equal(two, one);
	one->lanes = 0;
	soft_export_settle(one);
	assert_null(soft_exports_find(&x, number));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	/* Its number is not given again, and there are so many at most. */
	for (unsigned int i = 1; i < SOFT_EXPORTS_MAX; i++) {
		one = soft_exports_add(&x, &b);
		assert_non_null(one);
		assert_int_not_equal(one->number, number);
		assert_ptr_equal(soft_exports_find(&x, one->number), one);
	}
	assert_null(soft_exports_add(&x, &b));
	soft_exports_done(&x);
}

static struct soft_copy *asked;

static void keep(struct soft_copier *copier, struct soft_copy *copy)
{
	(void)copier;
	assert_null(asked);
	asked = copy;
}

static void reply(enum soft_copy_what what, int rc)
{
	struct soft_copy *copy = asked;

	assert_non_null(copy);
	assert_int_equal(copy->what, what);
	if (what == SOFT_COPY_MAP && !rc)
		copy->mapping->at = 0x500000000000;
	asked = NULL;
	soft_copy_done(copy, rc);
}

static struct {
	unsigned int times;
	uint32_t number;
	int what;
} said;

static void on_answer(void *arg, uint32_t number, int what)
{
	(void)arg;
	said.times++;
	said.number = number;
	said.what = what;
}

static void expect_said(unsigned int times, uint32_t number, int what)
{
	assert_int_equal(said.times, times);
	assert_int_equal(said.number, number);
	assert_int_equal(said.what, what);
	said.times = 0;
}

static int device, elsewhere;
static struct soft_copier copier = {.start = keep, .device = &device},
			  allocated = {.start = keep, .device = &device},
			  other = {.start = keep, .device = &elsewhere};

struct both {
	struct soft_shelf shelf;
	struct soft_shelf_view *view;
};

static void set_up(struct both *s)
{
	assert_int_equal(soft_shelf_make(&s->shelf), 0);
	assert_int_equal(soft_shelf_look(s->shelf.fd, (uintptr_t)s->shelf.bytes, &s->view), 0);
	s->view->answer = on_answer;
	said.times = 0;
}

static struct soft_mapping mapping(void)
{
	return (struct soft_mapping){
		.of = {.kind = SOFT_EXPORT_VMM, .len = LEN, .fd = open("/dev/null", O_RDONLY)}};
}

/* Mapped, and its descriptor closed. */
static void begin(struct both *s, uint32_t number)
{
	struct soft_mapping m = mapping();

	assert_int_equal(soft_import_begin(s->view, &copier, number, &m, false), 0);
	reply(SOFT_COPY_MAP, 0);
	assert_int_equal(fcntl(m.of.fd, F_GETFD), -1);
	expect_said(1, number, 0);
}

static void lending(void **state)
{
	struct soft_direct d = {.export = 0x105, .offset = 4096};
	struct soft_loan loan = {0};
	struct soft_mapping m;
	struct both s;

	(void)state;
	set_up(&s);
	d.unit = soft_shelf_loan_take(&s.shelf);
	d.generation = soft_shelf_loan_generation(&s.shelf, d.unit);
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), -ENOENT);
	begin(&s, 0x105);
	assert_int_equal(soft_import_lend(s.view, &d, 8, 64, &copier, &loan), 0);
	assert_int_equal((uintptr_t)loan.at, 0x500000000000 + 4096 + 8);
	assert_false(loan.import->allocated);
	assert_true(soft_loan_good(&loan));
	assert_int_equal(soft_import_lend(s.view, &d, 0, LEN - 4096, &allocated, &loan), 0);
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, NULL, &loan), 0);
	/* Beyond the allocation, with sums that wrap; another GPU; another number; no such loan. */
	assert_int_equal(soft_import_lend(s.view, &d, 1, LEN - 4096, &copier, &loan), -ENOENT);
	d.offset = UINT64_MAX - 32;
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), -ENOENT);
	assert_int_equal(soft_import_lend(s.view, &d, 64, 64, &copier, &loan), -ENOENT);
	d.offset = 0;
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &other, &loan), -EXDEV);
	d.export = 0x205;
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), -ENOENT);
	d.export = 0x105;
	for (int i = 0; i < 3; i++) {
		struct soft_direct wrong = d;

		wrong.unit = i == 0 ? 0 : i == 1 ? SOFT_SHELF_LOANS + 1 : d.unit;
		wrong.generation = i == 2 ? 0 : d.generation;
		assert_int_equal(soft_import_lend(s.view, &wrong, 0, 64, &copier, &loan), -ENOENT);
	}
	/* Taken back: before the copy, and behind it. */
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), 0);
	soft_shelf_loan_give(&s.shelf, d.unit);
	assert_false(soft_loan_good(&loan));
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), -ESTALE);
	/* A place that is taken. */
	m = mapping();
	assert_int_equal(soft_import_begin(s.view, &copier, 0x205, &m, false), -EEXIST);
	assert_int_equal(fcntl(m.of.fd, F_GETFD), -1);
	assert_null(asked);
	soft_shelf_view_put(s.view);
	reply(SOFT_COPY_UNMAP, 0);
	soft_shelf_done(&s.shelf);
}

static void leaving(void **state)
{
	struct soft_direct d = {.export = 0x107};
	struct soft_mapping m;
	struct soft_loan loan;
	struct both s;

	(void)state;
	set_up(&s);
	d.unit = soft_shelf_loan_take(&s.shelf);
	d.generation = soft_shelf_loan_generation(&s.shelf, d.unit);
	/* Of what was never shown there is nothing. */
	soft_import_withdraw(s.view, 0x107);
	expect_said(1, 0x107, SOFT_IMPORT_GONE);
	/* Not while a copy reads there, and nothing new begins. */
	begin(&s, 0x107);
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), 0);
	soft_import_get(loan.import);
	soft_import_withdraw(s.view, 0x107);
	assert_null(asked);
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), -ENOENT);
	soft_import_put(s.view->imports[7]);
	assert_int_equal(said.times, 0);
	reply(SOFT_COPY_UNMAP, 0);
	expect_said(1, 0x107, SOFT_IMPORT_GONE);
	assert_null(s.view->imports[7]);
	/* Taken back while it is being mapped. */
	m = mapping();
	assert_int_equal(soft_import_begin(s.view, &copier, 0x207, &m, false), 0);
	soft_import_withdraw(s.view, 0x207);
	assert_int_equal(said.times, 0);
	reply(SOFT_COPY_MAP, 0);
	reply(SOFT_COPY_UNMAP, 0);
	expect_said(1, 0x207, SOFT_IMPORT_GONE);
	/* Refused. */
	m = mapping();
	assert_int_equal(soft_import_begin(s.view, &copier, 0x307, &m, false), 0);
	reply(SOFT_COPY_MAP, -EOPNOTSUPP);
	expect_said(1, 0x307, -EOPNOTSUPP);
	/* One's own is where it is. */
	m = (struct soft_mapping){.of = {.kind = SOFT_EXPORT_IPC, .len = LEN, .fd = -1},
				  .at = 0x600000000000};
	d.export = 0x407;
	assert_int_equal(soft_import_begin(s.view, &copier, 0x407, &m, true), 0);
	expect_said(1, 0x407, 0);
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), 0);
	assert_int_equal((uintptr_t)loan.at, 0x600000000000);
	assert_true(loan.import->allocated);
	soft_import_withdraw(s.view, 0x407);
	expect_said(1, 0x407, SOFT_IMPORT_GONE);
	assert_null(asked);
	/* The sender dies in the middle of a copy: the mapping outlives the lane, and goes with it.
	 */
	begin(&s, 0x507);
	d.export = 0x507;
	assert_int_equal(soft_import_lend(s.view, &d, 0, 64, &copier, &loan), 0);
	soft_import_get(loan.import);
	s.view->answer = NULL;
	soft_shelf_view_put(s.view);
	assert_null(asked);
	assert_true(soft_loan_good(&loan));
	soft_import_put(loan.import);
	reply(SOFT_COPY_UNMAP, 0);
	assert_int_equal(said.times, 0);
	soft_shelf_done(&s.shelf);
}

/* Each is given once, until none is left. */
static void loans(void **state)
{
	static bool given[SOFT_SHELF_LOANS + 1];
	struct soft_shelf shelf;

	(void)state;
	assert_int_equal(soft_shelf_make(&shelf), 0);
	for (unsigned int i = 0; i < SOFT_SHELF_LOANS; i++) {
		uint32_t loan = soft_shelf_loan_take(&shelf);

		assert_true(loan && loan <= SOFT_SHELF_LOANS && !given[loan]);
		given[loan] = true;
	}
	assert_int_equal(soft_shelf_loan_take(&shelf), 0);
	soft_shelf_loan_give(&shelf, 17);
	assert_int_equal(soft_shelf_loan_take(&shelf), 17);
	assert_int_equal(soft_shelf_loan_generation(&shelf, 17), 2);
	soft_shelf_done(&shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exports),
		cmocka_unit_test(lending),
		cmocka_unit_test(leaving),
		cmocka_unit_test(loans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
