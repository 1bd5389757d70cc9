/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and their answers, as people paste them: what an empty or short answer says, and that
 * the answers of a healthy machine say nothing.
 */
#include "explain_rules.h"

#include <dirent.h>
#include <string.h>

#include "judge/textfile.h"
#include "base/compiler.h"

/* Causes of @text in @x, to be ended by the caller; the second holds what the first points into. */
static struct pp_explain *explain(const struct pp_known_set *known, const char *text, size_t len,
				  struct pp_explanation *x)
{
	struct pp_explain *e = NULL;

	assert_int_equal(pp_explain_new(known, &e), 0);
	pp_explain_push(e, text, len);
	assert_int_equal(pp_explain_finish(e, NULL, x), 0);
	return e;
}

static void done(struct pp_explain *e, struct pp_explanation *x)
{
	pp_explanation_done(x);
	pp_explain_free(e);
}

static bool found(const struct pp_explanation *x, const char *id)
{
	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->list[i].known->rule.id, id))
			return true;
	return false;
}

static void test_answers(void **state)
{
	static const struct {
		const char *text, *rule;
		bool said;
	} rows[] = {
		/* Nothing between two prompts: not loaded. */
		{"# lsmod | grep nv_peer\n#\n", "peermem-not-loaded", true},
		{"$ sudo lsmod | grep -i nvidia-peermem\n$ ls\n", "peermem-not-loaded", true},
		{"lsmod | grep nvidia_peermem\nmodinfo nvidia_peermem\n", "peermem-not-loaded",
		 true},
		{"lsmod | grep nvidia_peermem\nnvidia_peermem 16384 0\n", "peermem-not-loaded",
		 false},
		/* Loaded later. */
		{"# lsmod | grep nvidia_peermem\n# modprobe nvidia_peermem\n# lsmod | grep "
		 "nvidia_peermem\nnvidia_peermem 16384 0\n#\n",
		 "peermem-not-loaded", false},
		/* The end may be cut, prose is no prompt, other searches are not understood. */
		{"# lsmod | grep nv_peer\n", "peermem-not-loaded", false},
		{"lsmod | grep nv_peer\ndid not help me\n", "peermem-not-loaded", false},
		{"please run lsmod | grep nv_peer\n#\n", "peermem-not-loaded", false},
		/* A node of the host that the container lacks; quotes of each locale, and none. */
		{"host:\ncrw-rw-rw- 1 root root 510, 0 Jan 1 00:00 /dev/gdrdrv\ncontainer:\n"
		 "ls: cannot access /dev/gdrdrv: No such file or directory\n",
		 "device-node-not-passed", true},
		{"crw-rw-rw- 1 root root 510, 0 Jan 1 00:00 /dev/gdrdrv\nin the pod\n"
		 "ls: cannot access \xe2\x80\x98/dev/gdrdrv\xe2\x80\x99: No such file or "
		 "directory\n",
		 "device-node-not-passed", true},
		/* Another node, the reverse order (loaded meanwhile), and no word of a container.
		 */
		{"crw-rw-rw- 1 root root 510, 0 Jan 1 00:00 /dev/gdrdrv2\ncontainer:\n"
		 "ls: cannot access '/dev/gdrdrv': No such file or directory\n",
		 "device-node-not-passed", false},
		{"container:\nls: cannot access '/dev/gdrdrv': No such file or directory\n"
		 "crw-rw-rw- 1 root root 510, 0 Jan 1 00:00 /dev/gdrdrv\n",
		 "device-node-not-passed", false},
		{"crw-rw-rw- 1 root root 510, 0 Jan 1 00:00 /dev/gdrdrv\n"
		 "ls: cannot access '/dev/gdrdrv': No such file or directory\n",
		 "device-node-not-passed", false},
		{"# lsmod | grep -v nv_peer\n#\n", "peermem-not-loaded", false},
		{"# lsmod | grep -c nv_peer\n0\n", "peermem-not-loaded", false},
		{"# lsmod | grep nv_peer | wc -l\n#\n", "peermem-not-loaded", false},
		{"# lsmod | grep 'nouveau\\|nv_peer'\n#\n", "peermem-not-loaded", false},
		{"# lsmod | grep nouveau\n#\n", "peermem-not-loaded", false},
		/* Fewer nodes than devices; as many; only one of the two lists. */
		{"# ls /sys/class/infiniband\nmlx5_0 mlx5_1\n# ls /dev/infiniband\nuverbs0\n",
		 "uverbs-node-missing", true},
		{"# ls /sys/class/infiniband\nmlx5_0\n# ls /dev/infiniband\nls: cannot access "
		 "'/dev/infiniband': No such file or directory\n",
		 "uverbs-node-missing", true},
		{"# ls /sys/class/infiniband\nmlx5_0 mlx5_1\n# ls /dev/infiniband\nrdma_cm "
		 "uverbs0 uverbs1\n",
		 "uverbs-node-missing", false},
		{"# ls /sys/class/infiniband\nmlx5_0 mlx5_1\n#\n", "uverbs-node-missing", false},
		{"# ls -F /sys/class/infiniband\n@ mlx5_0@ mlx5_1@\n# ls "
		 "/dev/infiniband\nuverbs0\n",
		 "uverbs-node-missing", true},
		{"# ls /dev/infiniband\nuverbs0\n", "uverbs-node-missing", false},
		{"# ls /sys/class/infiniband\n# ls /dev/infiniband\nrdma_cm\n",
		 "uverbs-node-missing", false},
		/* KiB: 64 is the kernel's old default, 8192 the present one. */
		{"$ ulimit -l\n64\n", "memlock-small", true},
		{"$ ulimit -l\n8192\n", "memlock-small", true},
		{"$ ulimit -l\nunlimited\n", "memlock-small", false},
		{"$ ulimit -l\n263856296\n", "memlock-small", false},
		{"max locked memory       (kbytes, -l) unlimited\n", "memlock-small", false},
		/* LID 0 is usual on Ethernet and on a port that is down. */
		{"state: PORT_ARMED (3)\nport_lid: 0\nlink_layer: InfiniBand\n", "lid-missing",
		 true},
		{"State: Initializing\nBase lid: 0\nLink layer: InfiniBand\n", "lid-missing", true},
		{"state: PORT_ACTIVE (4)\nport_lid: 0\nlink_layer: Ethernet\n", "lid-missing",
		 false},
		{"state: PORT_DOWN (1)\nport_lid: 0\nlink_layer: InfiniBand\n", "lid-missing",
		 false},
		{"state: PORT_ACTIVE (4)\nport_lid: 10\nlink_layer: InfiniBand\n", "lid-missing",
		 false},
		/* Other lists that are searched, and one that has no row. */
		{"$ ucx_info -d | grep gdr_copy\n$\n", "ucx-built-without", true},
		{"$ ucx_info -d | grep -i cuda\n#      Transport: cuda_copy\n$\n",
		 "ucx-built-without", false},
		{"    device   node GUID\n    ------   --------------\n#\n", "rdma-devices-none",
		 true},
		{"    device   node GUID\n    ------   --------------\n", "rdma-devices-none",
		 false},
		{"CA type: MT4129\nNode GUID: 0xb8599f0300a1b2c4\n#\n", "rdma-devices-none", false},
		/* Link-local is all that InfiniBand has. */
		{"mlx5_0 1 0 fe80:0:0:0:1 v1 eth2\nmlx5_0 1 1 fe80:0:0:0:1 v2 eth2\n"
		 "n_gids_found=2\n",
		 "gid-table-empty", true},
		{"mlx5_0 1 0 fe80:0:0:0:1 v1\nn_gids_found=1\n", "gid-table-empty", false},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct pp_explanation x;
		struct pp_explain *e = explain(*state, rows[i].text, strlen(rows[i].text), &x);

		if (found(&x, rows[i].rule) != rows[i].said)
			fail_msg("row %zu: %s", i, rows[i].text);
		done(e, &x);
	}
}

/* What a machine that works answers: no cause, no line that complains. */
static void test_healthy(void **state)
{
	const char *top = getenv("PP_TEST_DIR");
	char dir[512], path[1024];
	unsigned int n = 0;
	struct dirent *entry;
	DIR *d;

	(void)snprintf(dir, sizeof(dir), "%s/../fixtures/healthy", top ? top : ".");
	d = opendir(dir);
	assert_non_null(d);
	while ((entry = readdir(d))) {
		struct pp_buf PP_AUTO_BUF text = PP_BUF(65536);
		struct pp_error err = {0};
		struct pp_explanation x;
		struct pp_explain *e;

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (pp_textfile_read(path, &text, &err))
			fail_msg("%s", err.text);
		e = explain(*state, text.data, text.len, &x);
		if (x.n || x.unexplained_lines)
			fail_msg("%s: %s", entry->d_name,
				 x.n ? x.list[0].known->rule.id : "a line complains");
		done(e, &x);
		n++;
	}
	(void)closedir(d);
	assert_true(n >= 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_healthy),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
