/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stranger can send to a control socket of the connection manager.
 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "soft/cm/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int length = soft_cm_message_length(data, size);
	uint8_t again[SOFT_CM_MESSAGE_MAX];
	struct soft_cm_message m;

	assert(length <= SOFT_CM_MESSAGE_MAX);
	assert(length > 0 || !length || length == -EPROTO || length == -EPROTONOSUPPORT);
	if (length <= 0 || (size_t)length > size) {
		assert(soft_cm_message_read(data, size, &m) < 0);
		return 0;
	}
	if (soft_cm_message_read(data, (size_t)length, &m))
		return 0;
	assert(m.private_len <= soft_cm_private_room(m.kind));
	assert(soft_cm_message_write(&m, again) == (size_t)length);
	again[79] = data[79]; /* the one byte that says nothing */
	assert(!memcmp(again, data, (size_t)length));
	return 0;
}
