/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has UDP port 4791 of an address, by /proc/net/udp and udp6.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "cli/soft_program.h"
#include "soft/wire/packet.h"
#include "base/banned.h"

enum { LINES_MAX = 65536, FIELD_LOCAL = 1, FIELD_UID = 7 };

struct owner {
	struct soft_gid gid;
	bool any; /* every address: not ours, so the kernel's (rdma_rxe) or a stranger's */
	uint64_t uid;
};

/* "0100007F:12B7": the address in words of 32 bits, each as a number of this machine. */
static bool parse_local(char *text, bool ipv4, struct owner *ret)
{
	char *colon = strchr(text, ':');
	size_t words = ipv4 ? 1 : 4;
	uint64_t n;

	if (!colon || (size_t)(colon - text) != words * 8 || pp_parse_hex(colon + 1, 65535, &n) ||
	    n != SOFT_UDP_PORT)
		return false;
	*colon = '\0';
	*ret = (struct owner){.any = true};
	if (ipv4)
		ret->gid.raw[10] = ret->gid.raw[11] = 0xff;
	while (words--) {
		uint32_t word;

		if (pp_parse_hex(text + words * 8, UINT32_MAX, &n))
			return false;
		text[words * 8] = '\0';
		word = (uint32_t)n;
		ret->any &= !word;
		memcpy(ret->gid.raw + (ipv4 ? 12 : words * 4), &word, sizeof(word));
	}
	return true;
}

/* A line about port 4791; false: it is about something else. */
static bool parse_line(char *line, bool ipv4, struct owner *ret)
{
	char *word, *local = NULL;
	unsigned int field = 0;

	while ((word = strsep(&line, " \n"))) {
		if (!*word)
			continue;
		if (field == FIELD_LOCAL)
			local = word;
		if (field++ == FIELD_UID)
			return parse_local(local, ipv4, ret) &&
			       !pp_parse_u64(word, 0, UINT32_MAX, &ret->uid);
	}
	return false;
}

static const struct soft_gid *hit(const struct soft_config *devices, const struct owner *o,
				  bool ipv4)
{
	for (unsigned int i = 0; i < devices->num_devices; i++) {
		const struct soft_config_device *d = &devices->devices[i];

		for (unsigned int j = 0; j < d->num_gids; j++)
			if (soft_gid_is_ipv4(&d->gids[j].gid) == ipv4 &&
			    (o->any ||
			     (o->uid != geteuid() && soft_gid_equal(&d->gids[j].gid, &o->gid))))
				return &d->gids[j].gid;
	}
	return NULL;
}

static const struct soft_gid *search(const struct soft_config *devices, bool ipv4)
{
	FILE *file = fopen(ipv4 ? "/proc/net/udp" : "/proc/net/udp6", "re");
	const struct soft_gid *taken = NULL;
	char *line PP_AUTO_FREE = NULL;
	size_t size = 0;
	struct owner o;

	if (!file)
		return NULL;
	for (unsigned int i = 0; i < LINES_MAX && !taken && getline(&line, &size, file) > 0; i++)
		if (parse_line(line, ipv4, &o))
			taken = hit(devices, &o, ipv4);
	(void)fclose(file);
	return taken;
}

const char *pp_soft_port_taken(const struct soft_config *devices, char *text, size_t size)
{
	const struct soft_gid *taken = search(devices, true);

	if (!taken)
		taken = search(devices, false);
	return taken ? soft_config_gid_text(taken, text, size) : NULL;
}
