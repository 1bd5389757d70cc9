/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message of NCCL or of nccl-tests -> an event, by the table of formats (formats.def).
 *
 * A format belongs to a range of versions; so an event also says which libraries can have
 * written it, whatever the text claims.
 */
#ifndef PP_NCCL_EVENT_H
#define PP_NCCL_EVENT_H

#include "nccl/channel.h"

enum pp_nccl_kind {
	PP_NCCL_OTHER,
	/* communicators and versions */
	PP_NCCL_VERSION,
	PP_NCCL_INIT_START,
	PP_NCCL_INIT_COMPLETE,
	PP_NCCL_COMM_NODES,
	PP_NCCL_COMM_DESTROY,
	PP_NCCL_COMM_ABORT,
	PP_NCCL_WIDTH,
	/* choice of the network */
	PP_NCCL_USING_NETWORK,
	PP_NCCL_NET_READY,
	PP_NCCL_NET_FAILED,
	PP_NCCL_NET_NONE,
	PP_NCCL_NET_NOT_FOUND,
	PP_NCCL_PLUGIN,
	PP_NCCL_IB_USING,
	PP_NCCL_IB_NONE,
	PP_NCCL_IB_DEVICE,
	PP_NCCL_IB_VIRTUAL,
	PP_NCCL_SOCKET_USING,
	PP_NCCL_PROVIDER,
	/* capability and intent */
	PP_NCCL_GPU_DMABUF,
	PP_NCCL_HCA_ON,
	PP_NCCL_HCA_OFF,
	PP_NCCL_HCA_WORDS,
	PP_NCCL_PAIR,
	PP_NCCL_PAIR_RANK,
	PP_NCCL_SETTING,
	PP_NCCL_TUNER,
	PP_NCCL_NVLINK,
	PP_NCCL_PROTOCOL,
	PP_NCCL_PROTOCOL_NUMBER,
	/* connections */
	PP_NCCL_CHANNEL,
	PP_NCCL_COLLNET,
	PP_NCCL_TORN,
	PP_NCCL_RINGS,
	PP_NCCL_RINGS_GDR,
	PP_NCCL_REGISTERED,
	PP_NCCL_USER_BUFFER,
	PP_NCCL_USER_BUFFER_FAILED,
	/* errors */
	PP_NCCL_REGISTER_FAILED,
	PP_NCCL_COMPLETION,
	PP_NCCL_COMPLETION_NAMED,
	PP_NCCL_VERB_FAILED,
	PP_NCCL_ASYNC,
	PP_NCCL_FAILOVER,
	PP_NCCL_UNLIKE_DEVICES,
	PP_NCCL_SETUP_FAILED,
	PP_NCCL_RETURN,
	PP_NCCL_APPLICATION_FAILED,
	PP_NCCL_PROCESS_ENDED,
	PP_NCCL_WARNING,
	/* nccl-tests */
	PP_NCCL_TEST_PARAMETERS,
	PP_NCCL_TEST_DEVICES,
	PP_NCCL_TEST_COLUMNS,
	PP_NCCL_TEST_VERSION,
	PP_NCCL_TEST_COLLECTIVE,
	PP_NCCL_TEST_RANK,
	PP_NCCL_TEST_ROW,
	PP_NCCL_TEST_BOUNDS,
};

struct pp_nccl_event {
	enum pp_nccl_kind kind;
	int oldest, newest; /* versions that print this */
	bool has_channel;   /* the connection line has been read */
	struct pp_nccl_channel channel;
	struct pp_nccl_field field[PP_NCCL_FIELDS];
};

enum { PP_NCCL_FORMATS = 128, PP_NCCL_SET_WORDS = PP_NCCL_FORMATS / 64 };
enum { PP_NCCL_HEADS = 32, PP_NCCL_LEVELS = 4, PP_NCCL_BYTES = 128, PP_NCCL_LENGTHS = 64 };

struct pp_nccl_format_set {
	uint64_t bits[PP_NCCL_SET_WORDS];
};

/*
 * Which rows of the table are worth a try: a long log asks for each of its lines. Rows with a * in
 * front are looked for by their heads, all in one pass over the text.
 */
struct pp_nccl_formats {
	struct pp_nccl_format_set begins[PP_NCCL_LEVELS][PP_NCCL_BYTES]; /* by the first byte */
	struct pp_nccl_format_set second_is[PP_NCCL_BYTES];		 /* by the second one */
	struct pp_nccl_format_set
		fits[PP_NCCL_LENGTHS];	      /* a text of so many bytes; last: or more */
	unsigned char alike[PP_NCCL_FORMATS]; /* bytes that a row shares with the one before */
	struct pp_nccl_format_set floating;
	struct pp_nccl_span heads[PP_NCCL_HEADS];
	size_t n_heads;
	struct pp_nccl_format_set with_head[PP_NCCL_HEADS];
	/* by a byte: heads of a level that have it first, heads that have it second */
	uint32_t head_first[PP_NCCL_LEVELS][256], head_second[256];
	/* rows that it may follow after the head */
	struct pp_nccl_format_set behind[PP_NCCL_BYTES];
};

void pp_nccl_formats_init(struct pp_nccl_formats *f);

/* OTHER: no row fits. Fields point into the line. */
void pp_nccl_event_read(const struct pp_nccl_formats *f, const struct pp_nccl_line *line,
			struct pp_nccl_event *ret);

/* Number of rows, and row @i as text, for the tests that want a fixture for each. */
size_t pp_nccl_format_count(void);
const char *pp_nccl_format_pattern(size_t i);

#endif
