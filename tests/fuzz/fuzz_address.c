/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of queue pairs that a peer sends.
 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rdma/endpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *object = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct pp_address a = {0}, back = {0};
	struct pp_error err = {0};

	if (pp_address_parse(object, &a, &err)) {
		assert(err.code == -EBADMSG && *err.text);
	} else {
		struct pp_buf b = PP_BUF(4096);
		struct pp_json j = PP_JSON(&b, false);
		json_t *again;

		assert(a.qpn <= 0xffffff && a.psn <= 0xffffff && a.rd_atomic <= 255);
		assert(a.mtu >= 256 && a.mtu <= 4096);
		pp_address_write(&j, NULL, &a);
		again = json_loadb(b.data, b.len, 0, NULL);
		assert(again && !pp_address_parse(again, &back, &err));
		assert(a.qpn == back.qpn && a.psn == back.psn && a.lid == back.lid);
		assert(!memcmp(a.gid, back.gid, sizeof(a.gid)) && a.mtu == back.mtu);
		assert(a.rd_atomic == back.rd_atomic && a.ethernet == back.ethernet);
		json_decref(again);
		pp_buf_done(&b);
	}
	json_decref(object);
	return 0;
}
