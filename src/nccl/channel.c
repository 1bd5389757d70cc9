/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/channel.h"

#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static inline bool cut_tail(struct pp_nccl_span *s, const char *tail)
{
	size_t n = strlen(tail);

	if (s->len < n || memcmp(s->at + s->len - n, tail, n) != 0)
		return false;
	s->len -= n;
	return true;
}

/* Digits at the end of @s, cut off. */
static bool cut_number(struct pp_nccl_span *s, int *ret)
{
	size_t n = 0;
	uint64_t value;

	while (n < s->len && n < 9 && s->at[s->len - 1 - n] >= '0' && s->at[s->len - 1 - n] <= '9')
		n++;
	if (!n || !pp_nccl_digits((struct pp_nccl_span){s->at + s->len - n, n}, false, &value))
		return false;
	s->len -= n;
	*ret = (int)value;
	return true;
}

/* "<net>/<dev>[(proxy)][/GDRDMA][(PCI)][/Shared]" */
static bool read_net(struct pp_nccl_span s, struct pp_nccl_channel *c)
{
	c->shared = cut_tail(&s, "/Shared");
	c->pci = cut_tail(&s, "(PCI)");
	c->gdr = cut_tail(&s, "/GDRDMA");
	if (c->pci && !c->gdr)
		return false;
	if (cut_tail(&s, ")") && (!cut_number(&s, &c->proxy) || !cut_tail(&s, "(")))
		return false;
	if (!cut_number(&s, &c->device) || !cut_tail(&s, "/") || !s.len)
		return false;
	c->network = s;
	if (c->pci)
		c->oldest = PP_NCCL_V(2, 26, 0);
	return true;
}

static const struct {
	const char *head;
	enum pp_nccl_transport transport;
} WAYS[] = {
	{"NET/", PP_NCCL_VIA_NET},	  {"COLLNET/", PP_NCCL_VIA_COLLNET},
	{"P2P/MNNVL", PP_NCCL_VIA_MNNVL}, {"P2P/", PP_NCCL_VIA_P2P},
	{"SHM", PP_NCCL_VIA_SHM},	  {"direct shared memory", PP_NCCL_VIA_SHM},
};

static bool read_way(struct pp_nccl_span s, struct pp_nccl_channel *c)
{
	c->way = s;
	for (size_t i = 0; i < PP_ARRAY_LEN(WAYS); i++) {
		if (!s.len || *s.at != *WAYS[i].head || !pp_nccl_span_begins(s, WAYS[i].head))
			continue;
		c->transport = WAYS[i].transport;
		c->network = s;
		if (c->transport > PP_NCCL_VIA_COLLNET)
			return true;
		s.at += strlen(WAYS[i].head);
		s.len -= strlen(WAYS[i].head);
		return read_net(s, c);
	}
	return false;
}

static bool rank_fits(uint64_t a, uint64_t b)
{
	return a <= INT32_MAX && b <= INT32_MAX;
}

/* A bus number in hexadecimal, as printed up to 2.17: four digits and more, or a letter. */
static bool is_bus(struct pp_nccl_span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] > '9')
			return true;
	return s.len >= 4;
}

static void date(struct pp_nccl_channel *c, bool ring, bool numbered, bool bus)
{
	if (ring)
		c->newest = PP_NCCL_V(2, 7, 99);
	else if (!numbered && c->transport == PP_NCCL_VIA_NET)
		c->newest = PP_NCCL_V(2, 11, 99);
	else if (!numbered && c->transport == PP_NCCL_VIA_P2P)
		c->newest = PP_NCCL_V(2, 13, 99);
	else if (bus)
		c->newest = PP_NCCL_V(2, 17, 99);
	if (numbered && c->oldest < PP_NCCL_V(2, 12, 0))
		c->oldest = PP_NCCL_V(2, 12, 0);
}

static bool read_collnet(struct pp_nccl_span message, struct pp_nccl_channel *c)
{
	struct pp_nccl_field f[PP_NCCL_FIELDS];

	if (!pp_nccl_match("CollNet %u/%u : %u [%w] via %s", message, f))
		return false;
	if (!rank_fits(f[0].value, f[2].value) || !rank_fits(f[1].value, 0))
		return false;
	c->channel = (uint32_t)f[0].value;
	c->connection = (int)f[1].value;
	c->from = c->to = (uint32_t)f[2].value;
	c->direction = pp_nccl_span_is(f[3].text, "send") ? PP_NCCL_SEND : PP_NCCL_RECEIVE;
	return read_way(f[4].text, c) && c->transport == PP_NCCL_VIA_COLLNET;
}

/* What is left of a message. A long log is mostly these lines: they are read without a pattern. */
struct cursor {
	const char *at, *end;
};

static bool take(struct cursor *c, char byte)
{
	if (c->at == c->end || *c->at != byte)
		return false;
	c->at++;
	return true;
}

static bool take_blanks(struct cursor *c)
{
	if (!take(c, ' '))
		return false;
	while (c->at < c->end && *c->at == ' ')
		c->at++;
	return true;
}

static bool take_number(struct cursor *c, uint32_t *ret)
{
	const char *start = c->at;
	uint64_t value = 0;

	for (; c->at < c->end && (unsigned char)(*c->at - '0') < 10 && value <= INT32_MAX; c->at++)
		value = value * 10 + (unsigned char)(*c->at - '0');
	*ret = (uint32_t)value;
	return c->at > start && value <= INT32_MAX;
}

/* "7[1b000]"; up to 2.7 also without the device, then at both ends: @bare. */
static bool take_rank(struct cursor *c, bool bare, uint32_t *ret, bool *ret_bus)
{
	const char *start;

	if (!take_number(c, ret))
		return false;
	if (bare)
		return true;
	if (!take(c, '['))
		return false;
	for (start = c->at; c->at < c->end && *c->at != ']' && *c->at != ' ';)
		c->at++;
	*ret_bus |= is_bus((struct pp_nccl_span){start, (size_t)(c->at - start)});
	return c->at > start && take(c, ']');
}

/* "0 : 7[0] -> 8[0] ", or "0/1 : ..." since 2.12: behind "Channel " or "Ring ". */
static bool take_ends(struct cursor *c, bool ring, struct pp_nccl_channel *ret, bool *ret_bus)
{
	uint32_t connection;
	const char *p;
	bool bare;

	if (!take_number(c, &ret->channel))
		return false;
	if (!ring && take(c, '/')) {
		if (!take_number(c, &connection))
			return false;
		ret->connection = (int)connection;
	}
	if (!take_blanks(c) || !take(c, ':') || !take_blanks(c))
		return false;
	for (p = c->at; p < c->end && (unsigned char)(*p - '0') < 10;)
		p++;
	bare = ring && p < c->end && *p == ' ';
	return take_rank(c, bare, &ret->from, ret_bus) && take_blanks(c) && take(c, '-') &&
	       take(c, '>') && take_blanks(c) && take_rank(c, bare, &ret->to, ret_bus) &&
	       take_blanks(c);
}

/* "[send] via NET/..." */
static bool read_tail(struct pp_nccl_span tail, struct pp_nccl_channel *c)
{
	size_t skip;

	if (pp_nccl_span_begins(tail, "[send] via ")) {
		c->direction = PP_NCCL_SEND;
		skip = strlen("[send] via ");
	} else if (pp_nccl_span_begins(tail, "[receive] via ")) {
		c->direction = PP_NCCL_RECEIVE;
		skip = strlen("[receive] via ");
	} else if (pp_nccl_span_begins(tail, "via ")) {
		skip = strlen("via ");
	} else {
		return false;
	}
	return read_way((struct pp_nccl_span){tail.at + skip, tail.len - skip}, c);
}

bool pp_nccl_channel_read(struct pp_nccl_span message, struct pp_nccl_channel *ret)
{
	struct cursor c = {message.at, message.at + message.len};
	bool ring = pp_nccl_span_begins(message, "Ring "), bus = false;

	*ret = (struct pp_nccl_channel){.connection = -1,
					.device = -1,
					.proxy = -1,
					.direction = PP_NCCL_BOTH,
					.oldest = PP_NCCL_OLDEST,
					.newest = PP_NCCL_NEWEST};
	if (pp_nccl_span_begins(message, "CollNet "))
		return read_collnet(message, ret);
	if (!ring && !pp_nccl_span_begins(message, "Channel "))
		return false;
	c.at += ring ? strlen("Ring") : strlen("Channel");
	if (!take_blanks(&c) || !take_ends(&c, ring, ret, &bus))
		return false;
	if (!read_tail((struct pp_nccl_span){c.at, (size_t)(c.end - c.at)}, ret))
		return false;
	date(ret, ring, ret->connection >= 0, bus);
	return true;
}

uint32_t pp_nccl_channel_owner(const struct pp_nccl_channel *c)
{
	return c->direction == PP_NCCL_RECEIVE ? c->to : c->from;
}

const char *pp_nccl_transport_name(enum pp_nccl_transport t)
{
	static const char *const names[] = {
		[PP_NCCL_VIA_NET] = "NET", [PP_NCCL_VIA_COLLNET] = "COLLNET",
		[PP_NCCL_VIA_P2P] = "P2P", [PP_NCCL_VIA_MNNVL] = "MNNVL",
		[PP_NCCL_VIA_SHM] = "SHM",
	};

	return names[t];
}
