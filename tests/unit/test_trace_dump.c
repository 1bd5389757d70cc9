/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions to netlink over a link that answers as told: dumps that the kernel calls
 * interrupted, refuses, or breaks off. The messages are a kernel's (tests/fixtures/trace), with the
 * sequence of the question.
 */
#include "trace_fixture.h"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "trace/resource_parts.h"

enum { PORT = 299 };

/* What the link does, and what was asked of it. */
struct script {
	unsigned int devices;
	uint32_t command; /* that goes wrong */
	unsigned int times;
	enum { NOTHING, INTERRUPTED, REFUSED, BROKEN, LOST } how;
	/* Of the last request: */
	uint32_t asked, sequence, index;
	unsigned int asked_times[64];
	unsigned int part; /* how many answers of it were received */
};

static int on_send(void *arg, const void *message, size_t len)
{
	struct script *s = arg;
	const struct nlmsghdr *h = message;

	assert_true(len >= sizeof(*h) && h->nlmsg_len == len);
	s->asked = RDMA_NL_GET_OP(h->nlmsg_type);
	s->sequence = h->nlmsg_seq;
	s->index = UINT32_MAX;
	if (len > sizeof(*h))
		memcpy(&s->index, (const char *)message + sizeof(*h) + sizeof(struct nlattr),
		       sizeof(s->index));
	assert_true(s->asked < 64);
	s->asked_times[s->asked]++;
	s->part = 0;
	return 0;
}

static struct nlmsghdr *begin(struct script *s, void *buf, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *h = buf;

	*h = (struct nlmsghdr){.nlmsg_len = sizeof(*h),
			       .nlmsg_type = type,
			       .nlmsg_flags = flags,
			       .nlmsg_seq = s->sequence,
			       .nlmsg_pid = PORT};
	return h;
}

static void put(struct nlmsghdr *h, uint16_t type, const void *value, size_t len)
{
	struct nlattr a = {.nla_len = (uint16_t)(sizeof(a) + len), .nla_type = type};
	char *at = (char *)h + h->nlmsg_len;

	memset(at, 0, NLA_ALIGN(a.nla_len));
	memcpy(at, &a, sizeof(a));
	memcpy(at + sizeof(a), value, len);
	h->nlmsg_len += NLA_ALIGN(a.nla_len);
}

static uint16_t type_of(uint32_t command)
{
	return (uint16_t)RDMA_NL_GET_TYPE((uint32_t)RDMA_NL_NLDEV, command);
}

static ssize_t answer_mode(struct script *s, void *buf)
{
	struct nlmsghdr *h = begin(s, buf, type_of(RDMA_NLDEV_CMD_SYS_GET), 0);
	const uint8_t shared = 1;

	put(h, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, &shared, sizeof(shared));
	return (ssize_t)h->nlmsg_len;
}

/* One device a message, then the end. */
static ssize_t answer_devices(struct script *s, void *buf)
{
	struct nlmsghdr *h = begin(s, buf, type_of(RDMA_NLDEV_CMD_GET), NLM_F_MULTI);
	uint32_t index = s->part - 1;
	char name[16];

	if (s->part > s->devices) {
		h = begin(s, buf, NLMSG_DONE, NLM_F_MULTI);
	} else {
		(void)snprintf(name, sizeof(name), "made_%u", index);
		put(h, RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
		put(h, RDMA_NLDEV_ATTR_DEV_NAME, name, strlen(name) + 1);
	}
	return (ssize_t)h->nlmsg_len;
}

/* A fixture's messages, all at once. */
static ssize_t answer_objects(struct script *s, void *buf, size_t size, uint16_t flags)
{
	static const struct {
		uint32_t command;
		const char *file;
	} files[] = {{RDMA_NLDEV_CMD_RES_MR_GET, "netlink-mr.bin"},
		     {RDMA_NLDEV_CMD_RES_PD_GET, "netlink-pd.bin"},
		     {RDMA_NLDEV_CMD_RES_CTX_GET, "netlink-ctx.bin"},
		     {RDMA_NLDEV_CMD_RES_QP_GET, "netlink-qp.bin"}};
	size_t len = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i].command == s->asked)
			len = trace_fixture(files[i].file, buf, size);
	assert_true(len > 0);
	for (size_t at = 0; at < len;) {
		struct nlmsghdr *h = (struct nlmsghdr *)(void *)((char *)buf + at);

		h->nlmsg_seq = s->sequence;
		h->nlmsg_pid = PORT;
		h->nlmsg_flags |= flags;
		at += NLMSG_ALIGN(h->nlmsg_len);
	}
	return (ssize_t)len;
}

static ssize_t answer_wrong(struct script *s, void *buf, size_t size)
{
	const struct nlmsgerr refusal = {.error = -EINVAL};
	struct nlmsghdr *h;

	switch (s->how) {
	case INTERRUPTED:
		return answer_objects(s, buf, size, NLM_F_DUMP_INTR);
	case REFUSED:
		h = begin(s, buf, NLMSG_ERROR, 0);
		memcpy(h + 1, &refusal, sizeof(refusal));
		h->nlmsg_len += sizeof(refusal);
		return (ssize_t)h->nlmsg_len;
	case BROKEN:
		return answer_objects(s, buf, size, 0) - 40;
	default:
		return -ENOBUFS;
	}
}

static ssize_t on_receive(void *arg, void *buf, size_t size)
{
	struct script *s = arg;

	s->part++;
	if (s->asked == RDMA_NLDEV_CMD_SYS_GET)
		return answer_mode(s, buf);
	if (s->asked == RDMA_NLDEV_CMD_GET)
		return answer_devices(s, buf);
	assert_int_equal(s->part, 1);
	if (s->asked == s->command && s->asked_times[s->asked] <= s->times)
		return answer_wrong(s, buf, size);
	return answer_objects(s, buf, size, 0);
}

/* Asks over the script and reads the answer. */
static void look(struct script *s, struct pp_resources *ret)
{
	const struct pp_resource_link link = {
		.send = on_send, .receive = on_receive, .arg = s, .port = PORT};
	struct pp_answer a = {.answered = true, .outcome = PP_ANSWERED};
	struct pp_buf out = PP_BUF((size_t)16 << 20);
	struct pp_json j = PP_JSON(&out, false);
	struct pp_record *record = NULL;
	struct pp_source *source = NULL;
	struct pp_error err;

	assert_int_equal(pp_record_new(1 << 16, &record), 0);
	assert_int_equal(pp_source_replay_record(record, &source, &err), 0);
	pp_json_object(&j, NULL);
	pp_json_bool(&j, "core", true);
	pp_json_bool(&j, "privileged", true);
	pp_json_bool(&j, "first_user_namespace", true);
	pp_json_bool(&j, "first_pid_namespace", true);
	assert_int_equal(pp_resource_look(&link, source, &j), 0);
	pp_json_end_object(&j);
	a.data = json_loads(pp_buf_text(&out), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(a.data);
	assert_int_equal(pp_resources_read(&a, ret), 0);
	pp_answer_done(&a);
	pp_buf_done(&out);
	pp_source_free(source);
}

static size_t count(const struct pp_resources *r, enum pp_resource_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->item[i].kind == kind;
	return n;
}

/* As many as the fixtures hold, of each of two devices. */
static void check_whole(const struct pp_resources *r)
{
	static const char *const files[] = {"rdma-mr.json", "rdma-pd.json", "rdma-ctx.json",
					    "rdma-qp.json"};
	char text[1 << 16];
	json_t *array;

	for (unsigned int k = 0; k < PP_RESOURCE_KINDS; k++) {
		array = json_loadb(text, trace_fixture(files[k], text, sizeof(text)), 0, NULL);
		assert_int_equal(count(r, (enum pp_resource_kind)k), 2 * json_array_size(array));
		json_decref(array);
	}
	assert_string_equal(r->device[0].name, "made_0");
	assert_string_equal(r->device[1].name, "made_1");
	assert_int_equal(r->device[1].index, 1);
}

static void test_whole(void **state)
{
	struct script s = {.devices = 2};
	struct pp_resources r;

	(void)state;
	look(&s, &r);
	assert_int_equal(r.resources.state, PP_SURFACE_READ);
	assert_int_equal(r.keys.state, PP_SURFACE_READ);
	check_whole(&r);
	assert_int_equal(s.asked_times[RDMA_NLDEV_CMD_RES_MR_GET], 2);
	pp_resources_done(&r);
}

/* Read again, and what was read before is thrown away. */
static void test_interrupted(void **state)
{
	struct script s = {
		.devices = 2, .command = RDMA_NLDEV_CMD_RES_MR_GET, .how = INTERRUPTED, .times = 3};
	struct pp_resources r;

	(void)state;
	look(&s, &r);
	assert_int_equal(r.resources.state, PP_SURFACE_READ);
	check_whole(&r);
	assert_int_equal(s.asked_times[RDMA_NLDEV_CMD_RES_MR_GET], 5);
	pp_resources_done(&r);
	s = (struct script){.devices = 2,
			    .command = RDMA_NLDEV_CMD_RES_PD_GET,
			    .how = INTERRUPTED,
			    .times = 1000};
	look(&s, &r);
	assert_int_equal(r.resources.state, PP_SURFACE_CUT);
	assert_non_null(strstr(r.resources.why, "protection domains of made_0: the list changed"));
	/* Four times each, and the last of them is kept. */
	assert_int_equal(s.asked_times[RDMA_NLDEV_CMD_RES_PD_GET], 8);
	check_whole(&r);
	pp_resources_done(&r);
}

/* A kernel that does not list contexts lists the others all the same. */
static void test_refused(void **state)
{
	struct script s = {
		.devices = 2, .command = RDMA_NLDEV_CMD_RES_CTX_GET, .how = REFUSED, .times = 1000};
	struct pp_resources r;

	(void)state;
	look(&s, &r);
	assert_int_equal(r.resources.state, PP_SURFACE_CUT);
	assert_non_null(strstr(r.resources.why, "contexts of made_0: EINVAL"));
	assert_int_equal(count(&r, PP_RESOURCE_CTX), 0);
	assert_true(count(&r, PP_RESOURCE_QP) > 0);
	assert_int_equal(r.n_devices, 2);
	pp_resources_done(&r);
}

/* After a dump that was left half-way the kernel would refuse the next: none is asked. */
static void test_broken(void **state)
{
	struct script s = {
		.devices = 2, .command = RDMA_NLDEV_CMD_RES_PD_GET, .how = BROKEN, .times = 1};
	struct pp_resources r;

	(void)state;
	look(&s, &r);
	assert_int_equal(r.resources.state, PP_SURFACE_CUT);
	assert_non_null(strstr(r.resources.why, "malformed"));
	assert_int_equal(s.asked_times[RDMA_NLDEV_CMD_RES_CTX_GET], 0);
	assert_true(count(&r, PP_RESOURCE_MR) > 0);
	pp_resources_done(&r);
	s = (struct script){
		.devices = 1, .command = RDMA_NLDEV_CMD_RES_MR_GET, .how = LOST, .times = 1};
	look(&s, &r);
	assert_int_equal(r.resources.state, PP_SURFACE_CUT);
	assert_non_null(strstr(r.resources.why, "ENOBUFS"));
	pp_resources_done(&r);
}

static void test_devices(void **state)
{
	struct script s = {.devices = 0};
	struct pp_resources r;

	(void)state;
	look(&s, &r);
	assert_int_equal(r.resources.state, PP_SURFACE_ABSENT);
	pp_resources_done(&r);
	/* More than are taken: of those that are, all is asked. */
	s = (struct script){.devices = 1030};
	look(&s, &r);
	assert_int_equal(r.n_devices, 1024);
	assert_int_equal(r.resources.state, PP_SURFACE_CUT);
	assert_int_equal(s.asked_times[RDMA_NLDEV_CMD_RES_QP_GET], 1024);
	pp_resources_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_broken),
		cmocka_unit_test(test_devices),
	};

	return cmocka_run_group_tests_name("trace_dump", tests, NULL, NULL);
}
