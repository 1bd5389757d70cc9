/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/cm/message.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "soft/verbs.h"
#include "base/banned.h"

static const uint8_t magic[4] = {'P', 'P', 'C', 'M'};

enum { QPN_MAX = 0xffffff, PSN_MAX = 0xffffff, RETRY_MAX = 7 };

/* The standard's messages less what IP addressing (CMA) takes of them. */
static const uint8_t rooms[SOFT_CM_KINDS] = {
	[SOFT_CM_REQUEST] = 56, [SOFT_CM_REPLY] = 196,	      [SOFT_CM_REJECT] = 148,
	[SOFT_CM_LOOKUP] = 180, [SOFT_CM_LOOKUP_REPLY] = 136,
};

uint8_t soft_cm_private_room(enum soft_cm_kind kind)
{
	return kind < SOFT_CM_KINDS ? rooms[kind] : 0;
}

static void put16(uint8_t *at, uint16_t v)
{
	v = htobe16(v);
	memcpy(at, &v, sizeof(v));
}

static void put32(uint8_t *at, uint32_t v)
{
	v = htobe32(v);
	memcpy(at, &v, sizeof(v));
}

static uint16_t get16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return be16toh(v);
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return be32toh(v);
}

size_t soft_cm_message_write(const struct soft_cm_message *m, uint8_t *ret)
{
	size_t len = SOFT_CM_FIXED_BYTES + m->private_len;

	memset(ret, 0, SOFT_CM_FIXED_BYTES);
	memcpy(ret, magic, sizeof(magic));
	ret[4] = SOFT_CM_VERSION;
	ret[5] = (uint8_t)m->kind;
	put16(ret + 6, (uint16_t)len);
	put32(ret + 8, (uint32_t)(m->token >> 32));
	put32(ret + 12, (uint32_t)m->token);
	put32(ret + 16, m->qpn);
	put32(ret + 20, m->psn);
	put32(ret + 24, m->qkey);
	memcpy(ret + 28, m->from.raw, sizeof(m->from.raw));
	memcpy(ret + 44, m->to.raw, sizeof(m->to.raw));
	put32(ret + 60, m->ece_vendor);
	put32(ret + 64, m->ece_options);
	ret[68] = m->responder_resources;
	ret[69] = m->initiator_depth;
	ret[70] = m->retry_count;
	ret[71] = m->rnr_retry_count;
	ret[72] = m->flow_control;
	ret[73] = m->srq;
	ret[74] = m->mtu;
	ret[75] = m->qp_type;
	put16(ret + 76, m->status);
	ret[78] = m->private_len;
	memcpy(ret + SOFT_CM_FIXED_BYTES, m->private_data, m->private_len);
	return len;
}

int soft_cm_message_length(const uint8_t *bytes, size_t len)
{
	size_t seen = len < sizeof(magic) ? len : sizeof(magic);
	uint16_t all;

	if (memcmp(bytes, magic, seen) != 0)
		return -EPROTO;
	if (len < 8)
		return 0;
	if (bytes[4] != SOFT_CM_VERSION)
		return -EPROTONOSUPPORT;
	all = get16(bytes + 6);
	if (all < SOFT_CM_FIXED_BYTES || all > SOFT_CM_MESSAGE_MAX)
		return -EPROTO;
	return all;
}

int soft_cm_message_read(const uint8_t *bytes, size_t len, struct soft_cm_message *ret)
{
	struct soft_cm_message m = {0};

	if (len < SOFT_CM_FIXED_BYTES || soft_cm_message_length(bytes, len) != (int)len ||
	    bytes[78] != len - SOFT_CM_FIXED_BYTES || !bytes[5] || bytes[5] >= SOFT_CM_KINDS ||
	    bytes[78] > rooms[bytes[5]])
		return -EPROTO;
	m.kind = (enum soft_cm_kind)bytes[5];
	m.token = (uint64_t)get32(bytes + 8) << 32 | get32(bytes + 12);
	m.qpn = get32(bytes + 16);
	m.psn = get32(bytes + 20);
	m.qkey = get32(bytes + 24);
	memcpy(m.from.raw, bytes + 28, sizeof(m.from.raw));
	memcpy(m.to.raw, bytes + 44, sizeof(m.to.raw));
	m.ece_vendor = get32(bytes + 60);
	m.ece_options = get32(bytes + 64);
	m.responder_resources = bytes[68];
	m.initiator_depth = bytes[69];
	m.retry_count = bytes[70];
	m.rnr_retry_count = bytes[71];
	m.flow_control = bytes[72];
	m.srq = bytes[73];
	m.mtu = bytes[74];
	m.qp_type = bytes[75];
	m.status = get16(bytes + 76);
	m.private_len = bytes[78];
	memcpy(m.private_data, bytes + SOFT_CM_FIXED_BYTES, m.private_len);
	if (m.qpn > QPN_MAX || m.psn > PSN_MAX || m.retry_count > RETRY_MAX ||
	    m.rnr_retry_count > RETRY_MAX || m.srq > 1)
		return -EPROTO;
	if ((m.kind == SOFT_CM_REQUEST || m.kind == SOFT_CM_REPLY) &&
	    (m.mtu < IBV_MTU_256 || m.mtu > IBV_MTU_4096))
		return -EPROTO;
	*ret = m;
	return 0;
}
