/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_export: an allocation of a GPU that other processes of this host may be shown, so
 * that their GPU copies from it. One for each allocation, however many regions lie in it: it goes
 * with the last. An allocation is known by its place *and* by the number that the driver gives it:
 * another may come to lie in the same place while somebody still has the first one mapped.
 *
 * A region says which one it lies in; what may be read of it is decided message by message
 * (copy/shelf.h has a generation for each that is lent). Under the engine's lock.
 */
#ifndef SOFT_COPY_EXPORT_H
#define SOFT_COPY_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SOFT_EXPORTS_MAX = 256, /* a power of two: the low bits of a number are its place */
	SOFT_EXPORT_HANDLE = 64,
};

enum soft_export_kind { SOFT_EXPORT_NONE, SOFT_EXPORT_VMM, SOFT_EXPORT_IPC };

/* What another process needs to map an allocation. */
struct soft_allocation {
	enum soft_export_kind kind;
	uint64_t base, len, id;		    /* here; id: the driver's, 0: it gives none */
	int fd;				    /* of VMM; else -1 */
	uint8_t handle[SOFT_EXPORT_HANDLE]; /* of IPC */
};

struct soft_export {
	uint32_t number; /* 0: free. Never given twice */
	unsigned int regions;
	unsigned int lanes; /* that were shown it and have not let it go */
	struct soft_allocation of;
};

struct soft_exports {
	struct soft_export at[SOFT_EXPORTS_MAX];
	uint32_t given; /* numbers */
};

static inline unsigned int soft_export_place(uint32_t number)
{
	return number % SOFT_EXPORTS_MAX;
}

/* The one of that allocation, for one more region; NULL: there is none. */
struct soft_export *soft_exports_use(struct soft_exports *exports,
				     const struct soft_allocation *allocation);
/* Takes @allocation, with its descriptor. NULL: there is no place; it stays the caller's. */
struct soft_export *soft_exports_add(struct soft_exports *exports,
				     const struct soft_allocation *allocation);
/* The one of that number, or NULL. */
struct soft_export *soft_exports_find(struct soft_exports *exports, uint32_t number);
/* Nobody lies in it, and nobody has it: its place is free. Else nothing. */
void soft_export_settle(struct soft_export *export);
/* Closes all descriptors, as a child of fork() must. */
void soft_exports_done(struct soft_exports *exports);

#endif
