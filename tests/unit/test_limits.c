/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: of made recordings, and of this process beside getrlimit(2), capget(2) and geteuid(2),
 * and inside namespaces made for the test.
 */
#include "node_replayed.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/limits.h"

/* After the fact table, whose identifiers it would replace. */
#include <linux/capability.h>

static const char LIMITS[] =
	"Limit                     Soft Limit           Hard Limit           Units     \n"
	"Max cpu time              unlimited            unlimited            seconds   \n"
	"Max locked memory         8388608              unlimited            bytes     \n"
	"Max address space         unlimited            unlimited            bytes     \n";

static const char INITIAL_PID[] = "pid:[4026531836]";
static const char INITIAL_CGROUP[] = "cgroup:[4026531835]";

static struct pp_record *record;

static void put(const char *path, const char *text)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_FILE, path, text, strlen(text), 0), 0);
}

static void ln(const char *path, const char *target)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_LINK, path, target, strlen(target), 0), 0);
}

static void test_parsers(void **state)
{
	static const char V1[] = "9:name=systemd:/a\n3:cpu,rdma:/docker/0a1b\n0::/b\n";
	static const char STATUS[] =
		"Name:\tx\nUidx:\t7\nUid:\t1000\t0\t0\t0\nCapEff:\t00000004000\n";
	int64_t soft = 0, hard = 0;
	char word[32];

	(void)state;
	assert_int_equal(pp_limits_memlock(LIMITS, &soft, &hard), 0);
	assert_int_equal(soft, 8388608);
	assert_int_equal(hard, -1);
	assert_int_equal(pp_limits_memlock("Max locked memory  few  many\n", &soft, &hard),
			 -EBADMSG);
	assert_int_equal(pp_limits_memlock("Max locked memory  5\n", &soft, &hard), -EBADMSG);
	assert_int_equal(pp_limits_memlock("Max cpu time 1 1\n", &soft, &hard), -ENOENT);
	assert_int_equal(pp_limits_status_word(STATUS, "Uid", 1, word, sizeof(word)), 0);
	assert_string_equal(word, "0");
	assert_int_equal(pp_limits_status_word(STATUS, "Uid", 4, word, sizeof(word)), -ENOENT);
	assert_int_equal(pp_limits_status_word(STATUS, "CapPrm", 0, word, sizeof(word)), -ENOENT);
	assert_int_equal(pp_limits_cgroup(V1, "rdma", word, sizeof(word)), 0);
	assert_string_equal(word, "/docker/0a1b");
	assert_int_equal(pp_limits_cgroup(V1, "", word, sizeof(word)), 0);
	assert_string_equal(word, "/b");
	assert_int_equal(pp_limits_cgroup(V1, "rdm", word, sizeof(word)), -ENOENT);
	assert_int_equal(pp_limits_cgroup("garbage\n1:\n", "", word, sizeof(word)), -ENOENT);
	assert_string_equal(pp_limits_cgroup_manager("0::/kubepods.slice/kubepods-burstable.slice/"
						     "cri-containerd-0a.scope"),
			    "kubernetes");
	assert_string_equal(pp_limits_cgroup_manager(V1), "docker");
	assert_string_equal(pp_limits_cgroup_manager("0::/machine.slice/libpod-0a.scope"),
			    "podman");
	/* The daemon's own service is no container. */
	assert_null(pp_limits_cgroup_manager("0::/system.slice/docker.service\n"));
	assert_null(pp_limits_cgroup_manager("0::/user.slice/user-1000.slice/session-3.scope\n"));
}

static void test_process(void **state)
{
	struct pp_node *n;

	(void)state;
	record = node_record();
	put("/proc/self/limits", LIMITS);
	put("/proc/self/status", "Name:\tp\nUid:\t1000\t1001\t1000\t1000\n"
				 "CapInh:\tffffffffffffffff\nCapEff:\t0000000000004000\n");
	put("/proc/self/uid_map", "         0     100000      65536\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_LIMIT_MEMLOCK), "8388608");
	assert_string_equal(node_text(n, PP_F_LIMIT_MEMLOCK_HARD), "-1");
	assert_string_equal(node_text(n, PP_F_CAP_IPC_LOCK), "yes");
	assert_string_equal(node_text(n, PP_F_CAP_NET_ADMIN), "no");
	assert_string_equal(node_text(n, PP_F_CAP_SYS_ADMIN), "no");
	assert_string_equal(node_text(n, PP_F_UID), "1001");
	assert_string_equal(node_text(n, PP_F_USER_NS), "yes");
	/* No /dev in the recording. */
	assert_false(node_known(n, PP_F_DEV_INFINIBAND));
	node_done(n);
	record = node_record();
	put("/proc/self/status", "Name:\tp\nUid:\tx\nCapEff:\tnone\n");
	put("/proc/self/uid_map", "         0          0 4294967295\n");
	assert_int_equal(pp_record_put(record, PP_ENTRY_DIR, "/dev/null", NULL, 0, 0), 0);
	assert_int_equal(pp_record_put(record, PP_ENTRY_DIR, "/dev/nvidiactl", NULL, 0, 0), 0);
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_LIMIT_MEMLOCK), "unknown: /proc/self/limits: absent");
	assert_false(node_known(n, PP_F_CAP_IPC_LOCK));
	assert_false(node_known(n, PP_F_UID));
	assert_string_equal(node_text(n, PP_F_USER_NS), "no");
	assert_string_equal(node_text(n, PP_F_DEV_INFINIBAND), "no");
	assert_string_equal(node_text(n, PP_F_DEV_NVIDIA), "yes");
	node_done(n);
	/* A directory above refuses: nothing is known to be absent. */
	record = node_record();
	assert_int_equal(pp_record_put(record, PP_ENTRY_DIR, "/dev/null", NULL, 0, 0), 0);
	assert_int_equal(pp_record_put(record, PP_ENTRY_ERROR, "/dev/infiniband", NULL, 0, -EACCES),
			 0);
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_DEV_INFINIBAND),
			    "unknown: /dev/infiniband: permission denied");
	assert_string_equal(node_text(n, PP_F_DEV_NVIDIA), "no");
	node_done(n);
}

static const char *container(const char *cgroup, const char *pid_ns, const char *cgroup_ns,
			     const char *path, const char *content)
{
	static char kind[256];
	struct pp_node *n;

	record = node_record();
	if (cgroup)
		put("/proc/self/cgroup", cgroup);
	if (pid_ns)
		ln("/proc/self/ns/pid", pid_ns);
	if (cgroup_ns)
		ln("/proc/self/ns/cgroup", cgroup_ns);
	if (path)
		put(path, content);
	n = node_replayed(record);
	(void)snprintf(kind, sizeof(kind), "%s", node_text(n, PP_F_CONTAINER));
	node_done(n);
	return kind;
}

static void test_container(void **state)
{
	static const char HOST[] = "0::/user.slice/user-1000.slice/session-3.scope\n";
	static const char INSIDE[] = "0::/\n";

	(void)state;
	assert_string_equal(container(HOST, INITIAL_PID, INITIAL_CGROUP, NULL, NULL), "none");
	assert_string_equal(container(HOST, INITIAL_PID, NULL, NULL, NULL), "none");
	/* The image of a container, unpacked as a machine's root. */
	assert_string_equal(container(HOST, INITIAL_PID, INITIAL_CGROUP, "/.dockerenv", ""),
			    "none");
	assert_string_equal(
		container(INSIDE, "pid:[4026532281]", "cgroup:[4026532283]", "/.dockerenv", ""),
		"docker");
	/* A pod that shares the host's namespaces is told by its path. */
	assert_string_equal(container("0::/kubepods.slice/kubepods-pod1.slice/crio-1.scope\n",
				      INITIAL_PID, INITIAL_CGROUP, NULL, NULL),
			    "kubernetes");
	assert_string_equal(container(INSIDE, "pid:[4026532281]", NULL, NULL, NULL), "other");
	assert_string_equal(container(INSIDE, INITIAL_PID, "cgroup:[4026532283]", NULL, NULL),
			    "other");
	assert_string_equal(
		container(INSIDE, NULL, NULL, "/run/.containerenv", "engine=\"podman\"\n"),
		"podman");
	assert_string_equal(container(INSIDE, NULL, NULL, "/run/systemd/container", "lxc\n"),
			    "lxc");
	assert_string_equal(container(INSIDE, NULL, NULL, "/.singularity.d/env/x", ""),
			    "apptainer");
	assert_string_equal(container(INSIDE, NULL, NULL, "/proc/1/environ", "container=lxc"),
			    "lxc");
	/* No mark, but nothing that says "none" either. */
	assert_memory_equal(container(INSIDE, NULL, NULL, NULL, NULL), "unknown: ", 9);
	assert_memory_equal(container(NULL, INITIAL_PID, NULL, NULL, NULL), "unknown: ", 9);
}

static void test_rdma_cgroup(void **state)
{
	struct pp_node *n;

	(void)state;
	record = node_record();
	put("/proc/self/cgroup", "0::/kubepods.slice/pod1\n");
	put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids rdma misc\n");
	put("/sys/fs/cgroup/cgroup.procs", "");
	put("/sys/fs/cgroup/kubepods.slice/cgroup.procs", "");
	put("/sys/fs/cgroup/kubepods.slice/rdma.max",
	    "mlx5_0 hca_handle=2 hca_object=2000\nmlx5_1 hca_handle=max hca_object=max\n");
	put("/sys/fs/cgroup/kubepods.slice/pod1/rdma.max", "mlx5_1 hca_handle=max hca_object=10\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_CGROUP), "/kubepods.slice/pod1");
	assert_string_equal(node_text(n, PP_F_CGROUP_RDMA_MAX),
			    "/sys/fs/cgroup/kubepods.slice/pod1: mlx5_1 hca_handle=max "
			    "hca_object=10, /sys/fs/cgroup/kubepods.slice: mlx5_0 hca_handle=2 "
			    "hca_object=2000");
	node_done(n);
	/* A level that cannot be seen may limit too. */
	record = node_record();
	put("/proc/self/cgroup", "0::/kubepods.slice/pod1\n");
	put("/sys/fs/cgroup/cgroup.controllers", "memory rdma\n");
	put("/sys/fs/cgroup/kubepods.slice/pod1/cgroup.procs", "");
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_CGROUP_RDMA_MAX));
	node_done(n);
	record = node_record();
	put("/proc/self/cgroup", "0::/a\n");
	put("/sys/fs/cgroup/cgroup.controllers", "memory rdmax xrdma\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_CGROUP_RDMA_MAX), "none");
	node_done(n);
	/* Version 1. */
	record = node_record();
	put("/proc/self/cgroup", "3:rdma:/x\n0::/y\n");
	put("/sys/fs/cgroup/rdma/x/rdma.max", "mlx5_0 hca_handle=1 hca_object=max\n");
	put("/sys/fs/cgroup/rdma/cgroup.procs", "");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_CGROUP), "/x");
	assert_string_equal(node_text(n, PP_F_CGROUP_RDMA_MAX),
			    "/sys/fs/cgroup/rdma/x: mlx5_0 hca_handle=1 hca_object=max");
	node_done(n);
	record = node_record();
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_CGROUP_RDMA_MAX));
	node_done(n);
}

static struct pp_node *collect_live(void)
{
	struct pp_source *live;
	struct pp_error err;
	struct pp_node *n;

	assert_int_equal(pp_source_live(&live, &err), 0);
	assert_int_equal(pp_node_collect(live, &n, &err), 0);
	return n;
}

static int64_t limit(rlim_t value)
{
	return value == RLIM_INFINITY ? -1 : (int64_t)value;
}

static void test_live(void **state)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];
	struct rlimit memlock;
	struct pp_node *n;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &memlock), 0);
	/* Another value than the machine's. */
	memlock.rlim_cur = memlock.rlim_cur < 65536 ? memlock.rlim_cur : 61440;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &memlock), 0);
	assert_int_equal(syscall(SYS_capget, &head, caps), 0);
	n = collect_live();
	assert_int_equal(pp_fact_int_or(n->self, PP_F_LIMIT_MEMLOCK, -2), limit(memlock.rlim_cur));
	assert_int_equal(pp_fact_int_or(n->self, PP_F_LIMIT_MEMLOCK_HARD, -2),
			 limit(memlock.rlim_max));
	assert_int_equal(pp_fact_int_or(n->self, PP_F_UID, -1), geteuid());
	assert_int_equal(pp_fact_int_or(n->self, PP_F_CAP_IPC_LOCK, -1),
			 caps[0].effective >> CAP_IPC_LOCK & 1);
	assert_int_equal(pp_fact_int_or(n->self, PP_F_CAP_NET_ADMIN, -1),
			 caps[0].effective >> CAP_NET_ADMIN & 1);
	assert_int_equal(pp_fact_int_or(n->self, PP_F_CAP_SYS_ADMIN, -1),
			 caps[0].effective >> CAP_SYS_ADMIN & 1);
	node_done(n);
}

/* Exit status of a child in new namespaces: 77 when they are refused. */
static int in_namespaces(int flags, int (*check)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(unshare(flags) ? 77 : check());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int in_user_namespace(void)
{
	struct pp_node *n = collect_live();
	bool yes = pp_fact_is(n->self, PP_F_USER_NS);

	node_done(n);
	return yes ? 0 : 1;
}

static int not_outside(void)
{
	struct pp_node *n = collect_live();
	bool none = !strcmp(pp_fact_str_or(n->self, PP_F_CONTAINER, "unknown"), "none");

	node_done(n);
	return none ? 1 : 0;
}

static void test_namespaces(void **state)
{
	int user = in_namespaces(CLONE_NEWUSER, in_user_namespace);
	int cgroup = in_namespaces(CLONE_NEWCGROUP, not_outside);

	(void)state;
	assert_true(user == 0 || user == 77);
	assert_true(cgroup == 0 || cgroup == 77);
	if (user || cgroup) {
		print_message("namespaces cannot be made here\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parsers),	   cmocka_unit_test(test_process),
		cmocka_unit_test(test_container),  cmocka_unit_test(test_rdma_cgroup),
		cmocka_unit_test(test_namespaces), cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
