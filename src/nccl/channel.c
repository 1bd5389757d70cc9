/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/channel.h"

#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static bool cut_tail(struct pp_nccl_span *s, const char *tail)
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
	for (size_t i = 0; i < PP_ARRAY_LEN(WAYS); i++) {
		if (!pp_nccl_span_begins(s, WAYS[i].head))
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

/* Where the parts stand in each form; a field number of 0 is "not printed". */
static const struct form {
	const char *pattern;
	unsigned char connection, from, from_bus, to, to_bus, tail;
	bool ring;
} FORMS[] = {
	{"Channel %u/%u : %u[%w] -> %u[%w] %s", 1, 2, 3, 4, 5, 6, false},
	{"Channel %u : %u[%w] -> %u[%w] %s", 0, 1, 2, 3, 4, 5, false},
	{"Ring %u : %u[%w] -> %u[%w] %s", 0, 1, 2, 3, 4, 5, true},
	{"Ring %u : %u -> %u %s", 0, 1, 0, 2, 0, 3, true},
};

static const struct form *find_form(struct pp_nccl_span message, struct pp_nccl_field *f)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(FORMS); i++)
		if (pp_nccl_match(FORMS[i].pattern, message, f))
			return &FORMS[i];
	return NULL;
}

/* "[send] via NET/..." */
static bool read_tail(struct pp_nccl_span tail, struct pp_nccl_channel *c)
{
	size_t skip;

	if (pp_nccl_span_begins(tail, "[send] via "))
		c->direction = PP_NCCL_SEND;
	else if (pp_nccl_span_begins(tail, "[receive] via "))
		c->direction = PP_NCCL_RECEIVE;
	else if (!pp_nccl_span_begins(tail, "via "))
		return false;
	skip = (size_t)(pp_nccl_span_find(tail, "via ") - tail.at) + 4;
	return read_way((struct pp_nccl_span){tail.at + skip, tail.len - skip}, c);
}

bool pp_nccl_channel_read(struct pp_nccl_span message, struct pp_nccl_channel *ret)
{
	struct pp_nccl_field f[PP_NCCL_FIELDS];
	const struct form *form;

	*ret = (struct pp_nccl_channel){.connection = -1,
					.device = -1,
					.proxy = -1,
					.direction = PP_NCCL_BOTH,
					.oldest = PP_NCCL_OLDEST,
					.newest = PP_NCCL_NEWEST};
	if (pp_nccl_span_begins(message, "CollNet "))
		return read_collnet(message, ret);
	form = find_form(message, f);
	if (!form || !rank_fits(f[form->from].value, f[form->to].value) ||
	    !rank_fits(f[0].value, f[form->connection].value))
		return false;
	ret->channel = (uint32_t)f[0].value;
	ret->from = (uint32_t)f[form->from].value;
	ret->to = (uint32_t)f[form->to].value;
	if (form->connection)
		ret->connection = (int)f[form->connection].value;
	if (!read_tail(f[form->tail].text, ret))
		return false;
	date(ret, form->ring, form->connection > 0,
	     form->from_bus && (is_bus(f[form->from_bus].text) || is_bus(f[form->to_bus].text)));
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
