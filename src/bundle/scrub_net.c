/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network addresses. Neighbours stay neighbours: addresses of one /24 (IPv4) or one /64 (IPv6)
 * come out together. They go where documentation lives: 192.0.2.0/24, 198.51.100.0/24,
 * 203.0.113.0/24 in blocks of 16, then 198.18.0.0/15 (benchmarks), and 2001:db8::/32.
 */
#include <stdlib.h>
#include <string.h>

#include "bundle/scrub_map.h"
#include "base/banned.h"

enum {
	SMALL_NETS = 48, /* three ranges of sixteen blocks */
	SMALL_HOSTS = 14,
	LARGE_HOSTS = 254,
	NETS_MAX = SMALL_NETS + 512,
	PREFIXES_MAX = 4096,
};

struct pp_scrub_net {
	uint32_t network; /* of the original, upper 24 bits */
	uint8_t n;	  /* addresses seen */
	uint8_t order[LARGE_HOSTS];
};

static uint32_t substitute(size_t net, size_t host)
{
	static const uint32_t small[] = {0xc0000200, 0xc6336400, 0xcb007100};

	if (net < SMALL_NETS)
		return small[net / 16] + (uint32_t)(net % 16 * 16 + host + 1);
	return 0xc6120000 + (uint32_t)((net - SMALL_NETS) * 256 + host + 1);
}

/* This network, the unspecified address, loopback, groups, masks, broadcast: nobody's. */
static bool ipv4_is_public_knowledge(uint32_t a)
{
	uint32_t first = a >> 24;

	return first == 0 || first == 127 || first >= 224 || a == 0xa9fea9fe;
}

static struct pp_scrub_net *new_net(struct pp_scrub_map *m, uint32_t network)
{
	struct pp_scrub_net *nets;

	if (m->n_nets == NETS_MAX) {
		m->failed = true;
		return NULL;
	}
	nets = reallocarray(m->nets, m->n_nets + 1, sizeof(*nets));
	if (!nets) {
		m->failed = true;
		return NULL;
	}
	m->nets = nets;
	nets[m->n_nets] = (struct pp_scrub_net){.network = network};
	return &nets[m->n_nets++];
}

uint32_t pp_scrub_ipv4(struct pp_scrub_map *m, uint32_t address)
{
	struct pp_scrub_net *net, *open = NULL;
	uint8_t host = (uint8_t)address;

	if (ipv4_is_public_knowledge(address))
		return address;
	for (size_t i = 0; i < m->n_nets; i++) {
		net = &m->nets[i];
		if (net->network != address >> 8)
			continue;
		for (size_t h = 0; h < net->n; h++)
			if (net->order[h] == host)
				return substitute(i, h);
		if (net->n < (i < SMALL_NETS ? SMALL_HOSTS : LARGE_HOSTS))
			open = net;
	}
	if (!open)
		open = new_net(m, address >> 8);
	if (!open)
		return 0xc0000200; /* the map has failed: nothing of it will be used */
	open->order[open->n++] = host;
	return substitute((size_t)(open - m->nets), open->n - 1u);
}

static uint64_t load64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

static void store64(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

static uint64_t prefix(struct pp_scrub_map *m, uint64_t upper)
{
	static const uint64_t documentation = (uint64_t)0x20010db8 << 32;
	uint64_t *prefixes;

	for (size_t i = 0; i < m->n_prefixes; i++)
		if (m->prefixes[i] == upper)
			return documentation | (i + 1);
	prefixes = m->n_prefixes < PREFIXES_MAX
			   ? reallocarray(m->prefixes, m->n_prefixes + 1, sizeof(*prefixes))
			   : NULL;
	if (!prefixes) {
		m->failed = true;
		return documentation;
	}
	m->prefixes = prefixes;
	prefixes[m->n_prefixes++] = upper;
	return documentation | m->n_prefixes;
}

void pp_scrub_ipv6(struct pp_scrub_map *m, uint8_t a[16])
{
	uint64_t upper = load64(a), lower = load64(a + 8);
	uint32_t v4;

	if (!upper && lower >> 32 == 0xffff) {
		v4 = pp_scrub_ipv4(m, (uint32_t)lower);
		store64(a + 8, (uint64_t)0xffff << 32 | v4);
		return;
	}
	/* unspecified, loopback, groups */
	if ((!upper && lower <= 1) || a[0] == 0xff)
		return;
	/* fe80::/10 is the same network everywhere */
	if (upper >> 54 != 0x3fa)
		store64(a, prefix(m, upper));
	store64(a + 8, pp_scrub_guid(m, lower));
}
