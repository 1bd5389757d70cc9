/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_agent: what an agent holds between two commands. Private to bench/agent*.c.
 *
 * One way of moving bytes is open at a time. Each handler writes the members of its answer; where
 * it fails agent.c says so behind what is already there (attempts of a registration stay).
 */
#ifndef PP_BENCH_AGENT_STATE_H
#define PP_BENCH_AGENT_STATE_H

#include "bench/agent.h"
#include "bench/command.h"
#include "bench/gpu_watch.h"
#include "bench/slots.h"
#include "bench/staged.h"
#include "bench/tcp.h"
#include "mem/memory.h"
#include "mem/registration.h"
#include "rdma/cm.h"

enum { PP_AGENT_COUNTERS = 96, PP_AGENT_TEXT = 256 };

/* Counters of a port, by their files' names. */
struct pp_counters {
	struct {
		char name[48];
		int64_t value;
	} one[PP_AGENT_COUNTERS];
	unsigned int n;
};

struct pp_agent {
	struct pp_channel *channel;		/* borrowed, as the next */
	const struct pp_agent_options *options; /* NULL: none */
	struct pp_verbs verbs;
	bool verbs_loaded;

	/* open */
	bool open;
	enum pp_rung rung;
	unsigned int end;
	char device[PP_AGENT_TEXT], gpu[PP_AGENT_TEXT], address[PP_AGENT_TEXT];
	char netdev[PP_AGENT_TEXT];
	struct pp_endpoint endpoint;
	bool has_endpoint, has_registered;
	struct pp_memory *memory;
	struct pp_registered registered;
	struct pp_registered restricted; /* of agent_negative.c */
	bool has_restricted;
	struct pp_tcp tcp;
	struct pp_cm *cm; /* -R; NULL */
	bool by_cm;
	char cm_address[PP_CM_ADDRESS];
	uint16_t cm_port;
	int64_t cm_nonce;
	struct pp_staged *staged;
	struct pp_gpu_watch *watch;

	/* connect */
	struct pp_part own[PP_SLOTS_PARTS], peer[PP_SLOTS_PARTS];
	unsigned int n_own, n_peer;

	/* ready */
	bool ready;
	struct pp_ready_command cell;
	struct pp_slots slots; /* of the last size */
	struct pp_slot way[2][PP_SLOTS_MOST];
	pp_ns cpu;
	struct pp_counters before;

	/* where the last command failed */
	const char *call;
	int status;
};

typedef int pp_agent_handler(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
			     struct pp_error *err);

pp_agent_handler pp_agent_look, pp_agent_open, pp_agent_connect, pp_agent_ready, pp_agent_run,
	pp_agent_fill, pp_agent_check, pp_agent_restrict, pp_agent_negative, pp_agent_witness,
	pp_agent_trace, pp_agent_link, pp_agent_close, pp_agent_reset;

/* Closes what is open, in order; silent. */
void pp_agent_shut(struct pp_agent *a);

/* Fills @a->slots and @a->way for messages of @size. */
int pp_agent_lay(struct pp_agent *a, uint64_t size, struct pp_error *err);

void pp_agent_write_addresses(const struct pp_agent *a, struct pp_json *out);
/* -R: listens, at end 1; and what the peer must know of it. */
int pp_agent_cm_listen(struct pp_agent *a, struct pp_error *err);
void pp_agent_write_cm(const struct pp_agent *a, struct pp_json *out);
/* The memory with the rung's way of registration. */
int pp_agent_register(struct pp_agent *a, int access, struct pp_registered *ret,
		      struct pp_error *err);

/* Has the coordinator gone? For loops that only take a function. */
bool pp_agent_left(void);

/*
 * Pins this process to the CPUs of a NUMA node that it may use. *ret: "0-15", "" where it was not
 * pinned (-1, unknown node, no CPU of it allowed).
 */
void pp_agent_pin(int numa, char *ret, size_t size);

/* None where the port has no counters (the software device without a made /sys). */
/* @netdev: of the port; "" none. */
void pp_counters_read(const char *device, unsigned int port, const char *netdev,
		      struct pp_counters *ret);
/* Waits until what is read is of now: the kernel, and a made /sys, keep values for a while. */
void pp_counters_settle(const char *device, unsigned int port, bool software);
/* {"name": delta} of those that moved, and of those that count loss. */
void pp_counters_write(struct pp_json *j, const char *key, const struct pp_counters *before,
		       const struct pp_counters *after);

#endif
