/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <string.h>
#include <sys/utsname.h>

#include "soft/config/config.h"

#include "base/banned.h"

/* FNV-1a: where there is no MAC address, a GUID that differs by name and address. */
static uint64_t hash(uint64_t h, const void *bytes, size_t len)
{
	for (const unsigned char *p = bytes; len--; p++)
		h = (h ^ *p) * 0x100000001b3u;
	return h;
}

uint64_t soft_config_guid(const struct soft_config_device *c)
{
	uint64_t h = hash(0xcbf29ce484222325u, c->mac, sizeof(c->mac));
	struct utsname host;

	if (!uname(&host))
		h = hash(h, host.nodename, strlen(host.nodename));
	h = hash(h, c->gids[0].gid.raw, sizeof(c->gids[0].gid.raw));
	h = hash(h, c->name, strlen(c->name));
	return htobe64((h & 0x00ffffffffffffffu) | 0x0200000000000000u);
}
