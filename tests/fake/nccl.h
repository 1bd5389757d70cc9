/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake libnccl.so.2 from inside: communicators, what their worker does, and what it prints.
 */
#ifndef PP_TESTS_FAKE_NCCL_H
#define PP_TESTS_FAKE_NCCL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANKS = 64, CHANNELS = 2 };

/* ncclResult_t */
enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE };

enum log_subsystem { INIT = 1, NET = 16, GRAPH = 32, TUNING = 64, ENV = 128, REG = 8192 };

struct part {
	void *at;
	size_t len;
};

enum op_kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, POINT_TO_POINT };

struct op {
	enum op_kind kind;
	struct comm *comm;
	const uint8_t *from;
	uint8_t *to;
	size_t count;
	int type, redop;
	struct part out[RANKS], in[RANKS]; /* point to point */
	void *stream;
	bool begun;
	atomic_bool done;
	struct op *next;
};

struct place {
	uint32_t address; /* network byte order */
	int port;
};

struct member {
	struct place at;
	int bus;
	char host[64]; /* NCCL_HOSTID, else the host's name */
};

struct comm {
	int rank, size;
	uint64_t id;
	int bus; /* of its GPU */
	struct member member[RANKS];
	int fd[RANKS]; /* to each other rank */
	int nodes, local_ranks;
	bool gdr_receive, gdr_send;
	pthread_t worker;
	bool has_worker;
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct op *first, *last; /* that the worker is to do */
	bool over;
	atomic_bool stop;  /* aborted */
	atomic_int async;  /* what ncclCommGetAsyncError() says */
	bool rings, pairs; /* connected */
	unsigned int started;
	struct ib *ib;
};

/* nccl_log.c */
void say(enum log_subsystem what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void warn(const char *at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say_setting(const char *name);
const char *last_warning(void);
void host_name(char *to, size_t size);

/* nccl_wire.c: SUCCESS, or a result. */
int wire_listen(int *ret_fd, struct place *ret);
/* "lo:127.0.0.1", or "eth0:" and what was told. */
const char *wire_interface(void);
/* Everybody's address by the root's, then a connection to each. */
int wire_meet(struct comm *c, int root_fd, struct place root);
/* All at once; the own part is copied. REMOTE: a peer is gone. INTERNAL_ERROR: stopped. */
int wire_exchange(struct comm *c, const struct part *out, const struct part *in);
void wire_leave(struct comm *c);

/* nccl_reduce.c */
size_t type_size(int type); /* 0: unknown */
/* @into and @with have @count elements each; @last of @n ranks: avg divides. */
bool reduce(void *into, const void *with, size_t count, int type, int redop);
void divide(void *at, size_t count, int type, int by);

/* nccl_ib.c */
/* Opens the first device; false: none, and it has been said. */
bool ib_open(struct ib **ret);
/* Registers what NCCL registers for one channel of two connections; GPU memory where it may. */
bool ib_connect(struct ib *ib, bool gdr_receive, bool gdr_send);
const char *ib_name(const struct ib *ib);
bool ib_dmabuf(const struct ib *ib); /* the probe did not say that there is none */
void ib_close(struct ib *ib);

/* The functions of the CUDA driver that are used; NULL where it has none. */
void *cuda(const char *name);

#endif
