/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_cm_message: what two connection managers say to each other, on a TCP connection
 * (RDMA_PS_TCP) or as UDP datagrams (RDMA_PS_UDP). Pure: bytes in, structure out.
 *
 *   0 "PPCM"      4 version     5 kind        6 length of all   8 token
 *  16 QPN        20 PSN        24 Q_Key      28 sender's GID   44 receiver's GID
 *  60 ECE vendor 64 ECE options
 *  68 responder resources, initiator depth, retry, RNR retry, flow control, SRQ, MTU, QP type
 *  76 status (2)  78 bytes of private data (1)  79 zero  80 private data
 *
 * Big-endian. Magic, version, kind and length stand where every later version has them too.
 */
#ifndef SOFT_CM_MESSAGE_H
#define SOFT_CM_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "soft/wire/gid.h"

enum {
	SOFT_CM_VERSION = 1,
	SOFT_CM_HEAD_BYTES = 16,
	SOFT_CM_FIXED_BYTES = 80,
	SOFT_CM_PRIVATE_MAX = 196,
	SOFT_CM_MESSAGE_MAX = SOFT_CM_FIXED_BYTES + SOFT_CM_PRIVATE_MAX,
};

enum soft_cm_kind {
	SOFT_CM_REQUEST = 1, /* connect */
	SOFT_CM_REPLY,	     /* accept */
	SOFT_CM_READY,	     /* the reply has arrived, and was taken */
	SOFT_CM_REJECT,
	SOFT_CM_DISCONNECT,
	SOFT_CM_DISCONNECTED, /* its answer */
	SOFT_CM_LOOKUP,	      /* datagram: which queue pair serves this port? */
	SOFT_CM_LOOKUP_REPLY,
	SOFT_CM_KINDS,
};

struct soft_cm_message {
	enum soft_cm_kind kind;
	uint64_t token; /* of the one that asked; answers repeat it */
	uint32_t qpn, psn, qkey;
	struct soft_gid from, to;
	uint32_t ece_vendor, ece_options;
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
	uint8_t flow_control, srq, mtu, qp_type;
	uint16_t status; /* InfiniBand's reason of a reject, or SIDR status */
	uint8_t private_len;
	uint8_t private_data[SOFT_CM_PRIVATE_MAX]; /* zero behind what came */
};

/* How much private data a message of this kind carries for a program, as InfiniBand's do. */
uint8_t soft_cm_private_room(enum soft_cm_kind kind);

/* Bytes written to @ret, which has room for SOFT_CM_MESSAGE_MAX. */
size_t soft_cm_message_write(const struct soft_cm_message *m, uint8_t *ret);

/*
 * Bytes of the message that begins here; 0: @len is too few to tell. -EPROTO: not such a message;
 * -EPROTONOSUPPORT: of a version that is not known.
 */
int soft_cm_message_length(const uint8_t *bytes, size_t len);

/* @len: of one whole message. -EPROTO: out of range. */
int soft_cm_message_read(const uint8_t *bytes, size_t len, struct soft_cm_message *ret);

#endif
