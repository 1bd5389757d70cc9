/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: texts of /proc, a made /proc, and this machine's own.
 */
#include "trace_tree.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "trace/process_parts.h"

static void test_stat(void **state)
{
	/* A program chooses its name. */
	static const char STAT[] = "41 (a) b (c) R 1 41 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 "
				   "8730 9 10 18446744073709551615\n";
	uint64_t started = 0;

	(void)state;
	assert_int_equal(pp_process_started(STAT, &started), 0);
	assert_int_equal(started, 8730);
	assert_int_equal(pp_process_started("41 (a) R 1 2 3", &started), -EBADMSG);
	assert_int_equal(pp_process_started("", &started), -EBADMSG);
	assert_int_equal(pp_process_ns("pid:[4026531836]"), 4026531836);
	assert_int_equal(pp_process_ns("pid:[4026531836"), 0);
	assert_int_equal(pp_process_ns("user:[4026531836]"), 0);
}

static void test_cgroup(void **state)
{
	char path[256];

	(void)state;
	pp_process_cgroup("9:name=systemd:/a\n3:rdma:/long/one\n0::/b\n", path, sizeof(path));
	assert_string_equal(path, "/b");
	pp_process_cgroup("9:cpu:/a\n3:rdma:/docker/0a1b\n2:memory:/c\n", path, sizeof(path));
	assert_string_equal(path, "/docker/0a1b");
	pp_process_cgroup("nonsense\nmore\n1:x:/d\n", path, sizeof(path));
	assert_string_equal(path, "/d");
	pp_process_cgroup("", path, sizeof(path));
	assert_string_equal(path, "");
}

/* As the H200 machine printed it (driver 580.159.04), and as older kernels do. */
static void test_fdinfo(void **state)
{
	static const char H200[] = "pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t1\n"
				   "size:\t8388608\ncount:\t1\nexp_name:\tnv_dmabuf\n";
	static const char OLD[] = "pos:\t0\nflags:\t02\nmnt_id:\t14\nsize:\t4096\ncount:\t2\n"
				  "exp_name:\tnvidia\n";
	/* Its owner has named it so: the first line of a key counts. */
	static const char FORGED[] = "pos:\t0\nino:\t7\nsize:\t4096\ncount:\t1\nexp_name:\tdrm\n"
				     "name:\tx\nexp_name:\tnv_dmabuf\nino:\t9\n";
	static const char *const others[] = {
		"",
		"pos:\t0\nflags:\t02\nmnt_id:\t14\nino:\t5\n",
		"size:\tmany\nexp_name:\tdrm\n",
		"size:\t1\nexp_name:\t\n",
		"size:\t1\nexp_name:\tabcdefghijklmnopqrstuvwxyz0123456789\n",
		"size:\t18446744073709551616\nexp_name:\tdrm\n",
	};
	struct pp_process_buffer b = {.fd = 5};

	(void)state;
	assert_int_equal(pp_fdinfo_parse(H200, strlen(H200), &b), 0);
	assert_true(b.has_info);
	assert_int_equal(b.fd, 5);
	assert_int_equal(b.inode, 1);
	assert_int_equal(b.size, 8 << 20);
	assert_int_equal(b.count, 1);
	assert_string_equal(b.exporter, "nv_dmabuf");
	b = (struct pp_process_buffer){.inode = 33};
	assert_int_equal(pp_fdinfo_parse(OLD, strlen(OLD), &b), 0);
	assert_int_equal(b.inode, 33);
	assert_string_equal(b.exporter, "nvidia");
	assert_int_equal(pp_fdinfo_parse(FORGED, strlen(FORGED), &b), 0);
	assert_string_equal(b.exporter, "drm");
	assert_int_equal(b.inode, 7);
	b = (struct pp_process_buffer){.fd = 1};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(pp_fdinfo_parse(others[i], strlen(others[i]), &b), -EBADMSG);
		assert_false(b.has_info);
	}
}

/* One process of a made /proc. */
static void put_process(int pid, const char *comm, const char *more_status)
{
	char path[128], text[512];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	(void)snprintf(text, sizeof(text),
		       "%d (%s) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, comm,
		       1000 + pid);
	tree_file(path, text);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	(void)snprintf(text, sizeof(text), "Name:\t%s\nTgid:\t%d\n%s", comm, pid, more_status);
	tree_file(path, text);
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	(void)snprintf(text, sizeof(text), "%s\n", comm);
	tree_file(path, text);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/0", pid);
	tree_link(path, "/dev/null");
}

static void put_proc(const char *ns_pids, bool init)
{
	tree_new();
	if (init)
		put_process(1, "init", "");
	put_process(77, "self", ns_pids);
	tree_link("/proc/self", "77");
	tree_link("/proc/77/ns/pid", "pid:[4026531836]");
	put_process(100, "train) (x", "Uid:\t1000\t1001\t1000\t1000\nVmPin:\t    2048 kB\n");
	tree_link("/proc/100/fd/4", "/dev/infiniband/uverbs0");
	tree_link("/proc/100/fd/5", "/dev/infiniband/uverbs0");
	tree_link("/proc/100/fd/6", "/dev/infiniband/uverbs1");
	tree_link("/proc/100/fd/7", "/dmabuf:");
	tree_link("/proc/100/fd/8", "/dmabuf:a name");
	tree_link("/proc/100/fd/9", "/dev/nvidia0");
	tree_link("/proc/100/fd/10", "/dev/nvidiactl");
	tree_link("/proc/100/fd/11", "/dev/infiniband/rdma_cm");
	tree_file("/proc/100/fdinfo/7",
		  "ino:\t12\nsize:\t65536\ncount:\t2\nexp_name:\tnv_dmabuf\n");
	tree_link("/proc/100/ns/pid", "pid:[4026532281]");
	tree_file("/proc/100/cgroup", "0::/kubepods.slice/pod1\n");
	put_process(200, "shell", "");
	put_process(300, "late", "VmPin:\t0 kB\n");
	tree_link("/proc/300/fd/3", "/dev/nvidia0");
	/* A thread of 300 that netlink names. */
	tree_file("/proc/305/status", "Name:\tlate\nTgid:\t300\n");
}

static void ask(struct pp_processes *ret, pid_t pid)
{
	struct pp_resource items[] = {{.tid = 305}, {.tid = 306}, {.tid = 305}, {.tid = 100}};
	struct pp_resources resources = {.item = items, .n = 4};
	struct pp_source *s = tree_source();
	struct pp_answer a;

	assert_int_equal(pp_processes_ask(s, &resources, pid, &a), 0);
	if (!a.answered)
		fail_msg("%s", a.detail);
	assert_int_equal(pp_processes_read(&a, ret), 0);
	pp_answer_done(&a);
	pp_source_free(s);
	tree_done();
}

static void test_scan(void **state)
{
	struct pp_processes p;
	const struct pp_process *o;

	(void)state;
	put_proc("NSpid:\t77\n", true);
	ask(&p, 0);
	assert_int_equal(p.processes.state, PP_SURFACE_READ);
	assert_true(p.host_pid_ns);
	assert_int_equal(p.own_pid_ns, 4026531836);
	assert_int_equal(p.unreadable, 0);
	assert_int_equal(p.n, 2);
	o = pp_process_find(&p, 100);
	assert_non_null(o);
	assert_int_equal(o->started, 1100);
	assert_int_equal(o->uid, 1001);
	assert_int_equal(o->pinned_kb, 2048);
	assert_int_equal(o->pid_ns, 4026532281);
	assert_string_equal(o->comm, "train) (x");
	assert_string_equal(o->cgroup, "/kubepods.slice/pod1");
	assert_int_equal(o->n_uverbs, 2);
	assert_string_equal(o->uverbs[0], "uverbs0");
	assert_string_equal(o->uverbs[1], "uverbs1");
	assert_int_equal(o->gpu_descriptors, 2);
	assert_int_equal(o->n_buffers, 2);
	/* Of one descriptor there is no fdinfo. */
	assert_int_equal(p.fdinfo.state, PP_SURFACE_CUT);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(o->buffer[i].has_info, o->buffer[i].fd == 7);
	o = pp_process_of_thread(&p, 305);
	assert_non_null(o);
	assert_int_equal(o->pid, 300);
	assert_int_equal(o->uid, UINT32_MAX);
	assert_int_equal(o->gpu_descriptors, 1);
	assert_int_equal(o->n_threads, 1);
	assert_null(pp_process_of_thread(&p, 306));
	assert_int_equal(pp_process_of_thread(&p, 100)->pid, 100);
	assert_null(pp_process_find(&p, 200));
	pp_processes_done(&p);
	put_proc("NSpid:\t77\n", true);
	ask(&p, 200);
	assert_string_equal(pp_process_find(&p, 200)->comm, "shell");
	pp_processes_done(&p);
}

static void test_hidden(void **state)
{
	struct pp_processes p;

	(void)state;
	put_proc("NSpid:\t77\t5\n", true);
	ask(&p, 0);
	assert_int_equal(p.processes.state, PP_SURFACE_CUT);
	assert_non_null(strstr(p.processes.why, "another PID namespace"));
	/* A thread's number would be another's there. */
	assert_null(pp_process_of_thread(&p, 305));
	pp_processes_done(&p);
	put_proc("NSpid:\t77\n", false);
	ask(&p, 0);
	assert_int_equal(p.processes.state, PP_SURFACE_CUT);
	assert_non_null(strstr(p.processes.why, "hidepid"));
	assert_int_equal(p.fdinfo.state, PP_SURFACE_CUT);
	pp_processes_done(&p);
}

/* @text as the data of an answer that was given. */
static void read_text(const char *text, struct pp_processes *ret)
{
	struct pp_answer a = {.answered = true, .outcome = PP_ANSWERED};

	a.data = json_loads(text, 0, NULL);
	assert_non_null(a.data);
	assert_int_equal(pp_processes_read(&a, ret), 0);
	pp_answer_done(&a);
}

#define WHOLE                                                                        \
	"\"first_pid_namespace\": true, \"own_proc\": true, \"init_listed\": true, " \
	"\"unreadable\": "                                                           \
	"0, "

static void test_states(void **state)
{
	static const struct {
		const char *data;
		enum pp_surface_state processes, fdinfo;
		const char *why;
	} cases[] = {
		{"{" WHOLE "\"processes\": []}", PP_SURFACE_READ, PP_SURFACE_READ, ""},
		{"{\"processes\": []}", PP_SURFACE_CUT, PP_SURFACE_CUT, "another PID namespace"},
		{"{" WHOLE "\"processes\": [], \"cut\": \"full\"}", PP_SURFACE_CUT, PP_SURFACE_CUT,
		 "full"},
		{"{\"errno\": 2}", PP_SURFACE_ABSENT, PP_SURFACE_ABSENT, "/proc: absent"},
		{"{\"errno\": 13}", PP_SURFACE_REFUSED, PP_SURFACE_REFUSED, "permission"},
		{"{}", PP_SURFACE_CUT, PP_SURFACE_CUT, "lists no processes"},
		{"{" WHOLE "\"processes\": [{\"pid\": 0, \"started\": 1}]}", PP_SURFACE_CUT,
		 PP_SURFACE_CUT, "malformed"},
		{"{" WHOLE "\"processes\": [{\"pid\": 7, \"started\": 1, \"buffers\": [{\"fd\": "
		 "3}]}]}",
		 PP_SURFACE_READ, PP_SURFACE_ABSENT, ""},
		{"{\"first_pid_namespace\": true, \"own_proc\": true, \"init_listed\": true,"
		 "\"unreadable\": 4, \"processes\": []}",
		 PP_SURFACE_CUT, PP_SURFACE_CUT, "4 processes"},
	};
	struct pp_processes p;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text(cases[i].data, &p);
		assert_int_equal(p.processes.state, cases[i].processes);
		assert_int_equal(p.fdinfo.state, cases[i].fdinfo);
		if (!strstr(p.processes.why, cases[i].why))
			fail_msg("%s: \"%s\"", cases[i].data, p.processes.why);
		pp_processes_done(&p);
	}
}

static void ask_live(const struct pp_resources *r, pid_t pid, struct pp_processes *ret)
{
	struct pp_source *s = NULL;
	struct pp_answer a;
	struct pp_error err;

	assert_int_equal(pp_source_live(&s, &err), 0);
	assert_int_equal(pp_processes_ask(s, r, pid, &a), 0);
	if (!a.answered)
		fail_msg("%s", a.detail);
	assert_int_equal(pp_processes_read(&a, ret), 0);
	pp_answer_done(&a);
	pp_source_free(s);
}

static int to_stay[2], to_say[2];

static void *thread_stays(void *arg)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char byte;

	(void)arg;
	assert_int_equal(write(to_say[1], &tid, sizeof(tid)), sizeof(tid));
	(void)!read(to_stay[0], &byte, 1);
	return NULL;
}

/* This process and a thread of it, by the thread's number alone. */
static void test_live(void **state)
{
	struct pp_resource item = {0};
	struct pp_resources r = {.item = &item, .n = 1};
	struct pp_processes p;
	const struct pp_process *me;
	char comm[32] = "";
	pthread_t thread;
	pid_t tid = 0;
	FILE *f = fopen("/proc/self/comm", "re");

	(void)state;
	assert_non_null(fgets(comm, sizeof(comm), f));
	(void)fclose(f);
	comm[strcspn(comm, "\n")] = '\0';
	assert_int_equal(pipe(to_stay) || pipe(to_say), 0);
	assert_int_equal(pthread_create(&thread, NULL, thread_stays, NULL), 0);
	assert_int_equal(read(to_say[0], &tid, sizeof(tid)), sizeof(tid));
	item.tid = (uint32_t)tid;
	ask_live(&r, 0, &p);
	me = pp_process_of_thread(&p, tid);
	assert_non_null(me);
	assert_int_equal(me->pid, getpid());
	assert_int_equal(me->uid, geteuid());
	assert_string_equal(me->comm, comm);
	assert_true(me->descriptors_read);
	assert_true(pp_process_is(me->pid, me->started));
	assert_false(pp_process_is(me->pid, me->started + 1));
	pp_processes_done(&p);
	assert_int_equal(close(to_stay[1]), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* Now nobody has this number. */
	ask_live(&r, 0, &p);
	assert_null(pp_process_of_thread(&p, tid));
	pp_processes_done(&p);
}

static void as_nobody(void)
{
	struct pp_processes p;

	if (setgid(65534) || setuid(65534))
		_exit(77);
	ask_live(NULL, 0, &p);
	_exit(p.unreadable > 0 && p.processes.state == PP_SURFACE_CUT ? 0 : 1);
}

/* Who may not look into others' descriptors is told so. */
static void test_unprivileged(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		as_nobody();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("another user cannot be taken here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),   cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_fdinfo), cmocka_unit_test(test_scan),
		cmocka_unit_test(test_hidden), cmocka_unit_test(test_states),
		cmocka_unit_test(test_live),   cmocka_unit_test(test_unprivileged),
	};

	return cmocka_run_group_tests_name("trace_process", tests, NULL, NULL);
}
