/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netlink's dumps as a kernel sent them (Debian 6.1, rdma_rxe, perftest; tests/fixtures/trace),
 * decoded, beside what the tool `rdma` printed of the same objects at that moment.
 */
#include "trace_fixture.h"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "trace/resource_parts.h"

static const char *const names[] = {"mr", "pd", "ctx", "qp"};
/* Words of `rdma -j resource show` for an object's number and what it stands on. */
static const char *const id_words[] = {"mrn", "pdn", "ctxn", "lqpn"};
static const char *const parent_words[] = {"pdn", "ctxn", NULL, "pdn"};

static unsigned char bytes[1 << 16];

static size_t load(const char *name)
{
	return trace_fixture(name, bytes, sizeof(bytes));
}

/* The objects of one dump as a JSON array; what was seen of it in @ret. */
static json_t *decode(enum pp_resource_kind kind, const void *from, size_t len,
		      struct pp_resource_dump *ret)
{
	struct pp_buf out = PP_BUF((size_t)1 << 20);
	struct pp_json j = PP_JSON(&out, false);
	json_t *array;

	*ret = (struct pp_resource_dump){.kind = kind, .json = &j};
	pp_json_array(&j, NULL);
	pp_resource_messages(ret, from, len);
	pp_json_end_array(&j);
	array = json_loads(pp_buf_text(&out), 0, NULL);
	assert_non_null(array);
	assert_int_equal(json_array_size(array), ret->count);
	pp_buf_done(&out);
	return array;
}

static json_t *load_rdma(enum pp_resource_kind kind)
{
	char name[64];
	json_t *array;

	(void)snprintf(name, sizeof(name), "rdma-%s.json", names[kind]);
	array = json_loadb((const char *)bytes, load(name), 0, NULL);
	assert_true(json_array_size(array) > 2);
	return array;
}

static int64_t number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return v ? json_integer_value(v) : -1;
}

/* A key as the tool writes it, in hexadecimal. */
static int64_t key_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? (int64_t)strtoull(text, NULL, 16) : -1;
}

static void check_object(enum pp_resource_kind kind, const json_t *ours, const json_t *its,
			 bool keys)
{
	const char *kernel = json_string_value(json_object_get(ours, "kernel"));

	if (parent_words[kind])
		assert_int_equal(number(ours, "parent"), number(its, parent_words[kind]));
	assert_int_equal(number(ours, "tid"), number(its, "pid"));
	/* The tool has a process's name too, where it knows the pid. */
	if (number(its, "pid") < 0 && json_object_get(its, "comm"))
		assert_string_equal(kernel, json_string_value(json_object_get(its, "comm")));
	else
		assert_null(kernel);
	if (kind != PP_RESOURCE_MR)
		return;
	assert_int_equal(number(ours, "length"), number(its, "mrlen"));
	assert_int_equal(number(ours, "lkey"), keys ? key_of(its, "lkey") : -1);
	assert_int_equal(number(ours, "rkey"), keys ? key_of(its, "rkey") : -1);
}

static void compare(enum pp_resource_kind kind, bool keys)
{
	json_t *its = load_rdma(kind), *ours, *a, *b;
	struct pp_resource_dump d;
	char name[64];
	size_t i, k, found = 0;

	(void)snprintf(name, sizeof(name), "netlink-%s%s.bin", keys ? "" : "user-", names[kind]);
	ours = decode(kind, bytes, load(name), &d);
	assert_true(d.ended && !d.malformed && !d.interrupted && !d.error);
	assert_int_equal(json_array_size(ours), json_array_size(its));
	json_array_foreach(its, i, b)
	{
		json_array_foreach(ours, k, a)
		{
			if (number(a, "id") != number(b, id_words[kind]))
				continue;
			check_object(kind, a, b, keys);
			found++;
		}
	}
	assert_int_equal(found, json_array_size(its));
	json_decref(its);
	json_decref(ours);
}

static void test_as_rdma_says(void **state)
{
	(void)state;
	for (int k = PP_RESOURCE_MR; k <= PP_RESOURCE_QP; k++) {
		compare((enum pp_resource_kind)k, true);
		compare((enum pp_resource_kind)k, false);
	}
}

static void check_cut(const char *name, enum pp_resource_kind kind, size_t step)
{
	size_t len = load(name);
	struct pp_resource_dump d;

	for (size_t n = 0; n < len; n += step) {
		json_decref(decode(kind, bytes, n, &d));
		assert_true(!d.ended || d.malformed);
	}
	json_decref(decode(kind, bytes, len, &d));
	assert_true(d.ended && !d.malformed);
}

/* A dump that ends anywhere before its last message is not taken for whole. */
static void test_cut(void **state)
{
	(void)state;
	check_cut("netlink-pd.bin", PP_RESOURCE_PD, 1);
	/* Of two messages with objects; a step that meets the boundary between them. */
	check_cut("netlink-mr.bin", PP_RESOURCE_MR, 118);
}

static struct nlmsghdr *header(size_t at)
{
	return (struct nlmsghdr *)(void *)(bytes + at);
}

static void test_interrupted(void **state)
{
	size_t len = load("netlink-mr.bin");
	struct pp_resource_dump d;

	(void)state;
	header(0)->nlmsg_flags |= NLM_F_DUMP_INTR;
	json_decref(decode(PP_RESOURCE_MR, bytes, len, &d));
	assert_true(d.interrupted && d.ended);
}

/* Answers to others' questions are passed over. */
static void test_foreign(void **state)
{
	size_t len = load("netlink-mr.bin");
	struct pp_resource_dump d = {.kind = PP_RESOURCE_MR};
	struct pp_buf out = PP_BUF((size_t)1 << 20);
	struct pp_json j = PP_JSON(&out, false);

	(void)state;
	d.json = &j;
	d.sequence = header(0)->nlmsg_seq + 1;
	pp_json_array(&j, NULL);
	pp_resource_messages(&d, bytes, len);
	assert_int_equal(d.count, 0);
	assert_false(d.ended);
	d.sequence = header(0)->nlmsg_seq;
	d.port = header(0)->nlmsg_pid + 1;
	pp_resource_messages(&d, bytes, len);
	assert_int_equal(d.count, 0);
	/* Of another kind: of a dump of domains nothing is a region. */
	json_decref(decode(PP_RESOURCE_MR, bytes, load("netlink-pd.bin"), &d));
	assert_int_equal(d.count, 0);
	pp_buf_done(&out);
}

static void test_refused(void **state)
{
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
	} error = {.h = {.nlmsg_len = sizeof(error), .nlmsg_type = NLMSG_ERROR},
		   .e = {.error = -EPERM}};
	struct {
		struct nlmsghdr h;
		int32_t error;
	} done = {.h = {.nlmsg_len = sizeof(done), .nlmsg_type = NLMSG_DONE}, .error = -EINVAL};
	struct pp_resource_dump d;

	(void)state;
	json_decref(decode(PP_RESOURCE_CTX, &error, sizeof(error), &d));
	assert_true(d.ended);
	assert_int_equal(d.error, -EPERM);
	json_decref(decode(PP_RESOURCE_CTX, &done, sizeof(done), &d));
	assert_true(d.ended);
	assert_int_equal(d.error, -EINVAL);
	error.h.nlmsg_len = sizeof(error.h);
	json_decref(decode(PP_RESOURCE_CTX, &error, sizeof(error.h), &d));
	assert_true(d.malformed);
}

/* A message that a kernel could send, made here: attributes of 32 and 64 bits. */
struct made {
	unsigned char at[512];
	size_t len;
};

static void put(struct made *m, uint16_t type, const void *value, size_t len)
{
	struct nlattr a = {.nla_len = (uint16_t)(sizeof(a) + len), .nla_type = type};

	memcpy(m->at + m->len, &a, sizeof(a));
	memcpy(m->at + m->len + sizeof(a), value, len);
	m->len += NLA_ALIGN(sizeof(a) + len);
}

static void put_u32(struct made *m, uint16_t type, uint32_t value)
{
	put(m, type, &value, sizeof(value));
}

static int decode_made(const struct made *m, json_t **ret)
{
	struct pp_buf out = PP_BUF((size_t)1 << 16);
	struct pp_json j = PP_JSON(&out, false);
	unsigned int n = 0;
	int r;

	pp_json_array(&j, NULL);
	r = pp_resource_decode(PP_RESOURCE_MR, m->at, m->len, &j, &n);
	pp_json_end_array(&j);
	*ret = json_loads(pp_buf_text(&out), 0, NULL);
	assert_int_equal(json_array_size(*ret), n);
	pp_buf_done(&out);
	return r;
}

/* The answer for one object has no table; its members stand beside the device's. */
static void test_one_object(void **state)
{
	const uint64_t all = UINT64_MAX;
	struct made m = {0};
	json_t *j;

	(void)state;
	put_u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	put(&m, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0", 7);
	assert_int_equal(decode_made(&m, &j), 0);
	assert_int_equal(json_array_size(j), 0);
	json_decref(j);
	put_u32(&m, RDMA_NLDEV_ATTR_RES_MRN, 7);
	put(&m, RDMA_NLDEV_ATTR_RES_MRLEN, &all, sizeof(all));
	assert_int_equal(decode_made(&m, &j), 0);
	assert_int_equal(number(json_array_get(j, 0), "id"), 7);
	/* All memory, as implicit on-demand paging registers it. */
	assert_int_equal(json_integer_value(json_object_get(json_array_get(j, 0), "length")), -1);
	json_decref(j);
	put(&m, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core", 7); /* no NUL */
	assert_int_equal(decode_made(&m, &j), -EBADMSG);
	json_decref(j);
}

static void test_malformed(void **state)
{
	struct made entry = {0}, table = {0}, m = {0};
	json_t *j;

	(void)state;
	put_u32(&entry, RDMA_NLDEV_ATTR_RES_PDN, 1); /* an object without a number */
	put(&table, RDMA_NLDEV_ATTR_RES_MR_ENTRY, entry.at, entry.len);
	put(&m, RDMA_NLDEV_ATTR_RES_MR, table.at, table.len);
	assert_int_equal(decode_made(&m, &j), -EBADMSG);
	json_decref(j);
	m.len = 0;
	put(&m, RDMA_NLDEV_ATTR_RES_MRN, "\1\0", 2); /* a number of two bytes */
	assert_int_equal(decode_made(&m, &j), -EBADMSG);
	json_decref(j);
}

/* @text as the data of an answer that was given. */
static void read_text(const char *text, struct pp_resources *ret)
{
	struct pp_answer a = {.answered = true, .outcome = PP_ANSWERED};

	a.data = json_loads(text, 0, NULL);
	assert_non_null(a.data);
	assert_int_equal(pp_resources_read(&a, ret), 0);
	pp_answer_done(&a);
}

static void test_chain(void **state)
{
	static const char TEXT[] =
		"{\"core\": true, \"privileged\": true, \"first_user_namespace\": true,"
		" \"first_pid_namespace\": true, \"hidden\": [], \"devices\": ["
		"{\"index\": 0, \"name\": \"mlx5_0\", \"faults\": {},"
		" \"mr\": [{\"id\": 2, \"parent\": 5, \"lkey\": 1, \"rkey\": 2, \"length\": -1},"
		"          {\"id\": 1, \"parent\": 5, \"tid\": 77, \"lkey\": 3, \"rkey\": 0},"
		"          {\"id\": 2, \"parent\": 5, \"lkey\": 1, \"rkey\": 2},"
		"          {\"id\": 3, \"parent\": 9, \"lkey\": 4, \"rkey\": 4}],"
		" \"pd\": [{\"id\": 5, \"parent\": 6}, {\"id\": 7, \"parent\": 6, \"tid\": 80}],"
		" \"ctx\": [{\"id\": 6, \"tid\": 79}], \"qp\": []},"
		"{\"index\": 1, \"name\": \"mlx5_1\", \"faults\": {}, \"pd\": [], \"ctx\": [],"
		" \"qp\": [], \"mr\": [{\"id\": 1, \"parent\": 5, \"lkey\": 9, \"rkey\": 9}]}]}";
	enum pp_resource_kind by = PP_RESOURCE_QP;
	struct pp_resources r;

	(void)state;
	read_text(TEXT, &r);
	assert_int_equal(r.resources.state, PP_SURFACE_READ);
	assert_int_equal(r.keys.state, PP_SURFACE_READ);
	assert_int_equal(r.n_devices, 2);
	assert_int_equal(r.n, 7); /* the twin went */
	assert_true(pp_resource_find(&r, 0, PP_RESOURCE_MR, 2)->length == UINT64_MAX);
	assert_int_equal(pp_resource_thread(&r, pp_resource_find(&r, 0, PP_RESOURCE_MR, 1), &by),
			 77);
	assert_int_equal(by, PP_RESOURCE_MR);
	assert_int_equal(pp_resource_thread(&r, pp_resource_find(&r, 0, PP_RESOURCE_MR, 2), &by),
			 79);
	assert_int_equal(by, PP_RESOURCE_CTX);
	assert_int_equal(pp_resource_thread(&r, pp_resource_find(&r, 0, PP_RESOURCE_PD, 7), &by),
			 80);
	/* A domain that is not listed, and one of another device. */
	assert_int_equal(pp_resource_thread(&r, pp_resource_find(&r, 0, PP_RESOURCE_MR, 3), &by),
			 0);
	assert_int_equal(pp_resource_thread(&r, pp_resource_find(&r, 1, PP_RESOURCE_MR, 1), &by),
			 0);
	assert_null(pp_resource_find(&r, 1, PP_RESOURCE_PD, 5));
	pp_resources_done(&r);
}

#define RIGHTS "\"core\": true, \"privileged\": true, \"first_user_namespace\": true, "
#define HOST   "\"first_pid_namespace\": true, "
#define DEVICE \
	"{\"index\": 0, \"name\": \"d\", \"pd\": [], \"ctx\": [], \"qp\": [], \"mr\": [{\"id\": 1"

static void test_states(void **state)
{
	static const struct {
		const char *data;
		enum pp_surface_state resources, keys;
		const char *why; /* part of resources', or else of keys' */
	} cases[] = {
		{"{\"core\": false}", PP_SURFACE_ABSENT, PP_SURFACE_ABSENT, "no RDMA core"},
		{"{}", PP_SURFACE_REFUSED, PP_SURFACE_REFUSED, "cannot be told"},
		{"{\"core\": true, \"errno\": 93, \"call\": \"socket(NETLINK_RDMA)\"}",
		 PP_SURFACE_ABSENT, PP_SURFACE_ABSENT, "socket(NETLINK_RDMA): EPROTONOSUPPORT"},
		{"{\"core\": true, \"errno\": 1, \"call\": \"x\"}", PP_SURFACE_REFUSED,
		 PP_SURFACE_REFUSED, "x: EPERM"},
		{"{" RIGHTS HOST "\"devices\": []}", PP_SURFACE_ABSENT, PP_SURFACE_ABSENT,
		 "no RDMA device"},
		{"{" RIGHTS HOST "\"devices\": [], \"hidden\": [\"mlx5_3\"]}", PP_SURFACE_CUT,
		 PP_SURFACE_CUT, "mlx5_3"},
		{"{" RIGHTS HOST "\"devices\": [" DEVICE ", \"lkey\": 1, \"rkey\": 1}]}]}",
		 PP_SURFACE_READ, PP_SURFACE_READ, ""},
		{"{" RIGHTS "\"devices\": [" DEVICE ", \"lkey\": 1, \"rkey\": 1}]}]}",
		 PP_SURFACE_CUT, PP_SURFACE_CUT, "PID namespace"},
		{"{" RIGHTS HOST "\"devices\": [" DEVICE "}]}]}", PP_SURFACE_READ,
		 PP_SURFACE_ABSENT, "shows no keys"},
		{"{\"core\": true, \"privileged\": true, \"first_user_namespace\": false, " HOST
		 "\"devices\": [" DEVICE "}]}]}",
		 PP_SURFACE_READ, PP_SURFACE_REFUSED, "CAP_NET_ADMIN"},
		{"{" RIGHTS HOST "\"devices\": [" DEVICE "}], \"faults\": {\"ctx\": \"EINVAL\"}}]}",
		 PP_SURFACE_CUT, PP_SURFACE_ABSENT, "contexts of d: EINVAL"},
		{"{" RIGHTS HOST "\"devices\": [" DEVICE "}, {\"id\": -1}]}]}", PP_SURFACE_CUT,
		 PP_SURFACE_ABSENT, "malformed"},
		{"{" RIGHTS HOST "\"cut\": true, \"devices\": [" DEVICE "}]}]}", PP_SURFACE_CUT,
		 PP_SURFACE_ABSENT, "not every device"},
	};
	struct pp_resources r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text(cases[i].data, &r);
		assert_int_equal(r.resources.state, cases[i].resources);
		assert_int_equal(r.keys.state, cases[i].keys);
		if (!strstr(r.resources.why, cases[i].why) && !strstr(r.keys.why, cases[i].why))
			fail_msg("%s: \"%s\", \"%s\"", cases[i].data, r.resources.why, r.keys.why);
		pp_resources_done(&r);
	}
}

static void test_outcomes(void **state)
{
	static const struct {
		enum pp_outcome outcome;
		enum pp_surface_state state;
	} cases[] = {{PP_TIMEOUT, PP_SURFACE_STUCK},
		     {PP_CRASHED, PP_SURFACE_CUT},
		     {PP_FAILED, PP_SURFACE_CUT},
		     {PP_NOT_ASKED, PP_SURFACE_UNASKED}};
	struct pp_resources r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_answer a = {.outcome = cases[i].outcome, .detail = "why it was so"};

		a.data = json_object();
		assert_int_equal(pp_resources_read(&a, &r), 0);
		assert_int_equal(r.resources.state, cases[i].state);
		assert_string_equal(r.resources.why, "why it was so");
		assert_int_equal(r.keys.state, cases[i].state);
		pp_answer_done(&a);
		pp_resources_done(&r);
	}
}

/* Where no RDMA core is loaded, asking loads none. */
static void test_live(void **state)
{
	struct pp_source *s = NULL;
	struct pp_answer a;
	struct pp_error err;
	struct pp_resources r;
	bool core;

	(void)state;
	assert_int_equal(pp_source_live(&s, &err), 0);
	core = pp_source_exists(s, "/sys/class/infiniband") ||
	       pp_source_exists(s, "/sys/module/ib_core");
	assert_int_equal(pp_resources_ask(s, &a), 0);
	assert_int_equal(pp_resources_read(&a, &r), 0);
	if (core)
		assert_int_not_equal(r.resources.state, PP_SURFACE_UNASKED);
	else
		assert_int_equal(r.resources.state, PP_SURFACE_ABSENT);
	assert_int_equal(pp_source_exists(s, "/sys/class/infiniband") ||
				 pp_source_exists(s, "/sys/module/ib_core"),
			 core);
	pp_resources_done(&r);
	pp_answer_done(&a);
	pp_source_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_rdma_says), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_interrupted),  cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_refused),	     cmocka_unit_test(test_one_object),
		cmocka_unit_test(test_malformed),    cmocka_unit_test(test_chain),
		cmocka_unit_test(test_states),	     cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests_name("trace_resource", tests, NULL, NULL);
}
