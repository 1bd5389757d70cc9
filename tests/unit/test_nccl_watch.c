/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job is told to log, what it is started with, who descends from it, and counters over a
 * window without a known end. NCCL's rules for its variables are those of its debug.cc and
 * param.cc; names in /proc are the kernel's.
 */
#include "unit.h"

#include <signal.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle/tree.h"
#include "nccl/feed.h"
#include "nccl/run_library.h"
#include "nccl/run_logging.h"
#include "nccl/run_merge.h"
#include "nccl/run_settings.h"
#include "nccl/run_tree.h"
#include "trace/traffic_parts.h"
#include "base/banned.h"

static void test_level(void **state)
{
	(void)state;
	assert_true(pp_nccl_logs_enough("INFO"));
	assert_true(pp_nccl_logs_enough("trace"));
	assert_false(pp_nccl_logs_enough("WARN"));
	assert_false(pp_nccl_logs_enough("VERSION"));
	assert_false(pp_nccl_logs_enough(""));
	assert_false(pp_nccl_logs_enough(NULL));
}

static void test_subsystems(void **state)
{
	static const struct {
		const char *has, *wants; /* NULL: enough as it is */
	} rows[] = {
		{NULL, "INIT,ENV,NET,GRAPH,REG"},
		{"", "INIT,ENV,NET,GRAPH,REG"},
		{"ALL", NULL},
		{"COLL,all", NULL},
		{"INIT,ENV,NET,GRAPH,REG", NULL},
		{"reg,net,graph,init,env,coll", NULL},
		{"NETWORK", "NETWORK,INIT,ENV,NET,GRAPH,REG"},
		{"COLL,", "COLL,,INIT,ENV,NET,GRAPH,REG"},
		{"^COLL", NULL},
		{"^COLL,NET,P2P", "^COLL,P2P"},
		{"^NET,ENV", "ALL"},
		{"^ALL", "ALL"},
		{"^", NULL},
	};
	char list[128], small[8];

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		bool changed = pp_nccl_log_subsystems(rows[i].has, list, sizeof(list));

		assert_int_equal(changed, rows[i].wants != NULL);
		assert_string_equal(list, rows[i].wants ? rows[i].wants : rows[i].has);
	}
	assert_true(pp_nccl_log_subsystems(NULL, small, sizeof(small)));
	assert_true(strlen(small) < sizeof(small));
}

static void test_names(void **state)
{
	char name[32];

	(void)state;
	assert_true(pp_nccl_log_name("/a/%h.%p.log", "node7", "42", name, sizeof(name)));
	assert_string_equal(name, "/a/node7.42.log");
	assert_true(pp_nccl_log_name("100%/%x%", "h", "1", name, sizeof(name)));
	assert_string_equal(name, "100%/%x%");
	assert_false(pp_nccl_log_name("%h%h%h%h", "0123456789", "1", name, sizeof(name)));
}

static void test_library(void **state)
{
	(void)state;
	assert_string_equal(
		pp_nccl_library_of_line("7f00-7f10 r-xp 0 08:01 1   /opt/x y/libnccl.so.2.21.5"),
		"/opt/x y/libnccl.so.2.21.5");
	assert_non_null(pp_nccl_library_of_line("7f00-7f10 r-xp 0 08:01 1 /libnccl.so (deleted)"));
	assert_null(pp_nccl_library_of_line("7f00-7f10 r-xp 0 08:01 1 /a/libnccl-net.so"));
	assert_null(pp_nccl_library_of_line("7f00-7f10 r-xp 0 08:01 1 /libnccl.so/else"));
	assert_null(pp_nccl_library_of_line("7f00-7f10 rw-p 0 00:00 0 [heap]"));
	assert_null(pp_nccl_library_of_line(""));
}

static void put(struct pp_record *record, const char *path, const char *text)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_FILE, path, text, strlen(text), 0), 0);
}

/* The environment wins over files, and the first file over the second (param.cc). */
static void test_settings(void **state)
{
	char *environment[] = {"PATH=/bin",
			       "NCCL_IB_HCA==mlx5_0",
			       "NCCL_CONF_FILE=/c.conf",
			       "NCCL_",
			       "NCCLX=1",
			       "NCCL_EMPTY=",
			       NULL};
	struct pp_nccl_run *r = calloc(1, sizeof(*r));
	struct pp_error err = {0};
	struct pp_record *record;
	struct pp_source *s;

	(void)state;
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	put(record, "/c.conf", "NCCL_IB_HCA=no\nNCCL_DEBUG=WARN\n#NCCL_X=1\nOTHER=1\n");
	put(record, "/etc/nccl.conf", "NCCL_DEBUG=INFO\nNCCL_NET_GDR_LEVEL=LOC\n");
	assert_int_equal(pp_source_replay_record(record, &s, &err), 0);
	assert_int_equal(pp_nccl_run_settings_read(r, s, environment), 0);
	assert_string_equal(pp_nccl_run_setting_value(r, "NCCL_IB_HCA"), "=mlx5_0");
	assert_string_equal(pp_nccl_run_setting_value(r, "NCCL_DEBUG"), "WARN");
	assert_string_equal(pp_nccl_run_setting_value(r, "NCCL_NET_GDR_LEVEL"), "LOC");
	assert_string_equal(pp_nccl_run_setting_value(r, "NCCL_EMPTY"), "");
	assert_null(pp_nccl_run_setting_value(r, "NCCL_X"));
	assert_null(pp_nccl_run_setting_value(r, "OTHER"));
	assert_int_equal(r->n_settings, 5);
	pp_source_free(s);
	free(r);
}

static void test_environment(void **state)
{
	char *from[] = {"A=1", "NCCL_DEBUG=WARN", NULL};
	struct pp_arena arena = PP_ARENA(1 << 16);
	struct pp_nccl_run *r = calloc(1, sizeof(*r));
	struct pp_nccl_environment e;

	(void)state;
	assert_int_equal(pp_nccl_environment_copy(&e, &arena, from), 0);
	assert_int_equal(pp_nccl_run_set(r, &e, PP_NCCL_FROM_LOGGING, "NCCL_DEBUG", "INFO", "y"),
			 0);
	assert_int_equal(pp_nccl_run_set(r, &e, PP_NCCL_FROM_ARM, "NCCL_NET", "IB", "x"), 0);
	assert_string_equal(e.at[1], "NCCL_DEBUG=INFO");
	assert_string_equal(e.at[2], "NCCL_NET=IB");
	assert_null(e.at[3]);
	assert_string_equal(from[1], "NCCL_DEBUG=WARN");
	assert_string_equal(r->setting[0].was, "WARN");
	assert_string_equal(r->setting[0].undo, "export NCCL_DEBUG=WARN");
	assert_string_equal(r->setting[1].undo, "unset NCCL_NET");
	/* what does not fit is refused, and nothing is written behind the end */
	for (unsigned int i = 0; i < 100; i++) {
		char name[16];
		int bad;

		(void)snprintf(name, sizeof(name), "N%u", i);
		bad = pp_nccl_environment_set(&e, name, "1");
		assert_true(bad == 0 || bad == -ENOMEM);
	}
	assert_null(e.at[e.n]);
	pp_arena_done(&arena);
	free(r);
}

/* A child, its child that has left the session, and nobody else. */
static void test_tree(void **state)
{
	pid_t found[16], child, grandchild = 0;
	int told[2];
	size_t n;

	(void)state;
	assert_int_equal(pipe(told), 0);
	child = fork();
	if (!child) {
		grandchild = fork();
		if (!grandchild) {
			(void)setsid();
			(void)pause();
			_exit(0);
		}
		(void)!write(told[1], &grandchild, sizeof(grandchild));
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(told[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	n = pp_nccl_tree(getpid(), found, PP_ARRAY_LEN(found));
	assert_int_equal(n, 2);
	assert_true((found[0] == child && found[1] == grandchild) ||
		    (found[1] == child && found[0] == grandchild));
	assert_int_equal(pp_nccl_tree(child, found, PP_ARRAY_LEN(found)), 1);
	assert_int_equal(found[0], grandchild);
	assert_int_equal(pp_nccl_tree(grandchild, found, PP_ARRAY_LEN(found)), 0);
	(void)kill(grandchild, SIGKILL);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	(void)close(told[0]);
	(void)close(told[1]);
}

/* The table of nccl-tests: README of NVIDIA/nccl-tests has such rows. */
static void test_figures(void **state)
{
	static const char text[] =
		"# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: "
		"5 iters: 20 agg iters: 2 validation: 1 graph: 0\n"
		"#       size         count      type   redop    root     time   algbw   busbw "
		"#wrong     time   algbw   busbw #wrong\n"
		"           8             2     float     sum      -1    34.17    0.00    0.00     "
		" 0"
		"    33.43    0.00    0.00      0\n"
		"   134217728      33554432     float     sum      -1    866.4  154.91  271.09     "
		" 0"
		"    865.5  155.08  271.39      0\n";
	struct pp_nccl_feed f;

	(void)state;
	assert_int_equal(pp_nccl_feed_init(&f), 0);
	pp_nccl_feed_file(&f, "a");
	pp_nccl_feed_push(&f, text, sizeof(text) - 1);
	pp_nccl_feed_end(&f);
	assert_int_equal(f.job.bench.largest, 134217728);
	assert_int_equal(f.job.bench.smallest, 8);
	assert_true(f.job.bench.largest_busbw_gbps > 271.08 &&
		    f.job.bench.largest_busbw_gbps < 271.10);
	assert_true(f.job.bench.smallest_us > 34.16 && f.job.bench.smallest_us < 34.18);
	assert_int_equal(f.job.bench.iterations, 40);
	assert_int_equal(f.job.bench.payload_bytes, (134217728ULL + 8) * 2 * 40);
	pp_nccl_feed_done(&f);
}

static struct pp_nccl_run *report(const char *host, const char *timeout, uint64_t dmabuf, bool wide)
{
	struct pp_nccl_run *r;
	struct pp_nccl_run_node *n;

	assert_int_equal(pp_nccl_run_new(PP_NCCL_ARM_UNCHANGED, 1, &r), 0);
	n = r->node;
	(void)snprintf(n->host, sizeof(n->host), "%s", host);
	n->ranks = 1;
	n->cpu_seconds = 2;
	n->log_bytes = 100;
	n->library.made[PP_REGISTERED_DMABUF] = dmabuf;
	n->observed.way[PP_REGISTERED_DMABUF].made = dmabuf;
	n->n_mapped = 1;
	(void)snprintf(n->mapped, sizeof(n->mapped), "/lib/libnccl.so.2");
	if (!dmabuf)
		(void)snprintf(n->library.why, sizeof(n->library.why), "nothing");
	if (wide) {
		n->traffic.window = 5;
		n->kernel.made[PP_REGISTERED_DMABUF] = 7;
	} else {
		(void)snprintf(n->kernel.why, sizeof(n->kernel.why), "another looks");
	}
	(void)pp_nccl_run_setting_add(r, PP_NCCL_FROM_USER, "NCCL_IB_TIMEOUT", timeout);
	(void)pp_nccl_run_setting_add(r, PP_NCCL_FROM_LOGGING, "NCCL_DEBUG_FILE", host);
	return r;
}

/* Three processes on two hosts: sums by host, and of the whole node by who looked at it. */
static void test_merge(void **state)
{
	struct pp_nccl_run *all = report("a", "20", 4, true), *second = report("a", "20", 0, false),
			   *third = report("b", "21", 3, true);

	(void)state;
	second->node[0].status = 9;
	assert_int_equal(pp_nccl_run_merge(all, second), 0);
	assert_int_equal(pp_nccl_run_merge(all, third), 0);
	assert_int_equal(all->n_nodes, 2);
	assert_int_equal(all->node[0].ranks, 2);
	assert_int_equal(all->node[0].status, 9);
	assert_true(all->node[0].cpu_seconds == 4);
	assert_int_equal(all->node[0].log_bytes, 200);
	assert_int_equal(all->node[0].library.made[PP_REGISTERED_DMABUF], 4);
	assert_string_equal(all->node[0].library.why, "");
	assert_int_equal(all->node[0].kernel.made[PP_REGISTERED_DMABUF], 7);
	assert_string_equal(all->node[0].kernel.why, "");
	assert_int_equal(all->node[0].n_mapped, 1);
	assert_int_equal(all->node[1].observed.way[PP_REGISTERED_DMABUF].made, 3);
	/* a value of two processes of one host is one node's; another value is another row */
	assert_int_equal(all->n_settings, 3);
	assert_int_equal(all->setting[0].nodes, 1);
	assert_string_equal(all->setting[1].name, "NCCL_DEBUG_FILE");
	assert_int_equal(all->setting[1].nodes, 2);
	assert_string_equal(all->setting[2].value, "21");
	/* who looks at the node comes later than the others */
	assert_int_equal(pp_nccl_run_merge(second, all), 0);
	assert_int_equal(second->node[0].traffic.window, 5);
	assert_int_equal(second->node[0].kernel.made[PP_REGISTERED_DMABUF], 7);
	pp_nccl_run_free(all);
	pp_nccl_run_free(second);
	pp_nccl_run_free(third);
}

static void write_counter(const char *top, const char *name, const char *text)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/sys/class/infiniband/mlx5_0/ports/1/counters/%s",
		       top, name);
	for (char *slash = path + strlen(top) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

/* In a child, as a helper would; its document goes to @out. */
static void count(const struct pp_traffic_question *q, int out)
{
	struct pp_buf buf = PP_BUF(1 << 16);
	struct pp_json j = PP_JSON(&buf, false);
	struct pp_error err = {0};

	pp_json_object(&j, NULL);
	(void)pp_traffic_host_run(&j, q, &err);
	pp_json_end_object(&j);
	_exit(write(out, buf.data, buf.len) != (ssize_t)buf.len);
}

/* Without a known end the difference is that of the counters, in words of four bytes. */
static void test_span(void **state)
{
	char top[] = "/tmp/test-nccl-watch-XXXXXX", text[8192] = "";
	int stop[2], ready[2], out[2];
	struct pp_traffic_question q = {.window = 60 * PP_SECOND, .open_end = true};
	struct pp_error err = {0};
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(top));
	write_counter(top, "port_xmit_data", "1000\n");
	write_counter(top, "port_rcv_data", "50\n");
	assert_int_equal(pp_source_root(top, &q.src, &err), 0);
	assert_int_equal(pipe(stop) | pipe(ready) | pipe(out), 0);
	q.stop = stop[0];
	q.ready = ready[1];
	pid = fork();
	if (!pid)
		count(&q, out[1]);
	(void)close(out[1]);
	assert_int_equal(read(ready[0], text, 1), 1);
	write_counter(top, "port_xmit_data", "3000\n");
	write_counter(top, "port_rcv_data", "60\n");
	assert_int_equal(write(stop[1], "s", 1), 1);
	while ((n = read(out[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	assert_non_null(strstr(text, "\"sent_bytes\":8000"));
	assert_non_null(strstr(text, "\"received_bytes\":40"));
	(void)waitpid(pid, NULL, 0);
	pp_source_free(q.src);
	assert_int_equal(pp_tree_remove(AT_FDCWD, top), 0);
	for (int i = 0; i < 2; i++) {
		(void)close(stop[i]);
		(void)close(ready[i]);
	}
	(void)close(out[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_level),	 cmocka_unit_test(test_subsystems),
		cmocka_unit_test(test_names),	 cmocka_unit_test(test_library),
		cmocka_unit_test(test_settings), cmocka_unit_test(test_environment),
		cmocka_unit_test(test_tree),	 cmocka_unit_test(test_figures),
		cmocka_unit_test(test_span),	 cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
