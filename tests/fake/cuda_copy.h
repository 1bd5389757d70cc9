/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA that copies, in two parts: cuda_copy.c has contexts, streams and copies, cuda_share.c
 * memory, and what processes share of it. One lock covers all.
 */
#ifndef PP_TESTS_FAKE_CUDA_COPY_H
#define PP_TESTS_FAKE_CUDA_COPY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum {
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	INVALID_CONTEXT = 201,
	NOT_READY = 600,
	NOT_SUPPORTED = 801,
	LAUNCH_FAILED = 719,
	GRANULARITY = 2 << 20,
};

/* Bytes of a GPU, in whichever processes have them. */
struct block {
	int fd;
	size_t len;
	uint8_t *bytes;
	unsigned int refs;
	int device;
	bool vmm, imported;
};

struct memory {
	uint64_t va;
	size_t len;
	struct block *block;
	uint64_t id;
	unsigned int reads, writes; /* GPUs that may, a bit each */
};

extern pthread_mutex_t fake_lock;

bool fake_mode(const char *word);
int fake_gpus(void);
void fake_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_wrong(const char *what);
bool fake_in_primary(void);
int fake_gpu(void); /* of the current context */
/* Under the lock. NULL: no memory of a GPU. */
struct memory *fake_find(uint64_t at);

#endif
