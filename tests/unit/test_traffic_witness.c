/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witnesses of traffic. Expected values: descriptions of PMUs as the kernel gives them on a Xeon
 * (drivers' tables in arch/x86/events/intel/uncore_snbep.c: cas_count_read is event 0x04 umask
 * 0x03, 64 bytes as a scale of 6.103515625e-5 MiB) and on an EPYC (amd/uncore.c's format of
 * amd_umc); port counters of 4 bytes; NVML by tests/fake.
 */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "trace/traffic.h"
#include "trace/traffic_parts.h"
#include "trace/uncore.h"

static struct pp_source *made(const char *const files[][2], size_t n)
{
	struct pp_record *record;
	struct pp_source *src;
	struct pp_error err;

	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pp_record_put(record, PP_ENTRY_FILE, files[i][0], files[i][1],
					       strlen(files[i][1]), 0),
				 0);
	assert_int_equal(pp_source_replay_record(record, &src, &err), 0);
	return src;
}

#define EVENTS "/sys/bus/event_source/devices/"

static void test_intel(void **state)
{
	static const char *const files[][2] = {
		{EVENTS "uncore_imc_0/type", "13\n"},
		{EVENTS "uncore_imc_0/cpumask", "0,18\n"},
		{EVENTS "uncore_imc_0/format/event", "config:0-7\n"},
		{EVENTS "uncore_imc_0/format/umask", "config:8-15\n"},
		{EVENTS "uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03\n"},
		{EVENTS "uncore_imc_0/events/cas_count_read.scale", "6.103515625e-5\n"},
		{EVENTS "uncore_imc_0/events/cas_count_read.unit", "MiB\n"},
		{EVENTS "uncore_imc_0/events/cas_count_write", "event=0x04,umask=0x0c\n"},
		{EVENTS "uncore_imc_0/events/cas_count_write.scale", "6.103515625e-5\n"},
		{EVENTS "uncore_imc_0/events/cas_count_write.unit", "MiB\n"},
		{EVENTS "uncore_imc_0/events/clockticks", "event=0x00,umask=0x00\n"},
		{EVENTS "uncore_iio_free_running_1/type", "40\n"},
		{EVENTS "uncore_iio_free_running_1/cpumask", "0\n"},
		{EVENTS "uncore_iio_free_running_1/format/event", "config:0-7\n"},
		{EVENTS "uncore_iio_free_running_1/format/umask", "config:8-15\n"},
		{EVENTS "uncore_iio_free_running_1/events/bw_in_port2", "event=0xff,umask=0x22\n"},
		{EVENTS "uncore_iio_free_running_1/events/bw_in_port2.scale", "3.814697266e-6\n"},
		{EVENTS "uncore_iio_free_running_1/events/bw_in_port2.unit", "MiB\n"},
	};
	struct pp_source *s = made(files, PP_ARRAY_LEN(files));
	struct pp_uncore *u = calloc(1, sizeof(*u));
	struct pp_error err;

	(void)state;
	assert_non_null(u);
	assert_int_equal(pp_uncore_find(s, u, &err), 0);
	assert_int_equal(u->n, 5); /* two events on two sockets, one of an I/O stack */
	for (unsigned int i = 0; i < u->n; i++) {
		const struct pp_uncore_counter *c = &u->one[i];

		assert_int_equal(c->fd, -1);
		if (c->kind == PP_UNCORE_IO_IN) {
			assert_int_equal(c->config[0], 0x22ff);
			assert_true(fabs(c->bytes - 4) < 1e-6);
			continue;
		}
		assert_int_equal(c->type, 13);
		assert_int_equal(c->config[0], c->kind == PP_UNCORE_MEMORY_READ ? 0x0304 : 0x0c04);
		assert_true(fabs(c->bytes - 64) < 1e-9);
		assert_true(c->cpu == 0 || c->cpu == 18);
	}
	free(u);
	pp_source_free(s);
}

static void test_amd(void **state)
{
	static const char *const files[][2] = {
		{EVENTS "amd_umc_0/type", "22\n"},
		{EVENTS "amd_umc_0/cpumask", "0\n"},
		{EVENTS "amd_umc_0/format/event", "config:0-7\n"},
		{EVENTS "amd_umc_0/format/rdwrmask", "config:8-9\n"},
	};
	struct pp_source *s = made(files, PP_ARRAY_LEN(files));
	struct pp_uncore *u = calloc(1, sizeof(*u));
	struct pp_error err;

	(void)state;
	assert_non_null(u);
	assert_int_equal(pp_uncore_find(s, u, &err), 0);
	assert_int_equal(u->n, 2);
	assert_int_equal(u->one[0].config[0], 0x10a);
	assert_int_equal(u->one[1].config[0], 0x20a);
	assert_int_equal(u->one[1].kind, PP_UNCORE_MEMORY_WRITE);
	free(u);
	pp_source_free(s);
}

static void test_formats(void **state)
{
	static const char *const files[][2] = {
		{"/f/event", "config:0-7,32-35\n"}, {"/f/edge", "config:18\n"},
		{"/f/filter", "config1:0-31\n"},    {"/f/bad", "config9:0-3\n"},
		{"/f/wild", "config:0-99\n"},	    {"/f/empty", "config:\n"},
	};
	struct pp_source *s = made(files, PP_ARRAY_LEN(files));
	uint64_t config[3];

	(void)state;
	assert_int_equal(pp_uncore_encode(s, "/f", "event=0x10a,edge,filter=7", config), 0);
	assert_int_equal(config[0], 0x0a | 1ULL << 32 | 1ULL << 18);
	assert_int_equal(config[1], 7);
	assert_int_equal(pp_uncore_encode(s, "/f", "edge=2", config), -EBADMSG);
	assert_int_equal(pp_uncore_encode(s, "/f", "bad=1", config), -EBADMSG);
	assert_int_equal(pp_uncore_encode(s, "/f", "wild=1", config), -EBADMSG);
	assert_int_equal(pp_uncore_encode(s, "/f", "empty=1", config), -EBADMSG);
	assert_int_equal(pp_uncore_encode(s, "/f", "none=1", config), -EBADMSG);
	assert_int_equal(pp_uncore_encode(s, "/f", "../f/event=1", config), -EBADMSG);
	assert_int_equal(pp_uncore_encode(s, "/f", "", config), -EBADMSG);
	pp_source_free(s);
}

/* A virtual machine: no such PMU, and that is what is said. */
static void test_none(void **state)
{
	static const char *const files[][2] = {{EVENTS "msr/type", "9\n"}};
	struct pp_source *s = made(files, PP_ARRAY_LEN(files));
	struct pp_uncore *u = calloc(1, sizeof(*u));
	struct pp_error err;

	(void)state;
	assert_non_null(u);
	assert_int_equal(pp_uncore_find(s, u, &err), -ENOENT);
	assert_non_null(strstr(err.text, "virtual machine"));
	free(u);
	pp_source_free(s);
}

static void put(const char *dir, const char *path, const char *text)
{
	char full[512], *slash;
	int fd;

	(void)snprintf(full, sizeof(full), "%s%s", dir, path);
	for (slash = strchr(full + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(full, 0700);
		*slash = '/';
	}
	fd = open(full, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

#define PORT "/sys/class/infiniband/mlx5_0/ports/1/counters/"

/* A port whose counter grows by 2^20 words while it is watched: 4 MiB; one that begins anew is left
 * out. */
static void test_ports(void **state)
{
	static const char again[] = "/sys/class/infiniband/mlx5_1/ports/1/counters/port_";
	char dir[] = "/tmp/peerpath-test-XXXXXX", path[128];
	struct pp_traffic_question q = {.window = 300 * PP_MILLISECOND};
	struct pp_buf buf = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&buf, false);
	struct pp_error err;
	json_t *data, *port;
	pid_t child;

	(void)state;
	assert_non_null(mkdtemp(dir));
	put(dir, PORT "port_xmit_data", "1000\n");
	put(dir, PORT "port_rcv_data", "5\n");
	(void)snprintf(path, sizeof(path), "%sxmit_data", again);
	put(dir, path, "77\n");
	(void)snprintf(path, sizeof(path), "%srcv_data", again);
	put(dir, path, "77\n");
	child = fork();
	if (!child) {
		(void)usleep(100000);
		put(dir, PORT "port_xmit_data", "1049576\n");
		put(dir, path, "3\n");
		_exit(0);
	}
	assert_int_equal(pp_source_root(dir, &q.src, &err), 0);
	pp_json_object(&j, NULL);
	assert_int_equal(pp_traffic_host_run(&j, &q, &err), 0);
	pp_json_end_object(&j);
	assert_int_equal(waitpid(child, NULL, 0), child);
	data = json_loadb(pp_buf_text(&buf), buf.len, 0, NULL);
	assert_non_null(data);
	assert_int_equal(json_array_size(json_object_get(data, "ports")), 1);
	port = json_array_get(json_object_get(data, "ports"), 0);
	assert_int_equal(json_integer_value(json_object_get(port, "sent_bytes")), 4 << 20);
	assert_int_equal(json_integer_value(json_object_get(port, "received_bytes")), 0);
	assert_non_null(json_object_get(data, "uncore_error"));
	json_decref(data);
	pp_buf_done(&buf);
	pp_source_free(q.src);
	(void)snprintf(path, sizeof(path), "rm -r %s", dir);
	child = fork();
	if (!child) {
		(void)execl("/bin/rm", "rm", "-r", dir, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(child, NULL, 0);
}

static void *open_fake_nvml(void)
{
	char path[1024];
	void *lib;

	(void)snprintf(path, sizeof(path), "%s/nvml/libnvidia-ml.so.1", getenv("PP_FAKE_DIR"));
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	return lib;
}

/* Two GPUs: one counts (and wraps), of the other only a rate is known. */
static void test_gpus(void **state)
{
	struct pp_traffic *t = calloc(1, sizeof(*t));
	void *lib = open_fake_nvml();
	struct pp_source *s;
	struct pp_error err;
	double seconds;

	(void)state;
	assert_non_null(t);
	assert_int_equal(pp_source_live(&s, &err), 0);
	assert_int_equal(pp_traffic_watch(s, 100 * PP_MILLISECOND, false, t), 0);
	assert_int_equal(t->n_gpus, 2);
	assert_true(t->gpu[0].known && !t->gpu[0].sampled);
	/* 512 for each reading but the first, over the end of its 32 bits */
	assert_true(t->gpu[0].sent >= 2 * 512 && t->gpu[0].sent < 1e6);
	assert_true(fmod(t->gpu[0].sent, 512) < 0.5 &&
		    fabs(t->gpu[0].received - t->gpu[0].sent) < 0.5);
	assert_true(t->gpu[1].known && t->gpu[1].sampled);
	seconds = t->gpu[1].sent / 5e9;
	assert_true(seconds >= 0.1);
	assert_true(fabs(t->gpu[1].received - 3e9 * seconds) < 1);
	assert_true(t->window >= 100 * PP_MILLISECOND);
	pp_source_free(s);
	(void)dlclose(lib);
	free(t);
}

/* A rate takes longer than the turn between two looks: the end is heard of all the same. */
static void test_gpus_until(void **state)
{
	const struct timespec work = {.tv_nsec = 300 * PP_MILLISECOND};
	struct pp_traffic *t = calloc(1, sizeof(*t));
	struct pp_traffic_span *span;
	void *lib = open_fake_nvml();
	struct pp_source *s;
	struct pp_error err;

	(void)state;
	assert_non_null(t);
	assert_int_equal(pp_source_live(&s, &err), 0);
	assert_int_equal(pp_traffic_begin(s, false, &span), 0);
	(void)nanosleep(&work, NULL);
	assert_int_equal(pp_traffic_end(s, span, t), 0);
	assert_int_equal(t->n_gpus, 2);
	assert_true(t->gpu[0].known && !t->gpu[0].sampled);
	assert_true(t->gpu[1].known && t->gpu[1].sampled);
	assert_true(t->gpu[1].sent / 5e9 >= 0.3);
	pp_source_free(s);
	(void)dlclose(lib);
	free(t);
}

struct row {
	double ports, gpus, memory; /* bytes; memory < 0: unknown */
	enum pp_traffic_sign sign;
	const char *says;
};

static void test_judge(void **state)
{
	static const double GB = 1e9;
	const struct row rows[] = {
		{10 * GB, 10.2 * GB, 20.5 * GB, PP_TRAFFIC_STAGED, "2.05 bytes for each"},
		{10 * GB, 10.2 * GB, 0.3 * GB, PP_TRAFFIC_DIRECT, "0.03 bytes for each"},
		{10 * GB, 10.2 * GB, 8 * GB, PP_TRAFFIC_UNKNOWN, "0.80 bytes for each"},
		{10 * GB, 0.1 * GB, 20 * GB, PP_TRAFFIC_UNKNOWN, "other memory took part"},
		{10 * GB, 10 * GB, -1, PP_TRAFFIC_UNKNOWN, "a virtual machine"},
		{1e6, 10 * GB, 0, PP_TRAFFIC_NONE, "needed to judge"},
	};
	struct pp_traffic *t = calloc(1, sizeof(*t));
	char why[256];

	(void)state;
	assert_non_null(t);
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		*t = (struct pp_traffic){.n_ports = 1, .n_gpus = 1};
		t->port[0].sent = (uint64_t)rows[i].ports;
		t->gpu[0] = (struct pp_traffic_gpu){.known = true, .sent = rows[i].gpus};
		t->host.known = rows[i].memory >= 0;
		t->host.read = t->host.written = rows[i].memory / 2;
		(void)snprintf(t->host.why, sizeof(t->host.why), "a virtual machine");
		assert_int_equal(pp_traffic_judge(t, why, sizeof(why)), rows[i].sign);
		if (!strstr(why, rows[i].says))
			fail_msg("row %zu: %s", i, why);
	}
	/* each witness taken away: never a stronger sign */
	t->host = (struct pp_traffic_host){.known = true};
	t->port[0].sent = (uint64_t)(10 * GB);
	assert_int_equal(pp_traffic_judge(t, why, sizeof(why)), PP_TRAFFIC_DIRECT);
	t->n_gpus = 0;
	assert_int_equal(pp_traffic_judge(t, why, sizeof(why)), PP_TRAFFIC_UNKNOWN);
	t->n_gpus = 1;
	t->n_ports = 0;
	assert_int_equal(pp_traffic_judge(t, why, sizeof(why)), PP_TRAFFIC_UNKNOWN);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_intel),	   cmocka_unit_test(test_amd),
		cmocka_unit_test(test_formats),	   cmocka_unit_test(test_none),
		cmocka_unit_test(test_ports),	   cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_gpus_until), cmocka_unit_test(test_judge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
