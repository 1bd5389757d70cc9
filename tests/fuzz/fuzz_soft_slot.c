/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a neighbour can send to a slot, and what the network can send to a link that hands on. The
 * first byte chooses: even, a message to the slot; odd, a datagram (a train when it says so) to a
 * link on loopback.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "soft/link/link.h"
#include "soft/link/slot.h"

static struct soft_slot *slot;
static struct soft_link *link_;
static struct sockaddr_in link_at;
static int to_slot, to_link;

/* Reads every byte it is given, so that a sanitizer sees a bad length. */
static void see(void *arg, const struct soft_datagram *d)
{
	uint32_t *sum = arg;

	assert(d->len > 0 && d->len <= 65536);
	for (size_t i = 0; i < d->len; i++)
		*sum += d->bytes[i];
}

static void set_up(void)
{
	struct soft_link_config config = {.num_gids = 1};
	struct pp_error err;
	uint8_t *raw = config.gids[0].raw;

	if (soft_slot_take(&slot, &err) < 0)
		exit(77);
	/* An address of this process's own: others may be at 127.0.0.1. */
	raw[10] = raw[11] = 0xff;
	raw[12] = 127;
	raw[13] = 79;
	raw[14] = (uint8_t)(getpid() >> 8);
	raw[15] = (uint8_t)getpid();
	config.slot = soft_slot_number(slot);
	config.handover = slot;
	if (soft_link_open(&config, &link_, &err) < 0)
		exit(77);
	link_at.sin_family = AF_INET;
	link_at.sin_port = htons(4791);
	memcpy(&link_at.sin_addr, raw + 12, 4);
	to_slot = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	to_link = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void send_to_slot(const uint8_t *bytes, size_t size)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int n = snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "peerpath-soft.%u",
			 soft_slot_number(slot));

	(void)sendto(to_slot, bytes, size, MSG_DONTWAIT, (struct sockaddr *)&to,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

/* @segment 0: one datagram. */
static void send_to_link(int segment, const uint8_t *bytes, size_t size)
{
	(void)setsockopt(to_link, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	(void)sendto(to_link, bytes, size, MSG_DONTWAIT, (struct sockaddr *)&link_at,
		     sizeof(link_at));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t sum = 0;

	if (!slot)
		set_up();
	if (size == 0)
		return 0;
	if (data[0] & 1)
		send_to_link(data[0] >> 1, data + 1, size - 1);
	else
		send_to_slot(data + 1, size - 1);
	for (int i = 0; i < 3; i++) {
		(void)soft_link_receive(link_, SIZE_MAX, see, &sum);
		(void)soft_slot_receive(slot, SIZE_MAX, see, &sum);
	}
	return 0;
}
