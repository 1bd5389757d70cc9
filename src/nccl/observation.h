/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_observed: what the observer saw of one process (docs/observe.md), added up. The text is
 * the program's own word and may be anybody's: hostile.
 *
 * Memory of a GPU by its address: kinds "gpu" and "reserved". The processor cannot touch such
 * memory, so the kernel can only pin it by peer memory: a registration of it that succeeded was
 * one.
 */
#ifndef PP_NCCL_OBSERVATION_H
#define PP_NCCL_OBSERVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/words.h"

enum {
	PP_OBSERVED_WAYS = PP_REGISTERED_EFA_P2P + 1,
	PP_OBSERVED_ERRORS = 32,
	PP_OBSERVED_DEVICES = 16
};
/* Longest line that is read. */
enum { PP_OBSERVATION_LINE = 4096 };

struct pp_observed_way {
	uint64_t made, bytes; /* all that were made, also those that are gone */
};

struct pp_observed_error {
	char call[32];
	int error; /* errno, positive */
	uint64_t times;
};

struct pp_observed {
	char host[65], program[256];
	int64_t pid;
	struct pp_observed_way way[PP_OBSERVED_WAYS]; /* by enum pp_registration */
	struct pp_observed_way unknown;		      /* made, but of what memory is not known */
	uint64_t gone;				      /* deregistered */
	uint64_t probes; /* questions with descriptor -1: no registrations */
	uint64_t queue_pairs;
	struct pp_observed_error error[PP_OBSERVED_ERRORS]; /* of registrations and queue pairs */
	unsigned int n_errors;
	char device[PP_OBSERVED_DEVICES][64];
	unsigned int n_devices;
	char exporter[32];  /* of a DMA-BUF; "" none seen; the first */
	uint64_t malformed; /* lines that are no record: the count is not whole */
};

/* Adds one line (without its line break). -EBADMSG and `malformed` for what is no record. */
int pp_observed_add(struct pp_observed *o, const char *line, size_t len);

/* The whole file of one process. As open(2), read(2); -EFBIG beyond 256 MiB; one line in @err. */
int pp_observed_read(const char *path, struct pp_observed *ret, struct pp_error *err);

/* Adds what another process registered; who is the first one's. */
void pp_observed_merge(struct pp_observed *to, const struct pp_observed *from);

/* Evidence: {"about": "registration", "witness": "library", "scope": "process", ...}. */
void pp_observed_write(struct pp_json *j, const char *key, const struct pp_observed *o);

#endif
