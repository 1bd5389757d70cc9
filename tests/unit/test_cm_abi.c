/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own declarations of librdmacm's ABI beside the installed header, and the greeting that travels
 * in private data.
 */
#include "unit.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

#include "rdma/cm_parts.h"

#define SAME(ours, our_member, theirs, their_member)                                          \
	do {                                                                                  \
		assert_int_equal(offsetof(ours, our_member), offsetof(theirs, their_member)); \
		assert_int_equal(sizeof(((ours *)0)->our_member),                             \
				 sizeof(((theirs *)0)->their_member));                        \
	} while (0)

static void test_id(void **state)
{
	(void)state;
	SAME(struct pp_cm_id, verbs, struct rdma_cm_id, verbs);
	SAME(struct pp_cm_id, channel, struct rdma_cm_id, channel);
	SAME(struct pp_cm_id, context, struct rdma_cm_id, context);
	SAME(struct pp_cm_id, qp, struct rdma_cm_id, qp);
	SAME(struct pp_cm_id, route, struct rdma_cm_id, route);
	SAME(struct pp_cm_id, route.from, struct rdma_cm_id, route.addr.src_storage);
	SAME(struct pp_cm_id, route.to, struct rdma_cm_id, route.addr.dst_storage);
	SAME(struct pp_cm_id, route.path_records, struct rdma_cm_id, route.path_rec);
	SAME(struct pp_cm_id, port_space, struct rdma_cm_id, ps);
	SAME(struct pp_cm_id, port, struct rdma_cm_id, port_num);
	SAME(struct pp_cm_channel, fd, struct rdma_event_channel, fd);
	assert_int_equal(PP_CM_PS_TCP, RDMA_PS_TCP);
}

static void test_event(void **state)
{
	(void)state;
	SAME(struct pp_cm_event, id, struct rdma_cm_event, id);
	SAME(struct pp_cm_event, listener, struct rdma_cm_event, listen_id);
	SAME(struct pp_cm_event, type, struct rdma_cm_event, event);
	SAME(struct pp_cm_event, status, struct rdma_cm_event, status);
	SAME(struct pp_cm_event, parameters, struct rdma_cm_event, param.conn);
	assert_int_equal(PP_CM_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(PP_CM_CONNECT_REQUEST, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(PP_CM_CONNECT_RESPONSE, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(PP_CM_UNREACHABLE, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(PP_CM_REJECTED, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(PP_CM_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(PP_CM_DISCONNECTED, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(PP_CM_DEVICE_REMOVAL, RDMA_CM_EVENT_DEVICE_REMOVAL);
}

static void test_parameters(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct pp_cm_parameters), sizeof(struct rdma_conn_param));
	SAME(struct pp_cm_parameters, private_data, struct rdma_conn_param, private_data);
	SAME(struct pp_cm_parameters, private_length, struct rdma_conn_param, private_data_len);
	SAME(struct pp_cm_parameters, responder_resources, struct rdma_conn_param,
	     responder_resources);
	SAME(struct pp_cm_parameters, initiator_depth, struct rdma_conn_param, initiator_depth);
	SAME(struct pp_cm_parameters, retry_count, struct rdma_conn_param, retry_count);
	SAME(struct pp_cm_parameters, rnr_retry_count, struct rdma_conn_param, rnr_retry_count);
	SAME(struct pp_cm_parameters, qp_num, struct rdma_conn_param, qp_num);
}

static void test_greeting(void **state)
{
	const struct pp_cm_greeting g = {0x0123456789abcdef, 5, 1024};
	uint8_t bytes[PP_CM_GREETING];
	struct pp_cm_greeting back;

	(void)state;
	pp_cm_greet(bytes, &g);
	assert_int_equal(pp_cm_greeting_read(bytes, sizeof(bytes), &back), 0);
	assert_int_equal(back.nonce, g.nonce);
	assert_int_equal(back.qp, 5);
	assert_int_equal(back.mtu, 1024);
	for (size_t len = 0; len < sizeof(bytes); len++)
		assert_int_equal(pp_cm_greeting_read(bytes, len, &back), -EBADMSG);
	assert_int_equal(pp_cm_greeting_read(NULL, 56, &back), -EBADMSG);
	/* Another version; an MTU that is none. */
	for (size_t at = 4; at < 16; at += at == 4 ? 8 : 100) {
		bytes[at + 3] ^= 1;
		assert_int_equal(pp_cm_greeting_read(bytes, sizeof(bytes), &back), -EBADMSG);
		bytes[at + 3] ^= 1;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_id),
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_greeting),
	};

	return cmocka_run_group_tests_name("cm_abi", tests, NULL, NULL);
}
