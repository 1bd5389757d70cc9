/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/banned.h"

int pp_gid_parse(const char *text, struct pp_gid *ret)
{
	struct pp_gid gid;

	if (inet_pton(AF_INET6, text, gid.raw) != 1)
		return -EINVAL;
	*ret = gid;
	return 0;
}

const char *pp_gid_format(const struct pp_gid *gid, char text[PP_GID_TEXT])
{
	/* Cannot fail: the family is known and the buffer holds INET6_ADDRSTRLEN. */
	return inet_ntop(AF_INET6, gid->raw, text, PP_GID_TEXT);
}

bool pp_gid_is_zero(const struct pp_gid *gid)
{
	static const struct pp_gid zero;

	return !memcmp(gid, &zero, sizeof(zero));
}

bool pp_gid_is_ipv4(const struct pp_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

bool pp_gid_is_link_local(const struct pp_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}
