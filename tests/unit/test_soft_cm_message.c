/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection manager's messages: every field where the head comment says it is, what is
 * refused, and the room for private data that rdma_connect(3), rdma_accept(3) and rdma_reject(3)
 * state.
 */
#include "unit.h"

#include <errno.h>

#include "soft/cm/address.h"
#include "soft/cm/message.h"

static struct soft_cm_message request(void)
{
	struct soft_cm_message m = {
		.kind = SOFT_CM_REQUEST,
		.token = 0x0102030405060708,
		.qpn = 0x00a1b2c3,
		.psn = 0x00d4e5f6,
		.qkey = 0x01234567,
		.ece_vendor = 0x15b3,
		.ece_options = 0x30000002,
		.responder_resources = 16,
		.initiator_depth = 15,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.flow_control = 1,
		.srq = 1,
		.mtu = 3,
		.qp_type = 2,
		.private_len = 5,
		.private_data = "hello",
	};

	memset(m.from.raw, 0x11, sizeof(m.from.raw));
	memset(m.to.raw, 0x22, sizeof(m.to.raw));
	return m;
}

/* Written down byte by byte: other hosts have other builds. */
static const uint8_t bytes[85] = {
	'P',  'P',  'C',  'M',	1,    1,    0,	  85,	1,    2,    3,	  4,	5,    6,    7,
	8,    0,    0xa1, 0xb2, 0xc3, 0,    0xd4, 0xe5, 0xf6, 1,    0x23, 0x45, 0x67, 0x11, 0x11,
	0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x22,
	0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
	0,    0,    0x15, 0xb3, 0x30, 0,    0,	  2,	16,   15,   7,	  6,	1,    1,    3,
	2,    0,    0,	  5,	0,    'h',  'e',  'l',	'l',  'o',
};

static void test_bytes(void **state)
{
	uint8_t out[SOFT_CM_MESSAGE_MAX];
	struct soft_cm_message m = request(), back;

	(void)state;
	assert_int_equal(soft_cm_message_write(&m, out), sizeof(bytes));
	assert_memory_equal(out, bytes, sizeof(bytes));
	assert_int_equal(soft_cm_message_read(bytes, sizeof(bytes), &back), 0);
	assert_memory_equal(&back, &m, sizeof(m));
}

static void test_length(void **state)
{
	uint8_t other[sizeof(bytes)];

	(void)state;
	for (size_t n = 0; n < 8; n++)
		assert_int_equal(soft_cm_message_length(bytes, n), 0);
	for (size_t n = 8; n <= sizeof(bytes); n++)
		assert_int_equal(soft_cm_message_length(bytes, n), sizeof(bytes));
	/* A wrong first byte is enough to know a stranger: he may wait for us to speak. */
	for (size_t n = 1; n < 5; n++)
		assert_int_equal(soft_cm_message_length((const uint8_t *)"SSH-2.0-", n), -EPROTO);
	memcpy(other, bytes, sizeof(bytes));
	other[4] = 2;
	assert_int_equal(soft_cm_message_length(other, sizeof(other)), -EPROTONOSUPPORT);
	other[4] = 1;
	other[7] = SOFT_CM_FIXED_BYTES - 1;
	assert_int_equal(soft_cm_message_length(other, sizeof(other)), -EPROTO);
	other[6] = 0xff;
	assert_int_equal(soft_cm_message_length(other, sizeof(other)), -EPROTO);
}

static void test_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {
		{0, 'p'}, {4, 0},  {5, 0},  {5, SOFT_CM_KINDS},
		{6, 1},	  {7, 84}, {16, 1}, {20, 1},
		{70, 8},  {71, 8}, {73, 2}, {74, 0},
		{74, 6},  {78, 4}, {78, 6}, {5, SOFT_CM_READY}, /* has no private data */
	};
	struct soft_cm_message m;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t other[sizeof(bytes)];

		memcpy(other, bytes, sizeof(bytes));
		other[wrong[i].at] = wrong[i].value;
		if (soft_cm_message_read(other, sizeof(other), &m) != -EPROTO)
			fail_msg("byte %zu = %u is taken", wrong[i].at, wrong[i].value);
	}
	for (size_t n = 0; n < sizeof(bytes); n++)
		assert_int_equal(soft_cm_message_read(bytes, n, &m), -EPROTO);
}

static void test_rooms(void **state)
{
	(void)state;
	assert_int_equal(soft_cm_private_room(SOFT_CM_REQUEST), 56);
	assert_int_equal(soft_cm_private_room(SOFT_CM_REPLY), 196);
	assert_int_equal(soft_cm_private_room(SOFT_CM_REJECT), 148);
	assert_int_equal(soft_cm_private_room(SOFT_CM_LOOKUP), 180);
	assert_int_equal(soft_cm_private_room(SOFT_CM_LOOKUP_REPLY), 136);
	assert_int_equal(soft_cm_private_room(SOFT_CM_READY), 0);
	assert_int_equal(soft_cm_private_room(SOFT_CM_KINDS), 0);
}

static void test_addresses(void **state)
{
	struct sockaddr_storage a = {.ss_family = AF_INET6};
	struct sockaddr *s = (struct sockaddr *)&a;
	struct soft_gid gid;

	(void)state;
	assert_int_equal(soft_cm_address_length(NULL), 0);
	assert_int_equal(soft_cm_address_length(s), 28);
	assert_true(soft_cm_address_any(s));
	soft_cm_address_loopback(&a);
	assert_false(soft_cm_address_any(s));
	soft_cm_address_set_port(&a, 0x1234);
	assert_int_equal(soft_cm_address_port(s), 0x1234);
	/* ::ffff:10.9.0.1, as a socket of both families names an IPv4 peer */
	memset((uint8_t *)&a + 8, 0, 16);
	memcpy((uint8_t *)&a + 18, "\xff\xff\x0a\x09\x00\x01", 6);
	gid = soft_cm_address_gid(s);
	soft_cm_address_plain(&a);
	assert_int_equal(a.ss_family, AF_INET);
	assert_int_equal(soft_cm_address_length(s), 16);
	assert_int_equal(soft_cm_address_port(s), 0x1234);
	assert_memory_equal((uint8_t *)&a + 4, "\x0a\x09\x00\x01", 4);
	assert_memory_equal(soft_cm_address_gid(s).raw, gid.raw, 16);
	assert_true(soft_gid_is_ipv4(&gid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),	  cmocka_unit_test(test_length),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_rooms),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
