/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer of a lane can put into the memory that both share: the first eight bytes are its
 * position, the rest lies at the front of the ring. Read as the engine does, to the end.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/lane/record.h"
#include "soft/lane/ring_shared.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct soft_record_read read;
	static struct soft_ring out;
	struct soft_ring in = {0};
	static int fd = -1;
	volatile uint32_t sum = 0;
	const uint8_t *at;
	uint64_t tail;
	size_t there;

	if (fd < 0 && soft_ring_make(&out, &fd) < 0)
		exit(77);
	if (size < sizeof(tail) || size - sizeof(tail) > SOFT_RING_BYTES)
		return 0;
	memcpy(&tail, data, sizeof(tail));
	memcpy(out.bytes, data + sizeof(tail), size - sizeof(tail));
	atomic_store(&out.shared->head, 0);
	atomic_store(&out.shared->tail, tail);
	if (soft_ring_adopt(&in, fd) < 0)
		exit(77);
	while ((at = soft_ring_peek(&in, &there))) {
		int64_t taken = soft_record_read(at, there, &read);

		if (taken < 0)
			break;
		assert(taken > 0 && (size_t)taken <= there);
		if (read.record.kind == SOFT_RECORD_PACKET && read.packet.payload)
			/* Every byte that the queue pair would be given. */
			for (uint32_t i = 0; i < read.packet.payload_bytes; i++)
				sum += read.packet.payload[i];
		soft_ring_take(&in, (size_t)taken);
	}
	(void)sum;
	soft_ring_done(&in);
	return 0;
}
