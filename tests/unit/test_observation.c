/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the observer wrote, added up. The records have the form that docs/observe.md tells; the made
 * NCCL job has the calls that NCCL 2.28.9 was seen to make (a question, ten DMA-BUF regions of 512
 * KiB to 4.7 MiB, small host regions).
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "nccl/observation.h"

static void add(struct pp_observed *o, const char *line)
{
	assert_int_equal(pp_observed_add(o, line, strlen(line)), 0);
}

static void test_job(void **state)
{
	struct pp_observed o = {0};

	(void)state;
	add(&o, "{\"call\": \"start\", \"pid\": 7, \"host\": \"a\", \"program\": "
		"\"/usr/bin/python3\"}");
	add(&o,
	    "{\"call\": \"ibv_reg_dmabuf_mr\", \"device\": \"mlx5_0\", \"fd\": -1, \"length\": 0, "
	    "\"errno\": 9, \"probe\": true}");
	for (int i = 0; i < 10; i++)
		add(&o, "{\"call\": \"ibv_reg_dmabuf_mr\", \"device\": \"mlx5_0\", \"length\": "
			"4194304, "
			"\"fd\": 50, \"lkey\": \"0x1\", \"exporter\": \"nv_dmabuf\"}");
	add(&o, "{\"call\": \"ibv_reg_mr\", \"device\": \"mlx5_1\", \"length\": 8192, \"memory\": "
		"\"host\", \"lkey\": \"0x2\"}");
	add(&o, "{\"call\": \"ibv_reg_mr_iova2\", \"length\": 65536, \"memory\": \"reserved\", "
		"\"lkey\": \"0x3\"}");
	add(&o, "{\"call\": \"ibv_reg_mr\", \"length\": 65536, \"memory\": \"reserved\", "
		"\"errno\": 14}");
	add(&o, "{\"call\": \"ibv_reg_mr\", \"length\": 65536, \"memory\": \"reserved\", "
		"\"errno\": 14}");
	add(&o, "{\"call\": \"mlx5dv_reg_dmabuf_mr\", \"length\": 5, \"data_direct\": true}");
	add(&o, "{\"call\": \"ibv_reg_mr_ex\", \"memory\": \"unknown\"}");
	add(&o, "{\"call\": \"ibv_dereg_mr\", \"lkey\": \"0x2\"}");
	add(&o, "{\"call\": \"ibv_create_qp\", \"qpn\": 5}");
	assert_string_equal(o.program, "/usr/bin/python3");
	assert_int_equal(o.probes, 1);
	assert_int_equal(o.way[PP_REGISTERED_DMABUF].made, 10);
	assert_int_equal(o.way[PP_REGISTERED_DMABUF].bytes, 41943040);
	assert_int_equal(o.way[PP_REGISTERED_HOST].made, 1);
	assert_int_equal(o.way[PP_REGISTERED_PEERMEM].made, 1);
	assert_int_equal(o.way[PP_REGISTERED_DATA_DIRECT].made, 1);
	assert_int_equal(o.unknown.made, 1);
	assert_int_equal(o.gone, 1);
	assert_int_equal(o.queue_pairs, 1);
	assert_int_equal(o.n_errors, 1);
	assert_int_equal(o.error[0].error, 14);
	assert_int_equal(o.error[0].times, 2);
	assert_int_equal(o.n_devices, 2);
	assert_string_equal(o.exporter, "nv_dmabuf");
	assert_int_equal(o.malformed, 0);
}

static void test_hostile(void **state)
{
	static const char *const lines[] = {
		"",
		"[]",
		"{",
		"7",
		"{\"call\": 5}",
		"{\"call\": \"ibv_post_send\"}",
		"{\"call\": \"ibv_reg_mr\", \"call\": \"start\"}",
	};
	struct pp_observed o = {0};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(lines); i++)
		assert_int_equal(pp_observed_add(&o, lines[i], strlen(lines[i])), -EBADMSG);
	assert_int_equal(o.malformed, PP_ARRAY_LEN(lines));
	add(&o, "{\"call\": \"ibv_reg_mr\", \"memory\": \"host\", \"length\": -5}");
	add(&o,
	    "{\"call\": \"ibv_reg_mr\", \"memory\": \"host\", \"length\": 9223372036854775807}");
	add(&o,
	    "{\"call\": \"ibv_reg_mr\", \"memory\": \"host\", \"length\": 9223372036854775807}");
	add(&o,
	    "{\"call\": \"ibv_reg_mr\", \"memory\": \"host\", \"length\": 9223372036854775807}");
	assert_int_equal(o.way[PP_REGISTERED_HOST].bytes, INT64_MAX);
	add(&o, "{\"call\": \"ibv_create_qp\", \"device\": \"\\u001b[2Jx\"}");
	assert_null(strchr(o.device[0], 27));
	for (int i = 0; i < 100; i++) {
		char line[96];

		(void)snprintf(line, sizeof(line),
			       "{\"call\": \"ibv_create_qp\", \"device\": \"d%d\", \"errno\": %d}",
			       i, i);
		add(&o, line);
	}
	assert_int_equal(o.n_errors, PP_OBSERVED_ERRORS);
	assert_int_equal(o.n_devices, PP_OBSERVED_DEVICES);
}

/* A file that was cut in the middle of a record says that it is not whole. */
static void test_file(void **state)
{
	char path[] = "/tmp/peerpath-test-XXXXXX", line[PP_OBSERVATION_LINE + 8];
	static const char record[] = "{\"call\": \"ibv_create_qp\", \"qpn\": 5}\n";
	struct pp_observed o;
	struct pp_error err;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(write(fd, record, sizeof(record) - 1),
				 (ssize_t)sizeof(record) - 1);
	assert_int_equal(pp_observed_read(path, &o, &err), 0);
	assert_int_equal(o.queue_pairs, 5000);
	assert_int_equal(o.malformed, 0);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	assert_int_equal(write(fd, line, sizeof(line)), (ssize_t)sizeof(line));
	assert_int_equal(write(fd, record, 10), 10);
	assert_int_equal(pp_observed_read(path, &o, &err), 0);
	assert_int_equal(o.queue_pairs, 5000);
	assert_int_equal(o.malformed, 2);
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(pp_observed_read(path, &o, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_job),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
