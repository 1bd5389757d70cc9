/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the logs of one job say, gathered line by line: processes, communicators as each rank saw
 * them, ends of connections, capabilities, errors, the table of nccl-tests.
 *
 * Every table is bounded; `full` says that something was left out, which caps any claim. Nothing
 * here judges: judge.h does, once all is read.
 */
#ifndef PP_NCCL_JOB_H
#define PP_NCCL_JOB_H

#include "nccl/event.h"
#include "nccl/table.h"

enum {
	PP_NCCL_NAME = 128,
	PP_NCCL_FILE = 512,
	PP_NCCL_TEXT = 240,
	PP_NCCL_MAX_PROCESSES = 32768,
	PP_NCCL_MAX_MEMBERS = 65536,
	PP_NCCL_MAX_ENDS = 131072,
	PP_NCCL_MAX_ERRORS = 1024,
	PP_NCCL_MAX_FLUSHES = 256, /* of the errors; the root must find room */
	PP_NCCL_MAX_VERSIONS = 16,
	PP_NCCL_OWNERS = 256,
	PP_NCCL_MAX_CHANNELS = 64, /* the library's own bound */
};

struct pp_nccl_place {
	uint32_t file; /* index in files; PP_NCCL_NONE: no place */
	uint32_t line;
};

struct pp_nccl_name {
	char text[PP_NCCL_NAME]; /* zero-padded: the key */
};

struct pp_nccl_file {
	char text[PP_NCCL_FILE]; /* the end of a longer path */
};

struct pp_nccl_process {
	struct {
		uint32_t host, pid;
	} key;
	uint32_t same_as;  /* index + 1 of the process this one is an alias of, 0 none */
	uint32_t members;  /* newest one, index + 1; they are chained */
	uint64_t ranks;	   /* of these, modulo 64: what none of them has */
	uint32_t living;   /* of these, not over */
	uint32_t channels; /* said before any communicator was named, 0 none */
	/* returned: an error, by what gives up; start_failed: the same while it started */
	struct pp_nccl_place place, dmabuf_off, returned, start_failed, rings_unclear;
	bool ll_only, protocol_unclear; /* by NCCL_PROTO */
	bool tuner;			/* a plug-in chooses the protocol */
	bool env_shown;			/* lines of the subsystem ENV are printed */
	bool env_number;		/* the same, if the library is 2.16 or later */
	bool hca_able, hca_unable;
	bool ib_plugin; /* the plug-in says that it is the one over verbs */
	bool provider_rdma;
	uint32_t registered_dmabuf;
	/* set when grouped: ranks that nccl-tests lists, ranks between hosts, their communicator */
	uint32_t listed, seats, comm;
	bool several; /* such communicators */
};

struct pp_nccl_member { /* one rank of one communicator, as its process printed it */
	struct {
		uint32_t process, generation;
		uint64_t pointer;
	} key;
	uint32_t rank, n_ranks, n_nodes, local_ranks; /* n_nodes, local_ranks: 0 unknown */
	uint64_t id;				      /* commId, 0 unknown */
	uint32_t channels;			      /* of rings and trees, 0 unknown */
	bool mnnvl, complete, over, rings_without_gdr;
	uint32_t comm;			   /* set when grouped */
	uint32_t previous;		   /* of the same process, index + 1 */
	struct pp_nccl_place place, rings; /* rings: where they were said to be without GDR */
};

struct pp_nccl_pointer { /* the newest member behind a pointer */
	struct {
		uint32_t process, zero;
		uint64_t pointer;
	} key;
	uint32_t member;
};

struct pp_nccl_thread { /* of which member a thread spoke last */
	struct {
		uint32_t process, thread;
	} key;
	uint32_t member;
};

struct pp_nccl_number { /* the process of a number, as one file shows it */
	struct {
		uint32_t file, pid;
	} key;
	uint32_t process; /* PP_NCCL_NONE: several */
};

struct pp_nccl_listed { /* a process in nccl-tests' list of ranks */
	struct {
		uint32_t host, pid;
	} key;
	uint32_t ranks;
};

struct pp_nccl_end { /* one end of one connection */
	struct {
		uint32_t process, member; /* member may be PP_NCCL_NONE */
		uint32_t from, to, channel, network;
		int32_t connection, device, proxy;
		uint8_t transport, direction, gdr, pci, shared, old, zero[2];
	} key;
	uint32_t count;
	bool ambiguous; /* several communicators of the process could be meant */
	bool torn;	/* the text went on in the next line: it does not say what it seems to */
	struct pp_nccl_place place;
};

enum pp_nccl_able { PP_NCCL_UNSAID, PP_NCCL_ABLE, PP_NCCL_UNABLE };

struct pp_nccl_nic {
	struct {
		uint32_t process, index, network;
	} key;
	uint32_t name;
	enum pp_nccl_able able;
	struct pp_nccl_place place;
};

struct pp_nccl_gpu { /* decisions about one GPU against all NICs */
	struct {
		uint32_t process, zero;
		uint64_t gpu;
	} key;
	uint32_t near, far;
	uint64_t distance, limit; /* of the first far one */
	struct pp_nccl_place place;
};

struct pp_nccl_choice { /* a network that a process spoke of */
	struct {
		uint32_t process, network, kind; /* enum pp_nccl_kind */
	} key;
	struct pp_nccl_place place;
};

struct pp_nccl_setting {
	struct {
		uint32_t process, name;
	} key;
	char value[PP_NCCL_NAME];
	struct pp_nccl_place place;
};

struct pp_nccl_error {
	struct {
		uint32_t process, kind, status, vendor; /* kind: enum pp_nccl_kind */
	} key;
	uint32_t count;
	struct pp_nccl_place place;
	char stamp[20];
	char text[PP_NCCL_TEXT];
};

struct pp_nccl_version {
	uint32_t value, process;
	struct pp_nccl_place place;
	char text[48];
};

struct pp_nccl_bench { /* tables of nccl-tests */
	/* a run prints each of the first three once, and its footer when all ranks are done */
	uint32_t parameters, device_lists, columns, bounds_ok, bounds_failed;
	uint32_t heads, rows, rows_unchecked, rows_wrong;
	uint64_t largest_right; /* bytes of the largest row that was checked and right */
	struct pp_nccl_place row, bounds, wrong;
	char collective[32]; /* the last test's; "" not said */
	/* of rows that are not wrong, out of place; 0 none */
	uint64_t largest, smallest;
	double largest_busbw_gbps, smallest_us; /* of the last such row */
	uint64_t iterations;			/* of each row, as the parameters say; 0 unknown */
	uint64_t payload_bytes;			/* sizes of all calls that were timed; 0 unknown */
};

struct pp_nccl_protocols { /* largest message by the protocol that carried it */
	uint64_t ll_bytes, other_bytes;
};

struct pp_nccl_owner { /* whose a connection of this rank is, until a communicator changes */
	uint64_t changes;
	uint32_t process, rank;
	uint32_t from, to; /* the answer holds for peers from ... below to */
	uint32_t member;
	bool ambiguous;
};

struct pp_nccl_job {
	struct pp_nccl_formats formats;
	struct pp_nccl_table files, names, processes, numbers, pointers, members, threads, ends,
		nics, gpus, choices, settings, errors, listed;
	struct pp_nccl_version versions[PP_NCCL_MAX_VERSIONS];
	uint32_t n_versions;
	int oldest, newest; /* by format; oldest > newest: the lines contradict each other */
	struct pp_nccl_place oldest_at, newest_at;
	struct pp_nccl_bench bench;
	struct pp_nccl_protocols protocols;
	struct pp_nccl_place nvlink, simulated, registered, user_buffer, user_buffer_failed,
		application_failed, provider_tcp, unfinished_at;
	/* lines of NCCL; those longer than the bound; last ones of a file that lack their end */
	uint64_t lines, cut, unfinished;
	uint32_t flushes;
	uint32_t file;				     /* that is being read */
	uint64_t changes;			     /* of communicators: 0 none yet */
	struct pp_nccl_owner owners[PP_NCCL_OWNERS]; /* by hash */
	uint32_t last_number;
	uint32_t last_name, last_process; /* that were asked for: no search for them again */
	uint32_t last_end; /* index + 1 of the end whose line was read last, at last_end_at */
	struct pp_nccl_place last_end_at;
	bool nvls;    /* some communicator has channels that the NVLink switch adds up */
	bool partial; /* the line at hand may lack its end */
};

void pp_nccl_job_init(struct pp_nccl_job *job);
void pp_nccl_job_done(struct pp_nccl_job *job);

/* What follows comes from this file. */
void pp_nccl_job_file(struct pp_nccl_job *job, const char *name);
/* One cleaned line of text. Returns true when it opens a table of numbers. */
bool pp_nccl_job_line(struct pp_nccl_job *job, const char *text, size_t len, uint64_t number);

/* True when a table was full or memory ran out. */
bool pp_nccl_job_full(const struct pp_nccl_job *job);
/* True when memory ran out: nothing may be said then. */
bool pp_nccl_job_starved(struct pp_nccl_job *job);
const char *pp_nccl_job_name(const struct pp_nccl_job *job, uint32_t id); /* "" for NONE */

/* For the handlers of events. */
uint32_t pp_nccl_job_intern(struct pp_nccl_job *job, struct pp_nccl_span text);
struct pp_nccl_place pp_nccl_job_here(const struct pp_nccl_job *job);

#endif
