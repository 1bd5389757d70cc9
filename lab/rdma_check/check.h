/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma_check: a client and a server that move known bytes over verbs and look at every one of them.
 *
 * Both ends walk one list of cases in step, held together by a TCP connection (talk.c). In a case
 * one end is the requester (posts WRITE, READ, SEND, an atomic), the other the responder. The
 * client requests in the first pass, the server in the second: one run judges both ends in both
 * roles.
 */
#ifndef PP_LAB_CHECK_H
#define PP_LAB_CHECK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PP_SIZES_MAX = 32,
	PP_QPS_MAX = 64,
	PP_GUARD = 128, /* untouched bytes kept before and behind what a case moves */
	PP_GRH = 40,	/* what a UD receive puts before the payload */
	PP_INLINE = 64,
	PP_VERDICT_MAX = 160,
};

#define PP_SIZE_MAX (4u << 20)
#define PP_QKEY	    0x11335577u

/* What the client decides and tells the server. */
struct pp_plan {
	uint64_t ops; /* a bit for each row of the table of ops */
	uint64_t qps;
	uint64_t rounds;
	uint64_t seed;
	uint64_t sizes_len;
	uint64_t sizes[PP_SIZES_MAX];
};

/* One side's QPs and where its memory is, as the other side needs to know it. */
struct pp_address {
	uint64_t qpn[PP_QPS_MAX];
	uint64_t psn;
	uint64_t mtu; /* enum ibv_mtu */
	uint64_t memory, key, key_read_only;
	uint64_t gid[2]; /* as in memory */
};

/*
 * This side's device. The memory is one slot a QP; a slot is two halves, what goes out and what
 * comes in, and both sides lay it out alike, so an offset here is an offset there.
 */
struct pp_end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *sent, *received;
	struct ibv_mr *mr, *mr_read_only;
	struct ibv_qp *qp[PP_QPS_MAX];
	struct ibv_ah *ah;
	struct ibv_mw *window[PP_QPS_MAX]; /* over all memory, bound through each QP */
	uint64_t my_window[PP_QPS_MAX], far_window[PP_QPS_MAX]; /* their keys */
	unsigned char *memory;
	size_t half, len;
	unsigned int qps;
	uint8_t port, gid_index;
	bool calls;	  /* posts by ibv_wr_*() */
	enum ibv_mtu mtu; /* the device's, then the smaller of both ends */
	struct pp_address mine, far;
};

/* Empty text: nothing wrong. */
struct pp_verdict {
	char text[PP_VERDICT_MAX];
};

void pp_verdict_say(struct pp_verdict *verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* TCP between the ends; every wait has a deadline. */
int pp_talk_listen(uint16_t port, int *ret_fd);
int pp_talk_connect(const char *host, uint16_t port, int *ret_fd);
/* Sends @mine and gets as many bytes from the other end, which does the same. */
int pp_talk_exchange(int fd, const void *mine, void *ret_far, size_t len);
int pp_talk_words(int fd, const uint64_t *mine, uint64_t *ret_far, size_t count);
int pp_talk_meet(int fd);

int pp_end_open(struct pp_end *end, const char *device, uint8_t port, uint8_t gid_index);
int pp_end_reserve(struct pp_end *end, unsigned int qps, size_t largest);
/* Makes QPs of @type, exchanges their addresses and brings them to "ready to send". */
int pp_end_join(struct pp_end *end, int fd, enum ibv_qp_type type, uint32_t psn);
void pp_end_part(struct pp_end *end);
void pp_end_done(struct pp_end *end);

/* window.c: after pp_end_join(); bound windows on both ends, and their keys exchanged. */
int pp_windows_bind(struct pp_end *end, int fd);
void pp_windows_free(struct pp_end *end);

/* post.c: how this end posts. */
struct ibv_qp *pp_post_qp(const struct pp_end *end, const struct ibv_qp_init_attr *init);
int pp_post(const struct pp_end *end, unsigned int qp, struct ibv_send_wr *wr);

/* Runs what the plan says with this end as requester or responder; counts lines by kind, and keeps
 * what is bad for the end of the output, which is all that a long log may have left. */
enum { PP_BAD_KEPT = 16, PP_BAD_MAX = PP_VERDICT_MAX + 64 };
struct pp_count {
	unsigned int ok, bad, skipped;
	char first_bad[PP_BAD_KEPT][PP_BAD_MAX];
};

int pp_cases_run(struct pp_end *end, int fd, const struct pp_plan *plan, bool requester,
		 const char *who, struct pp_count *count);
/* The bit of an op's name; 0: no such op. */
uint64_t pp_cases_op(const char *name, size_t len);
uint64_t pp_cases_all(void);

/* Bytes nobody would guess: of one case, QP and place. */
uint64_t pp_pattern_word(uint64_t seed, uint64_t number, uint64_t qp);
void pp_pattern_fill(unsigned char *to, size_t len, uint64_t word);
/* The two halves of a slot differ, so that a byte too much is seen wherever it comes from. */
enum pp_half { PP_IN = 0xc5, PP_OUT = 0x3a };

void pp_pattern_background(enum pp_half kind, unsigned char *half, size_t from, size_t len);
/* False and the text when @half, one of what comes in, holds anything but @len pattern bytes at @at
 * amid background. */
bool pp_pattern_verify(const unsigned char *half, size_t half_len, size_t at, size_t len,
		       uint64_t word, struct pp_verdict *verdict);

#endif
