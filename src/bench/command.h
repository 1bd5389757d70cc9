/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_command: what a coordinator told an agent, taken out of its JSON object, bounded. Pure.
 *
 * Each command is a table of members in command.c: key, type, range, and whether it must be there.
 * Members that the table does not have are refused: a newer coordinator means something by them.
 * Texts are borrowed from the object.
 */
#ifndef PP_BENCH_COMMAND_H
#define PP_BENCH_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "bench/result.h"
#include "bench/slots.h"
#include "mem/memory.h"
#include "rdma/endpoint.h"

enum pp_do {
	PP_DO_LOOK,
	PP_DO_OPEN,
	PP_DO_CONNECT,
	PP_DO_RESET,
	PP_DO_READY,
	PP_DO_RUN,
	PP_DO_FILL,
	PP_DO_CHECK,
	PP_DO_RESTRICT,
	PP_DO_NEGATIVE,
	PP_DO_WITNESS,
	PP_DO_TRACE,
	PP_DO_LINK,
	PP_DO_CLOSE,
	PP_DOS
};

/* What an end does while messages of one cell go. */
enum pp_role {
	PP_ROLE_PASSIVE, /* its memory is written or read */
	PP_ROLE_ACTIVE,	 /* posts; SEND bidirectional: and receives */
	PP_ROLE_RECEIVE, /* SEND */
	PP_ROLE_PING,	 /* latency: begins */
	PP_ROLE_PONG,
	PP_ROLES
};

struct pp_look_command {
	const char *device, *gpu; /* BDF or name; NULL: the rails */
	int64_t port;		  /* 0: the first ACTIVE one */
	bool all_rails;
};

struct pp_open_command {
	int64_t rung, end; /* enum pp_rung; which end of the pair this is */
	const char *device, *gpu;
	const char *netdev;  /* of the rail, for its counters */
	const char *address; /* of it, for TCP */
	int64_t port, gid_index, mtu, traffic_class, sl, pkey_index;
	int64_t qps, depth;
	int64_t memory; /* enum pp_memory_kind */
	int64_t size, segments, inside;
	int64_t numa; /* to run and to take host memory on; -1 anywhere */
	bool cm;
};

struct pp_connect_command {
	struct pp_address address[PP_ENDPOINT_QPS];
	unsigned int n_addresses;
	struct pp_part part[PP_SLOTS_PARTS]; /* key: rkey */
	unsigned int n_parts;
	const char *tcp_address, *nonce; /* NULL: none */
	int64_t tcp_port;
	const char *cm_address; /* -R: where the peer's librdmacm listens; NULL */
	int64_t cm_port, cm_nonce;
	int64_t bounce, bounce_key; /* staged: address and rkey of the peer's bounce buffers */
};

struct pp_ready_command {
	int64_t op, measure, role;
	int64_t size, messages;
	int64_t silence_ns;
};

struct pp_check_command {
	int64_t seed; /* that messages carried */
	int64_t own;  /* of what no message was for */
	int64_t size; /* of a message; 0: none was for here */
	int64_t way;  /* that they went */
};

struct pp_negative_command {
	int64_t op;	      /* PP_WRITE, PP_READ */
	int64_t address, key; /* that are asked for */
	int64_t from;	      /* offset in one's own memory */
	int64_t size;
};

struct pp_witness_command {
	const char *device, *peer; /* peer NULL: the server */
	int64_t port, gid_index, size, tcp_port, seconds;
};

enum { PP_TRACE_PIDS = 64 };

struct pp_trace_command {
	pid_t pid[PP_TRACE_PIDS];
	unsigned int n_pids;
	bool software; /* they are on the software device */
	bool probes;   /* may be put into the kernel meanwhile */
};

struct pp_command {
	enum pp_do what;
	union {
		struct pp_look_command look;
		struct pp_open_command open;
		struct pp_connect_command connect;
		struct pp_ready_command ready;
		struct {
			int64_t seed;
		} fill;
		struct pp_check_command check;
		struct {
			bool writable, readable;
		} restricted;
		struct pp_negative_command negative;
		struct pp_witness_command witness;
		struct pp_trace_command trace;
	};
};

/* -EBADMSG: @err names the member and what it may be. */
int pp_command_parse(const json_t *object, struct pp_command *ret, struct pp_error *err);

/* "keys": [{"start", "length", "address", "key"}] as a peer answered it. */
int pp_parts_parse(const json_t *array, struct pp_part *ret, unsigned int *ret_n,
		   struct pp_error *err);
void pp_parts_write(struct pp_json *j, const char *key, const struct pp_part *part, unsigned int n);

const char *pp_do_name(enum pp_do d);
const char *pp_role_name(enum pp_role r);

#endif
