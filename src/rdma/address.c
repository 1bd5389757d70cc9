/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of queue pairs as JSON. They come from a peer: each number is bounded by its field on
 * the wire before it reaches a provider.
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "node/gid.h"
#include "rdma/endpoint.h"
#include "base/banned.h"

enum { QPN_MOST = 0xffffff, PSN_MOST = 0xffffff, RD_ATOMIC_MOST = 255 };

void pp_address_write(struct pp_json *j, const char *key, const struct pp_address *a)
{
	char text[PP_GID_TEXT];
	struct pp_gid gid;

	memcpy(gid.raw, a->gid, sizeof(gid.raw));
	pp_json_object(j, key);
	pp_json_u64(j, "qpn", a->qpn);
	pp_json_u64(j, "psn", a->psn);
	pp_json_u64(j, "lid", a->lid);
	pp_json_str(j, "gid", pp_gid_format(&gid, text));
	pp_json_u64(j, "mtu_bytes", a->mtu);
	pp_json_u64(j, "rd_atomic", a->rd_atomic);
	pp_json_bool(j, "ethernet", a->ethernet);
	pp_json_end_object(j);
}

static int wrong(struct pp_error *err, const char *what)
{
	return pp_error_set(err, -EBADMSG, "the peer's address: %s", what);
}

static int number(const json_t *object, const char *key, uint64_t most, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);
	json_int_t i;

	if (!json_is_integer(value))
		return -EBADMSG;
	i = json_integer_value(value);
	if (i < 0 || (uint64_t)i > most)
		return -ERANGE;
	*ret = (uint64_t)i;
	return 0;
}

static int gid_of(const json_t *object, uint8_t ret[16])
{
	const json_t *value = json_object_get(object, "gid");
	struct pp_gid gid;

	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
		return -EBADMSG;
	if (pp_gid_parse(json_string_value(value), &gid))
		return -EBADMSG;
	memcpy(ret, gid.raw, sizeof(gid.raw));
	return 0;
}

static bool mtu_is_legal(uint64_t mtu)
{
	return mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096;
}

int pp_address_parse(const json_t *object, struct pp_address *ret, struct pp_error *err)
{
	uint64_t qpn = 0, psn = 0, lid = 0, mtu = 0, rd_atomic = 0;
	const struct {
		const char *key;
		uint64_t most, *to;
	} numbers[] = {
		{"qpn", QPN_MOST, &qpn},
		{"psn", PSN_MOST, &psn},
		{"lid", UINT16_MAX, &lid},
		{"mtu_bytes", 4096, &mtu},
		{"rd_atomic", RD_ATOMIC_MOST, &rd_atomic},
	};
	const json_t *ethernet = json_object_get(object, "ethernet");
	struct pp_address a = {0};

	for (size_t i = 0; i < PP_ARRAY_LEN(numbers); i++)
		if (number(object, numbers[i].key, numbers[i].most, numbers[i].to))
			return pp_error_set(err, -EBADMSG,
					    "the peer's address: %s is no number of 0 to %llu",
					    numbers[i].key, (unsigned long long)numbers[i].most);
	if (!mtu_is_legal(mtu))
		return wrong(err, "mtu_bytes is no MTU of InfiniBand's");
	if (gid_of(object, a.gid))
		return wrong(err, "gid is no GID");
	if (!json_is_boolean(ethernet))
		return wrong(err, "ethernet is neither true nor false");
	a.qpn = (uint32_t)qpn;
	a.psn = (uint32_t)psn;
	a.lid = (uint16_t)lid;
	a.mtu = (unsigned int)mtu;
	a.rd_atomic = (unsigned int)rd_atomic;
	a.ethernet = json_is_true(ethernet);
	*ret = a;
	return 0;
}
