/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of faults: what each form means, and what is refused with a word that helps. Numbers
 * of errno are the kernel's (asm-generic/errno.h; 524 of linux/errno.h), opcodes the InfiniBand
 * specification's.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>

#include "soft/fault/request.h"
#include "soft/fault/set.h"

static struct soft_fault_spec spec;
static struct pp_error err;

static int parse(const char *text)
{
	memset(&err, 0, sizeof(err));
	return soft_fault_spec_parse(text, &spec, &err);
}

static void good(const char *text)
{
	if (parse(text))
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(spec.text, text);
}

static void test_calls(void **state)
{
	static const struct {
		const char *text;
		int error;
	} rows[] = {
		{"reg_mr=ENOMEM", 12},	      {"reg_mr=12", 12},
		{"reg_mr=EINVAL", 22},	      {"reg_dmabuf_mr=EPROTONOSUPPORT", 93},
		{"create_qp=EOPNOTSUPP", 95}, {"create_qp=ENOTSUP", 95},
		{"create_cq=ENOTSUPP", 524},  {"open_device=524", 524},
		{"alloc_pd=ENODEV", 19},      {"modify_qp_rtr=ETIMEDOUT", 110},
		{"create_ah=EAGAIN", 11},     {"create_srq=EIO", 5},
		{"post_send=ENOSPC", 28},     {"post_recv=4095", 4095},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		good(rows[i].text);
		assert_int_equal(spec.error, rows[i].error);
		assert_int_equal(spec.when.first, 1);
		assert_true(spec.when.last == UINT64_MAX);
	}
	good("modify_qp_rts=EIO");
	assert_int_equal(spec.noun - SOFT_FAULT_MODIFY_QP_RESET, 3); /* IBV_QPS_RTS */
}

/* Which of twelve fire. */
static unsigned int fires(const char *text)
{
	unsigned int bits = 0;

	good(text);
	for (unsigned int n = 1; n <= 12; n++)
		bits |= (unsigned int)soft_fault_when_fires(&spec.when, n, 0xffffffffu) << (n - 1);
	return bits;
}

static void test_when(void **state)
{
	(void)state;
	assert_int_equal(fires("reg_mr=EIO"), 0xfff);
	assert_int_equal(fires("reg_mr=EIO@3"), 1 << 2);
	assert_int_equal(fires("reg_mr=EIO@3.."), 0xffc);
	assert_int_equal(fires("reg_mr=EIO@3..5"), 0x01c);
	assert_int_equal(fires("reg_mr=EIO@/4"), 0x888);
	assert_int_equal(fires("reg_mr=EIO@/4@5..8"), 0x080);
	assert_int_equal(fires("reg_mr=EIO@100%"), 0xfff);
	assert_int_equal(fires("reg_mr=EIO@99.9999%"), 0);
	good("reg_mr=EIO@1%");
	assert_int_equal(spec.when.ppm, 10000);
	/* 10000 of 10^6, of 2^32: 42949672.96 */
	assert_true(soft_fault_when_fires(&spec.when, 1, 42949672));
	assert_false(soft_fault_when_fires(&spec.when, 1, 42949673));
	good("loss=0.25%");
	assert_int_equal(spec.when.ppm, 2500);
	good("loss=7ppm");
	assert_int_equal(spec.when.ppm, 7);
	good("loss=5%@1..100");
	assert_true(spec.when.ppm == 50000 && spec.when.last == 100);
}

static bool is(uint8_t opcode, uint8_t syndrome)
{
	return soft_fault_which_is(&spec.which, opcode, syndrome);
}

/* RC 0x00, UC 0x20, UD 0x60; SEND_FIRST 0, WRITE_FIRST 6, READ_REQUEST 12, ACKNOWLEDGE 17. */
static void test_which(void **state)
{
	(void)state;
	good("loss=ack@1");
	assert_true(is(0x11, 0x1f));
	assert_false(is(0x11, 0x60) || is(0x11, 0x2e) || is(0x00, 0));
	good("loss=nak");
	assert_true(is(0x11, 0x60) && is(0x11, 0x62));
	assert_false(is(0x11, 0x00) || is(0x11, 0x2e));
	good("loss=rnr");
	assert_true(is(0x11, 0x2e));
	assert_false(is(0x11, 0x60));
	good("corrupt=write_first");
	assert_true(is(0x06, 0) && is(0x26, 0));
	assert_false(is(0x07, 0) || is(0x00, 0));
	good("spoil=write|read_response");
	assert_true(is(0x06, 0) && is(0x0d, 0));
	assert_false(is(0x04, 0));
	good("corrupt=RC_WRITE_FIRST");
	assert_true(is(0x06, 0));
	assert_false(is(0x26, 0));
	good("loss=read|read_response_last");
	assert_true(is(0x0c, 0) && is(0x0f, 0));
	assert_false(is(0x0d, 0) || is(0x0a, 0));
	good("loss=send");
	assert_true(is(0x00, 0) && is(0x04, 0) && is(0x17, 0) && is(0x64, 0));
	assert_false(is(0x06, 0) || is(0x11, 0));
	good("loss=cnp");
	assert_true(is(0x81, 0));
	good("loss=@17");
	assert_true(is(0x00, 0) && is(0x11, 0x60) && is(0x81, 0));
	good("ecn=1%");
	assert_true(is(0x64, 0));
	good("delay=5ms~1500us:last@10%");
	assert_true(is(0x02, 0) && is(0x08, 0));
	assert_false(is(0x0a, 0));
	assert_int_equal(spec.number, 5000000);
	assert_int_equal(spec.more, 1500000);
	assert_int_equal(spec.when.ppm, 100000);
}

static void test_states(void **state)
{
	struct soft_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, 10, 9, 0, 2}};

	(void)state;
	good("partition=all");
	assert_true(spec.all);
	good("partition_out=10.9.0.2");
	assert_false(spec.all);
	assert_memory_equal(spec.address.raw, gid.raw, 16);
	good("partition_in=fd00::1");
	assert_int_equal(inet_pton(AF_INET6, "fd00::1", gid.raw), 1);
	assert_memory_equal(spec.address.raw, gid.raw, 16);
	good("bandwidth=2G");
	assert_true(spec.number == 2000000000);
	good("port=down");
	assert_int_equal(spec.number, 1);
	good("port=off");
	assert_true(spec.off);
	good("gid=off:3");
	assert_true(spec.number == 3 && spec.more == UINT64_MAX);
	good("gid=1:0");
	assert_true(spec.number == 0 && spec.more == 1);
	good("qp=fatal:0x010203");
	assert_true(spec.number == 0x010203 && !spec.all);
	good("qp=fatal");
	assert_true(spec.all);
	good("device=removed");
	good("cq_delay=200us");
	assert_int_equal(spec.number, 200000);
	good("cq_depth=4");
	assert_int_equal(spec.number, 4);
	good("seed=18446744073709551615");
	assert_true(spec.number == UINT64_MAX);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "no \"=\""},
		{"loss", "no \"=\""},
		{"reg_mt=ENOMEM", "is it reg_mr?"},
		{"partion=all", "is it partition?"},
		{"zzzzzzzzzz=1", "no fault"},
		{"reg_mr=ENOMEMM", "an errno"},
		{"reg_mr=0", "an errno"},
		{"reg_mr=-12", "an errno"},
		{"reg_mr=4096", "an errno"},
		{"reg_mr=", "an errno"},
		{"reg_mr=ENOMEM@0", "neither N"},
		{"reg_mr=ENOMEM@", "neither N"},
		{"reg_mr=ENOMEM@5..3", "neither N"},
		{"reg_mr=ENOMEM@/0", "neither N"},
		{"reg_mr=ENOMEM@1@2", "twice"},
		{"reg_mr=ENOMEM@1%@2%", "twice"},
		{"loss=1%@2%", "twice"},
		{"loss=101%", "a share"},
		{"loss=100.1%", "a share"},
		{"loss=0.00001%", "a share"},
		{"loss=1", "a share"},
		{"loss=acks", "a share"},
		{"loss=ack|", "a share"},
		{"delay=5", "a time"},
		{"delay=5ms~", "a time"},
		{"delay=61s", "a time"},
		{"delay=99999999999999999999s", "a time"},
		{"bandwidth=1k", "bits a second"},
		{"partition=10.9.0", "an address"},
		{"port=sideways", "down or up"},
		{"port=down@1", "has no \"@\""},
		{"gid=16:0", "INDEX"},
		{"gid=off", ""}, /* a fault taken away, not an index */
		{"qp=fatal:0x1000000", "fatal"},
		{"qp=off", "stays"},
		{"device=off", "stays"},
		{"cq_depth=0", "completions"},
		{"loss=1% seed=7", "blanks"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int r = parse(rows[i].text);

		if (!*rows[i].says) {
			assert_int_equal(r, 0);
			continue;
		}
		assert_int_equal(r, -EINVAL);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, err.text,
				 rows[i].says);
	}
}

static void test_set(void **state)
{
	static struct soft_fault_set set;
	uint64_t random = 1;

	(void)state;
	memset(&set, 0, sizeof(set));
	good("reg_mr=ENOMEM@2");
	assert_int_equal(soft_fault_set_add(&set, &spec, &err), 0);
	good("reg_mr=EIO@3");
	assert_int_equal(soft_fault_set_add(&set, &spec, &err), 0);
	good("cq_depth=4");
	assert_int_equal(soft_fault_set_add(&set, &spec, &err), 0);
	good("cq_depth=8");
	assert_int_equal(soft_fault_set_add(&set, &spec, &err), 0);
	assert_int_equal(set.num, 3);
	assert_int_equal(soft_fault_set_find(&set, SOFT_FAULT_CQ_DEPTH)->spec.number, 8);
	assert_int_equal(soft_fault_set_call(&set, SOFT_FAULT_REG_MR, &random), 0);
	assert_int_equal(soft_fault_set_call(&set, SOFT_FAULT_CREATE_QP, &random), 0);
	assert_int_equal(soft_fault_set_call(&set, SOFT_FAULT_REG_MR, &random), 12);
	assert_int_equal(soft_fault_set_call(&set, SOFT_FAULT_REG_MR, &random), 5);
	assert_int_equal(soft_fault_set_call(&set, SOFT_FAULT_REG_MR, &random), 0);
	assert_int_equal(set.rules[0].seen, 4);
	assert_int_equal(set.rules[0].fired, 1);
	good("reg_mr=off");
	assert_int_equal(soft_fault_set_add(&set, &spec, &err), 0);
	assert_int_equal(set.num, 1);
	good("loss=1%");
	for (unsigned int i = 1; i < SOFT_FAULTS_MAX; i++)
		assert_int_equal(soft_fault_set_add(&set, &spec, &err), 0);
	assert_int_equal(soft_fault_set_add(&set, &spec, &err), -ENOSPC);
}

static int request(const char *text, struct soft_fault_request *ret)
{
	memset(&err, 0, sizeof(err));
	return soft_fault_request_parse(text, strlen(text), ret, &err);
}

static void test_requests(void **state)
{
	static const char *const wrong[] = {
		"",
		"show",
		"fault",
		"fault ",
		"fault *",
		"fault * ",
		"fault  loss=1%",
		"fault * loss",
		"fault * loss=1% clear",
		"fault * loss=1%\n",
		"faultx * clear",
	};
	struct soft_fault_request q;
	char many[2000] = "fault *";

	(void)state;
	assert_int_equal(request("fault * clear", &q), 0);
	assert_true(q.clear && q.num == 0);
	assert_int_equal(request("fault soft_lo loss=1%  seed=7", &q), 0);
	assert_string_equal(q.device, "soft_lo");
	assert_int_equal(q.num, 2);
	assert_int_equal(q.specs[1].number, 7);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (request(wrong[i], &q) != -EINVAL || !err.text[0])
			fail_msg("taken: %s", wrong[i]);
	for (int i = 0; i < SOFT_FAULT_REQUEST_SPECS; i++)
		strncat(many, " loss=1%", sizeof(many) - strlen(many) - 1);
	assert_int_equal(request(many, &q), 0);
	strncat(many, " loss=1%", sizeof(many) - strlen(many) - 1);
	assert_int_equal(request(many, &q), -EINVAL);
	/* Bytes that are no text, and a line without an end. */
	assert_int_equal(soft_fault_request_parse("fault * a=\0b", 12, &q, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),	 cmocka_unit_test(test_when),
		cmocka_unit_test(test_which),	 cmocka_unit_test(test_states),
		cmocka_unit_test(test_refused),	 cmocka_unit_test(test_set),
		cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
