/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launchers put into the environment. Slurm's variables and what its host lists mean were
 * recorded from Slurm 22.05.8 (srun, sbatch, salloc, srun --mpi=pmi2; 'scontrol show hostnames');
 * Open MPI's are those its manual documents, Hydra's those of MPICH's.
 */
#include "unit.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/channel.h"
#include "rdma/hostlist.h"
#include "rdma/launch.h"
#include "rdma/token.h"

static const char *const *environment;

static const char *get(const char *name)
{
	size_t len = strlen(name);

	for (const char *const *e = environment; *e; e++)
		if (strncmp(*e, name, len) == 0 && (*e)[len] == '=')
			return *e + len + 1;
	return NULL;
}

#define SRUN(rank, size, nodes, list)                                                          \
	"SLURM_PROCID=" rank, "SLURM_NTASKS=" size, "SLURM_STEP_NUM_TASKS=" size,              \
		"SLURM_STEP_NUM_NODES=" nodes, "SLURM_STEP_NODELIST=" list, "SLURM_STEP_ID=0", \
		"SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=" list

static const struct row {
	const char *by; /* NULL: not launched; "" refused */
	unsigned int rank, size;
	const char *coordinator; /* of a refusal: words of it */
	const char *environment[16];
} rows[] = {
	{NULL, 0, 0, "", {"PATH=/bin"}},
	{"Slurm", 1, 2, "127.0.0.1", {SRUN("1", "2", "1", "lab")}},
	{"Slurm", 3, 4, "n007", {SRUN("3", "4", "2", "n[007-008]")}},
	{"Slurm", 0, 4, "rack2-a", {SRUN("0", "4", "2", "rack2-a,rack1-b")}},
	{"Slurm",
	 1,
	 2,
	 "ib-n1:7000",
	 {"PEERPATH_COORDINATOR=ib-n1:7000", SRUN("1", "2", "2", "n[1-2]")}},
	/* srun --mpi=pmi2 sets both */
	{"Slurm",
	 1,
	 2,
	 "127.0.0.1",
	 {"PMI_RANK=1", "PMI_SIZE=2", "PMI_JOBID=5.0", SRUN("1", "2", "1", "lab")}},
	{"Slurm",
	 1,
	 2,
	 "n1",
	 {"PMIX_RANK=1", "PMIX_NAMESPACE=slurm.pmix.5.0", SRUN("1", "2", "2", "n[1-2]")}},
	/* srun of one task, the shell of salloc, a batch script of four tasks */
	{NULL, 0, 0, "", {SRUN("0", "1", "1", "lab")}},
	{NULL,
	 0,
	 0,
	 "",
	 {"SLURM_JOB_ID=3", "SLURM_NTASKS=4", "SLURM_JOB_NODELIST=lab", "SLURM_NNODES=1"}},
	{NULL,
	 0,
	 0,
	 "",
	 {"SLURM_JOB_ID=2", "SLURM_NTASKS=4", "SLURM_PROCID=0", "SLURM_LOCALID=0",
	  "SLURM_JOB_NODELIST=lab"}},
	/* mpirun, which started its daemons by srun: their numbers are not ours */
	{"Open MPI",
	 5,
	 8,
	 "n1",
	 {"OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=8", "OMPI_COMM_WORLD_LOCAL_RANK=1",
	  "OMPI_COMM_WORLD_LOCAL_SIZE=4", "PMIX_RANK=5", SRUN("1", "2", "2", "n[1-2]")}},
	{"Open MPI",
	 1,
	 2,
	 "127.0.0.1",
	 {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
	  "OMPI_COMM_WORLD_LOCAL_SIZE=2"}},
	{"Open MPI",
	 1,
	 2,
	 "10.0.0.1",
	 {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0",
	  "OMPI_COMM_WORLD_LOCAL_SIZE=1",
	  "OMPI_MCA_orte_hnp_uri=2466119680.0;tcp://10.0.0.1,192.168.0.1:43971"}},
	{"PMI",
	 2,
	 4,
	 "n3",
	 {"PMI_RANK=2", "PMI_SIZE=4", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2",
	  "PEERPATH_COORDINATOR=n3"}},
	{"PMI",
	 1,
	 2,
	 "127.0.0.1",
	 {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2"}},
	{"PMIx",
	 1,
	 2,
	 "n3",
	 {"PMIX_RANK=1", "PMIX_NAMESPACE=prterun-a-1@1", "PEERPATH_SIZE=2",
	  "PEERPATH_COORDINATOR=n3"}},
	{"peerpath",
	 3,
	 4,
	 "10.77.0.1",
	 {"PEERPATH_RANK=3", "PEERPATH_SIZE=4", "PEERPATH_COORDINATOR=10.77.0.1", "PMI_RANK=0",
	  "PMI_SIZE=1"}},
	{"", 0, 0, "set PEERPATH_COORDINATOR", {"PEERPATH_RANK=0", "PEERPATH_SIZE=4"}},
	{"", 0, 0, "set PEERPATH_COORDINATOR", {"PMI_RANK=2", "PMI_SIZE=4"}},
	{"",
	 0,
	 0,
	 "set PEERPATH_COORDINATOR",
	 {"SLURM_DISTRIBUTION=arbitrary", SRUN("1", "2", "2", "n[1-2]")}},
	{"",
	 0,
	 0,
	 "PMIX_RANK is set, but PEERPATH_SIZE is not",
	 {"PMIX_RANK=1", "PMIX_NAMESPACE=a"}},
	{"",
	 0,
	 0,
	 "SLURM_PROCID is 1 and PMIX_RANK is 0",
	 {"PMIX_RANK=0", SRUN("1", "2", "2", "n[1-2]")}},
	{"", 0, 0, "PMI_RANK is 4, but PMI_SIZE is 4", {"PMI_RANK=4", "PMI_SIZE=4"}},
	{"", 0, 0, "PEERPATH_RANK is \"-1\"", {"PEERPATH_RANK=-1", "PEERPATH_SIZE=4"}},
	{"", 0, 0, "PEERPATH_SIZE is \"many\"", {"PEERPATH_RANK=1", "PEERPATH_SIZE=many"}},
	{"",
	 0,
	 0,
	 "OMPI_COMM_WORLD_LOCAL_RANK is 2",
	 {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=2",
	  "OMPI_COMM_WORLD_LOCAL_SIZE=4"}},
	{"",
	 0,
	 0,
	 "OMPI_COMM_WORLD_LOCAL_SIZE is 9",
	 {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=9"}},
	{"", 0, 0, "MPI_LOCALNRANKS is 0", {"PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALNRANKS=0"}},
	{"", 0, 0, "SLURM_STEP_NODELIST: host list", {SRUN("1", "2", "2", "n[1-")}},
};

static void test_launchers(void **state)
{
	struct pp_launch l;
	struct pp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		int r;

		environment = row->environment;
		memset(&l, 0x5a, sizeof(l));
		r = pp_launch_read(get, &l, &err);
		if (row->by && !row->by[0]) {
			assert_int_equal(r, -EINVAL);
			assert_int_equal(l.rank, 0x5a5a5a5a);
			if (!strstr(err.text, row->coordinator))
				fail_msg("row %zu: \"%s\" does not say \"%s\"", i, err.text,
					 row->coordinator);
			continue;
		}
		if (r)
			fail_msg("row %zu: %s", i, err.text);
		if (!row->by) {
			assert_null(l.by);
			continue;
		}
		assert_string_equal(l.by, row->by);
		assert_int_equal(l.rank, row->rank);
		assert_int_equal(l.size, row->size);
		assert_string_equal(l.coordinator, row->coordinator);
	}
}

static bool add(void *arg, const char *name)
{
	char *all = arg;

	(void)snprintf(all + strlen(all), 512 - strlen(all), "%s%s", *all ? " " : "", name);
	return strlen(all) < 400;
}

static bool count(void *arg, const char *name)
{
	assert_true(name[0]);
	++*(unsigned int *)arg;
	return true;
}

static void test_hostlists(void **state)
{
	static const struct {
		const char *list, *names; /* NULL: refused */
	} lists[] = {
		/* as scontrol prints them */
		{"lab", "lab"},
		{"a[8-10],c[001-3]", "a8 a9 a10 c001 c002 c003"},
		{"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
		{"n[00-02]x[7,9]", "n00x7 n00x9 n01x7 n01x9 n02x7 n02x9"},
		{"a,a,b", "a a b"},
		{"a[1,1-2]", "a1 a1 a2"},
		{"x[1-2],", "x1 x2"},
		{",a", "a"},
		{"a,,b", "a b"},
		{"a[09-11]", "a09 a10 a11"},
		{"a[9-010]", "a9 a10"},
		{"[1-3]", "1 2 3"},
		{"10.0.0.[1-2]", "10.0.0.1 10.0.0.2"},
		{"a[1-2][3-4]", "a13 a14 a23 a24"},
		{"a[3-1]", NULL},
		{"a[]", NULL},
		{"a[1]]", NULL},
		{"a[-3]", NULL},
		{"a[1--3]", NULL},
		{"n[1-2,]", NULL},
		{"a[1:3]", NULL},
		{"a[0x1]", NULL},
		{"a[0-70000]", NULL},
		/* more than Slurm takes, and less */
		{"a[1-3,07-09]-x,b", "a1-x a2-x a3-x a07-x a08-x a09-x b"},
		{"", NULL},
		{",", NULL},
		{"a[1", NULL},
		{"a]b", NULL},
		{"a b", NULL},
		{"a[[1]]", NULL},
		{"a[1]b[1]c[1]d[1]e[1]", NULL},
		{"a[9999999999999999999999]", NULL},
	};
	unsigned int n = 0;
	struct pp_error err;
	char long_name[400];

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		char all[512] = "";
		int r = pp_hostlist_expand(lists[i].list, add, all, &err);

		if (!lists[i].names && !strcmp(lists[i].list, "a[0-70000]"))
			assert_int_equal(pp_hostlist_expand(lists[i].list, count, &n, &err),
					 -E2BIG);
		else if (!lists[i].names)
			assert_int_equal(r, -EINVAL);
		else
			assert_string_equal(all, lists[i].names);
	}
	assert_int_equal(n, PP_HOSTLIST_MOST);
	/* 10^36 names: stopped, not counted. */
	n = 0;
	assert_int_equal(
		pp_hostlist_expand("a[0-999999999]b[0-999999999]c[0-999999999]", count, &n, &err),
		-E2BIG);
	memset(long_name, 'a', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(pp_hostlist_expand(long_name, count, &n, &err), -EINVAL);
}

static void test_ports(void **state)
{
	struct pp_launch a = {.job = "5.0"}, b = {.job = "6.0"};

	(void)state;
	for (unsigned int i = 0; i < PP_LAUNCH_PORTS; i++) {
		assert_true(pp_launch_port(&a, i) >= 20000 && pp_launch_port(&a, i) < 32000);
		for (unsigned int k = 0; k < i; k++)
			assert_int_not_equal(pp_launch_port(&a, i), pp_launch_port(&a, k));
	}
	assert_int_not_equal(pp_launch_port(&a, 0), pp_launch_port(&b, 0));
}

static void write_token(const char *path, const char *text, unsigned int mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_token_files(void **state)
{
	static const struct {
		const char *text, *token;
		unsigned int mode;
		int code;
	} files[] = {
		{"  0123456789abcdef\n", "0123456789abcdef", 0600, 0},
		{"12345678", "12345678", 0400, 0},
		{"1234567\n", NULL, 0600, -EINVAL},
		{"", NULL, 0600, -EINVAL},
		{"two words here\n", NULL, 0600, -EINVAL},
		{"0123456789abcdef\n", NULL, 0644, -EACCES},
		{"0123456789abcdef\n", NULL, 0640, -EACCES},
		{"0123456789abcdef\n", NULL, 0602, -EACCES},
	};
	char dir[] = "/tmp/peerpath-token-XXXXXX", path[64], token[PP_TOKEN_MOST + 1];
	struct pp_error err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/token", dir);
	assert_int_equal(pp_token_read(path, token, &err), -ENOENT);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		write_token(path, files[i].text, files[i].mode);
		assert_int_equal(pp_token_read(path, token, &err), files[i].code);
		if (files[i].token)
			assert_string_equal(token, files[i].token);
		else
			assert_null(strstr(err.text, "0123456789"));
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(pp_token_read(dir, token, &err), -EINVAL);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pp_token_read(path, token, &err), -EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_tokens(void **state)
{
	char a[PP_TOKEN_MOST + 1], b[PP_TOKEN_MOST + 1];
	struct pp_launch l = {.by = "Slurm", .size = 2, .job = "5.0.41000", .coordinator = "n1"};
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_token_draw(a, &err), 0);
	assert_int_equal(pp_token_draw(b, &err), 0);
	assert_int_equal(strlen(a), 32);
	assert_string_not_equal(a, b);
	assert_int_equal(pp_token_check(a, &err), 0);
	/* The same for each rank; another user, job or step has another. */
	pp_token_derive(&l, 1000, a);
	l.rank = 1;
	pp_token_derive(&l, 1000, b);
	assert_string_equal(a, b);
	assert_int_equal(pp_token_check(a, &err), 0);
	pp_token_derive(&l, 1001, b);
	assert_string_not_equal(a, b);
	(void)snprintf(l.job, sizeof(l.job), "5.1.41000");
	pp_token_derive(&l, 1000, b);
	assert_string_not_equal(a, b);
}

/* What is named goes before what is set, what is set before what can be derived. */
static void test_token_found(void **state)
{
	static const struct pp_launch l = {.by = "Slurm", .size = 2, .job = "5.0.41000"};
	char path[] = "/tmp/peerpath-token-XXXXXX", token[PP_TOKEN_MOST + 1];
	char derived[PP_TOKEN_MOST + 1];
	struct pp_error err = {0};
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "of-the-file", 11), 11);
	assert_int_equal(close(fd), 0);
	assert_int_equal(setenv("PEERPATH_TOKEN", "of-the-environment", 1), 0);
	assert_int_equal(pp_token_find(path, &l, token, &err), 0);
	assert_string_equal(token, "of-the-file");
	assert_int_equal(pp_token_find(NULL, &l, token, &err), 0);
	assert_string_equal(token, "of-the-environment");
	/* One that is no token is not passed over. */
	assert_int_equal(setenv("PEERPATH_TOKEN", "short", 1), 0);
	assert_int_equal(pp_token_find(NULL, &l, token, &err), -EINVAL);
	assert_int_equal(unsetenv("PEERPATH_TOKEN"), 0);
	assert_int_equal(pp_token_find(NULL, &l, token, &err), 0);
	pp_token_derive(&l, getuid(), derived);
	assert_string_equal(token, derived);
	err = (struct pp_error){0};
	assert_int_equal(pp_token_find(NULL, NULL, token, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(pp_token_find(path, &l, token, &err), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launchers), cmocka_unit_test(test_hostlists),
		cmocka_unit_test(test_ports),	  cmocka_unit_test(test_token_files),
		cmocka_unit_test(test_tokens),	  cmocka_unit_test(test_token_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
