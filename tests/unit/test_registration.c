/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations against verbs of this file, which note what they are given, and tests/fake's CUDA.
 *
 * What is right: ibv_reg_dmabuf_mr(3) (offset and iova agree in their page; the descriptor may be
 * closed), CUDA's cuMemGetHandleForAddressRange (pages, one allocation), mlx5dv_reg_dmabuf_mr(3).
 */
#include "fake_cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "mem/registration.h"

enum { CALLS = 64 };

/* What one verb was given, and what the descriptor was then. */
struct call {
	uint64_t offset, iova, length;
	int fd, access;
	off_t fd_bytes;
	bool dmabuf;
};

static struct call calls[CALLS];
static unsigned int n_calls, n_deregs;
static int dmabuf_error, address_error, fail_from, dereg_error;
static struct ibv_mr mrs[CALLS];
static struct ibv_pd pd;

static struct ibv_mr *note(struct call c, int error)
{
	struct ibv_mr *mr = &mrs[n_calls];

	assert_in_range(n_calls, 0, CALLS - 1);
	assert_int_equal(errno, 0);
	calls[n_calls++] = c;
	if (error && n_calls >= (unsigned int)fail_from) {
		errno = error;
		return NULL;
	}
	mr->lkey = n_calls;
	mr->rkey = n_calls + 1000;
	/* A verb may leave something behind though it worked. */
	errno = ENOENT;
	return mr;
}

static struct ibv_mr *reg_memory(struct ibv_pd *p, void *addr, size_t len, int access)
{
	assert_ptr_equal(p, &pd);
	return note(
		(struct call){.iova = (uintptr_t)addr, .length = len, .access = access, .fd = -1},
		address_error);
}

static struct ibv_mr *reg_dmabuf(struct ibv_pd *p, uint64_t offset, size_t len, uint64_t iova,
				 int fd, int access)
{
	struct stat st = {0};
	int was = errno;

	assert_ptr_equal(p, &pd);
	assert_int_equal(fstat(fd, &st), 0);
	errno = was;
	return note((struct call){.offset = offset,
				  .length = len,
				  .iova = iova,
				  .fd = fd,
				  .access = access,
				  .fd_bytes = st.st_size,
				  .dmabuf = true},
		    dmabuf_error);
}

static int dereg(struct ibv_mr *mr)
{
	assert_in_range(mr - mrs, 0, CALLS - 1);
	n_deregs++;
	return dereg_error;
}

/* By its presence the device is peerpath's; on when the test's own symbols are the library's. */
static struct call told;
static int tell_error;

__attribute__((visibility("default"))) int peerpath_soft_dmabuf_range(int fd, uint64_t va,
								      uint64_t length);

int peerpath_soft_dmabuf_range(int fd, uint64_t va, uint64_t length)
{
	told = (struct call){.fd = fd, .iova = va, .length = length};
	return tell_error;
}

static struct pp_verbs hardware, software;

static int start(void **state)
{
	hardware = (struct pp_verbs){.library = dlopen("libc.so.6", RTLD_NOW),
				     .reg_memory = reg_memory,
				     .reg_dmabuf = reg_dmabuf,
				     .dereg_mr = dereg};
	software = hardware;
	software.library = dlopen(NULL, RTLD_NOW);
	return fake_start(state);
}

static int setup(void **state)
{
	(void)state;
	n_calls = n_deregs = 0;
	dmabuf_error = address_error = fail_from = dereg_error = tell_error = 0;
	told = (struct call){0};
	fake_set("", "", "");
	return 0;
}

static struct pp_memory *new (struct pp_memory_options options)
{
	struct pp_memory *m = NULL;
	struct pp_error err = {0};

	options.gpu = GPU0;
	options.numa = -1;
	if (pp_memory_new(&options, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static const struct pp_registration_options automatic = {.automatic = true, .access = 0xf},
					    by_dmabuf = {.how = PP_REGISTERED_DMABUF,
							 .access = 0xf},
					    by_peermem = {.how = PP_REGISTERED_PEERMEM,
							  .access = 0xf};

static struct pp_registered reg;

static void good(const struct pp_verbs *v, struct pp_memory *m,
		 const struct pp_registration_options *options)
{
	struct pp_error err = {0};

	if (pp_register(v, &pd, m, options, &reg, &err))
		fail_msg("%s", err.text);
}

/* The line has every word, is one line, and nothing stays registered or open. */
static int bad(const struct pp_verbs *v, struct pp_memory *m,
	       const struct pp_registration_options *options, const char *const words[])
{
	struct pp_error err = {0};
	int before = descriptors(), r = pp_register(v, &pd, m, options, &reg, &err);

	for (size_t i = 0; words[i]; i++)
		if (!strstr(err.text, words[i]))
			fail_msg("'%s' does not say '%s'", err.text, words[i]);
	assert_null(strchr(err.text, '\n'));
	assert_int_equal(reg.n, 0);
	assert_int_equal(descriptors(), before);
	return r;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A pointer inside a larger allocation: the descriptor is of all of it, the offset the pointer's.
 */
static void test_dmabuf_inside(void **state)
{
	struct pp_memory *m = new ((struct pp_memory_options){
		.kind = PP_MEMORY_CUDA, .size = 1 << 20, .inside = 70001});
	int before = descriptors();

	(void)state;
	good(&hardware, m, &by_dmabuf);
	assert_int_equal(n_calls, 1);
	assert_true(calls[0].dmabuf);
	assert_int_equal(calls[0].offset, 70001);
	assert_int_equal(calls[0].iova, m->at);
	assert_int_equal(calls[0].length, 1 << 20);
	assert_int_equal(calls[0].fd_bytes, 18 * 65536);
	assert_int_equal(calls[0].access, 0xf);
	assert_int_equal((calls[0].offset ^ calls[0].iova) & 4095, 0);
	assert_int_equal(descriptors(), before);
	assert_int_equal(reg.how, PP_REGISTERED_DMABUF);
	assert_false(reg.simulated);
	assert_true(reg.sync_memops);
	assert_string_equal(reg.flush, "not needed (ordering owner)");
	assert_int_equal(reg.n, 1);
	assert_int_equal(reg.key[0].lkey, 1);
	assert_int_equal(reg.key[0].rkey, 1001);
	assert_int_equal(reg.key[0].address, m->at);
	assert_int_equal(told.length, 0);
	pp_memory_free(m);
}

/* 0 is a descriptor like others. */
static void test_descriptor_zero(void **state)
{
	struct pp_memory *m =
		new ((struct pp_memory_options){.kind = PP_MEMORY_CUDA, .size = 4096});
	int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	(void)state;
	(void)close(STDIN_FILENO);
	good(&hardware, m, &by_dmabuf);
	assert_int_equal(calls[0].fd, 0);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (saved >= 0)
		(void)dup2(saved, STDIN_FILENO);
	(void)close(saved);
	pp_memory_free(m);
}

static void test_segments(void **state)
{
	struct pp_memory *m = new ((struct pp_memory_options){
		.kind = PP_MEMORY_CUDA_VMM, .size = 3 << 20, .segments = 2, .inside = 1 << 20});
	const struct pp_key *k;
	struct pp_error err;

	(void)state;
	good(&hardware, m, &by_dmabuf);
	assert_int_equal(n_calls, 2);
	assert_int_equal(calls[0].offset, 1 << 20);
	assert_int_equal(calls[0].length, 1 << 20);
	assert_int_equal(calls[0].iova, m->at);
	assert_int_equal(calls[0].fd_bytes, 2 << 20);
	assert_int_equal(calls[1].offset, 0);
	assert_int_equal(calls[1].length, 2 << 20);
	assert_int_equal(calls[1].iova, m->at + (1 << 20));
	assert_int_equal(reg.n, 2);
	/* CUDA sets it on memory of cuMemAlloc only. */
	assert_false(reg.sync_memops);
	k = pp_registered_key(&reg, 0, 1 << 20);
	assert_ptr_equal(k, &reg.key[0]);
	assert_ptr_equal(pp_registered_key(&reg, (1 << 20) - 1, 1), &reg.key[0]);
	assert_ptr_equal(pp_registered_key(&reg, 1 << 20, 2 << 20), &reg.key[1]);
	assert_null(pp_registered_key(&reg, (1 << 20) - 1, 2));
	assert_null(pp_registered_key(&reg, 3 << 20, 1));
	assert_null(pp_registered_key(&reg, 3 << 20, 0));
	assert_null(pp_registered_key(&reg, UINT64_MAX, 2));
	assert_int_equal(pp_unregister(&reg, &err), 0);
	assert_int_equal(n_deregs, 2);
	assert_int_equal(reg.n, 0);
	assert_int_equal(pp_unregister(&reg, &err), 0);
	assert_int_equal(n_deregs, 2);
	/* The second is refused: the first is undone. */
	n_calls = n_deregs = 0;
	dmabuf_error = ENOMEM;
	fail_from = 2;
	assert_int_equal(bad(&hardware, m, &by_dmabuf, WORDS("ibv_reg_dmabuf_mr", "ENOMEM (12)")),
			 -ENOMEM);
	assert_int_equal(n_deregs, 1);
	pp_memory_free(m);
}

/* Of the software device: it is told the range that it cannot see, before the verb. */
static void test_software(void **state)
{
	struct pp_memory *m = new ((struct pp_memory_options){
		.kind = PP_MEMORY_CUDA, .size = 1 << 20, .inside = 4096});
	struct pp_memory *sim =
		new ((struct pp_memory_options){.kind = PP_MEMORY_SIM, .size = 4096});

	(void)state;
	good(&software, m, &automatic);
	assert_true(reg.simulated);
	assert_int_equal(reg.how, PP_REGISTERED_DMABUF);
	assert_int_equal(told.iova, m->at - 4096);
	assert_int_equal(told.length, 17 * 65536);
	assert_int_equal(told.fd, calls[0].fd);
	assert_string_equal(reg.attempt[2].call, "peerpath_soft_dmabuf_range");
	assert_non_null(strstr(reg.attempt[2].arguments, "offset honoured"));
	tell_error = -EINVAL;
	assert_int_equal(
		bad(&software, m, &by_dmabuf, WORDS("peerpath_soft_dmabuf_range", "EINVAL (22)")),
		-EINVAL);
	told = (struct call){0};
	good(&software, sim, &automatic);
	assert_int_equal(told.length, 0);
	assert_true(reg.simulated);
	pp_memory_free(m);
	pp_memory_free(sim);
}

static void test_host(void **state)
{
	struct pp_memory *m =
		new ((struct pp_memory_options){.kind = PP_MEMORY_HOST, .size = 5000});

	(void)state;
	good(&hardware, m, &automatic);
	assert_int_equal(reg.how, PP_REGISTERED_HOST);
	assert_false(reg.simulated);
	assert_int_equal(n_calls, 1);
	assert_false(calls[0].dmabuf);
	assert_int_equal(calls[0].iova, m->at);
	assert_int_equal(calls[0].length, 5000);
	assert_int_equal(bad(&hardware, m, &by_dmabuf, WORDS("no descriptor")), -EINVAL);
	assert_int_equal(bad(&hardware, m, &by_peermem, WORDS("peermem is for")), -EINVAL);
	pp_memory_free(m);
}

/* A memfd stands for a descriptor; a device that takes none gets the mapping. */
static void test_sim(void **state)
{
	struct pp_memory *m = new (
		(struct pp_memory_options){.kind = PP_MEMORY_SIM, .size = 8192, .inside = 100});

	(void)state;
	good(&hardware, m, &automatic);
	assert_int_equal(reg.how, PP_REGISTERED_DMABUF);
	assert_true(reg.simulated);
	assert_int_equal(calls[0].fd, m->fd);
	assert_int_equal(calls[0].offset, 100);
	assert_int_equal(calls[0].iova, m->at);
	assert_true(fcntl(m->fd, F_GETFD) >= 0);
	dmabuf_error = EOPNOTSUPP;
	good(&hardware, m, &automatic);
	assert_int_equal(reg.how, PP_REGISTERED_HOST);
	assert_int_equal(reg.n_attempts, 2);
	assert_int_equal(reg.attempt[0].error, EOPNOTSUPP);
	assert_int_equal(reg.attempt[1].error, 0);
	pp_memory_free(m);
}

/* The order, and that each refusal is kept. */
static void test_automatic(void **state)
{
	struct pp_memory *m =
		new ((struct pp_memory_options){.kind = PP_MEMORY_CUDA, .size = 4096});
	struct pp_verbs old = hardware;

	(void)state;
	dmabuf_error = 524;
	good(&hardware, m, &automatic);
	assert_int_equal(reg.how, PP_REGISTERED_PEERMEM);
	assert_int_equal(reg.n_attempts, 4);
	assert_string_equal(reg.attempt[0].call, "cuPointerSetAttribute");
	assert_string_equal(reg.attempt[1].call, "cuMemGetHandleForAddressRange");
	assert_true(reg.attempt[1].cuda);
	assert_string_equal(reg.attempt[2].call, "ibv_reg_dmabuf_mr");
	assert_int_equal(reg.attempt[2].error, 524);
	assert_string_equal(reg.attempt[2].name, "ENOTSUPP");
	assert_int_equal(reg.attempt[2].how, PP_REGISTERED_DMABUF);
	assert_string_equal(reg.attempt[3].call, "ibv_reg_mr");
	assert_int_equal(reg.attempt[3].how, PP_REGISTERED_PEERMEM);
	assert_int_equal(reg.attempt[3].bar1_before, 1 << 20);
	address_error = EFAULT;
	assert_int_equal(
		bad(&hardware, m, &automatic, WORDS("ENOTSUPP (524)", "; peermem:", "EFAULT (14)")),
		-524);
	/* rdma-core before 34, and a driver before CUDA 11.7 */
	old.reg_dmabuf = NULL;
	dmabuf_error = address_error = 0;
	n_calls = 0;
	good(&old, m, &automatic);
	assert_int_equal(reg.how, PP_REGISTERED_PEERMEM);
	assert_int_equal(bad(&old, m, &by_dmabuf, WORDS("rdma-core 34")), -EOPNOTSUPP);
	pp_memory_free(m);
}

static void test_export_refused(void **state)
{
	static const struct {
		enum pp_memory_kind kind;
		const char *cuda, *fails, *word;
		int error;
	} rows[] = {
		{PP_MEMORY_CUDA, "proprietary", "", "open kernel modules", EOPNOTSUPP},
		{PP_MEMORY_CUDA, "", "cuMemGetHandleForAddressRange=801", "exports no DMA-BUF",
		 EOPNOTSUPP},
		{PP_MEMORY_CUDA, "", "cuMemGetHandleForAddressRange=1", "multiple of a page",
		 EINVAL},
		{PP_MEMORY_CUDA_VMM, "", "cuMemGetHandleForAddressRange=1",
		 "several segments of cuMemCreate", EINVAL},
		{PP_MEMORY_CUDA, "", "cuPointerSetAttribute=700", "SYNC_MEMOPS", EIO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_memory *m;

		fake_set(rows[i].cuda, "", "");
		m = new ((struct pp_memory_options){.kind = rows[i].kind, .size = 4096});
		fake_set(rows[i].cuda, rows[i].fails, "");
		assert_int_equal(bad(&hardware, m, &by_dmabuf, WORDS(rows[i].word)),
				 -rows[i].error);
		assert_int_equal(n_calls, 0);
		pp_memory_free(m);
	}
	assert_int_equal(fake_live(), 0);
}

/* The line of each errno: what the kernel means by it, in the scene where it came up. */
static void test_verb_words(void **state)
{
	static const struct {
		enum pp_memory_kind kind;
		bool dmabuf;
		int error;
		const char *nvml, *word;
	} rows[] = {
		{PP_MEMORY_CUDA, true, EPROTONOSUPPORT, "", "Linux 5.12"},
		{PP_MEMORY_CUDA, true, EOPNOTSUPP, "", "CONFIG_INFINIBAND_ON_DEMAND_PAGING"},
		{PP_MEMORY_CUDA, true, 524, "", "common PCIe switch"},
		{PP_MEMORY_CUDA, true, ENOMEM, "small-bar1", "BAR1 is full"},
		{PP_MEMORY_CUDA, true, ENOMEM, "", "IOMMU"},
		{PP_MEMORY_CUDA, true, EINVAL, "", "offset, length or flags"},
		{PP_MEMORY_CUDA_VMM, true, EINVAL, "", "in one segment"},
		{PP_MEMORY_CUDA, true, EBADF, "", "closed, or another process's"},
		{PP_MEMORY_CUDA, true, EAGAIN, "", "rdma.max"},
		{PP_MEMORY_CUDA, false, EFAULT, "", "nvidia_peermem"},
		{PP_MEMORY_CUDA, false, EAGAIN, "", "rdma.max"},
		{PP_MEMORY_HOST, false, EPERM, "", "may lock no memory"},
		{PP_MEMORY_HOST, false, EFAULT, "", "not mapped, or read-only"},
		{PP_MEMORY_HOST, false, EXDEV, "", "dmesg"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool host = rows[i].kind == PP_MEMORY_HOST;
		struct pp_memory *m;

		n_calls = 0;
		fake_set("", "", rows[i].nvml);
		m = new ((struct pp_memory_options){.kind = rows[i].kind, .size = 4096});
		dmabuf_error = rows[i].dmabuf ? rows[i].error : 0;
		address_error = rows[i].dmabuf ? 0 : rows[i].error;
		assert_int_equal(bad(&hardware, m,
				     host	      ? &automatic
				     : rows[i].dmabuf ? &by_dmabuf
						      : &by_peermem,
				     WORDS(rows[i].word)),
				 -rows[i].error);
		pp_memory_free(m);
	}
}

/* 54 of 256 MiB are free; nothing is asked for what does not fit, and what fits is. */
static void test_budget(void **state)
{
	struct pp_memory *m;

	(void)state;
	fake_set("", "", "small-bar1");
	m = new ((struct pp_memory_options){.kind = PP_MEMORY_CUDA, .size = 55 << 20});
	assert_int_equal(m->bar1_total, 256 << 20);
	assert_int_equal(m->bar1_free, 54 << 20);
	assert_int_equal(
		bad(&hardware, m, &automatic,
		    WORDS("55 MiB do not fit BAR1", "54 of its 256 MiB are left", "resizable BAR")),
		-ENOSPC);
	assert_int_equal(n_calls, 0);
	assert_int_equal(reg.attempt[1].error, ENOSPC);
	pp_memory_free(m);
	m = new ((struct pp_memory_options){.kind = PP_MEMORY_CUDA, .size = 54 << 20});
	good(&hardware, m, &automatic);
	assert_int_equal(n_calls, 1);
	pp_memory_free(m);
	/* A small part of a large allocation: the export maps all of it, peermem the part. */
	m = new ((struct pp_memory_options){
		.kind = PP_MEMORY_CUDA, .size = 1 << 20, .inside = 60 << 20});
	assert_int_equal(bad(&hardware, m, &by_dmabuf, WORDS("61 MiB")), -ENOSPC);
	good(&hardware, m, &automatic);
	assert_int_equal(reg.how, PP_REGISTERED_PEERMEM);
	pp_memory_free(m);
}

/* What the kernel would refuse, told with the limit in force. */
static void test_memlock(void **state)
{
	struct pp_memory *m =
		new ((struct pp_memory_options){.kind = PP_MEMORY_HOST, .size = 4096});
	struct rlimit was, small = {65536, 65536};
	bool limited;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &was), 0);
	small.rlim_max = was.rlim_max;
	limited = !setrlimit(RLIMIT_MEMLOCK, &small);
	address_error = ENOMEM;
	/* With CAP_IPC_LOCK the limit is nobody's. */
	assert_int_equal(bad(&hardware, m, &automatic, WORDS("ibv_reg_mr of 4 KiB: ENOMEM (12)")),
			 -ENOMEM);
	if (limited && getuid())
		assert_int_equal(bad(&hardware, m, &automatic,
				     WORDS("RLIMIT_MEMLOCK", "limit 64 KiB", "ulimit -l")),
				 -ENOMEM);
	(void)setrlimit(RLIMIT_MEMLOCK, &was);
	pp_memory_free(m);
}

static void test_other_words(void **state)
{
	struct pp_memory *m =
		new ((struct pp_memory_options){.kind = PP_MEMORY_CUDA, .size = 4096});
	const struct pp_registration_options efa = {.how = PP_REGISTERED_EFA_P2P},
					     direct = {.how = PP_REGISTERED_DATA_DIRECT};
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(bad(&hardware, m, &efa, WORDS("efa-p2p")), -EINVAL);
	assert_int_equal(bad(&software, m, &direct, WORDS("software device")), -EOPNOTSUPP);
	address_error = EFAULT;
	assert_int_equal(bad(&software, m, &by_peermem, WORDS("has no peermem")), -EFAULT);
	assert_int_equal(bad(&hardware, m, &by_peermem, WORDS("nvidia_peermem")), -EFAULT);
	address_error = 0;
	good(&hardware, m, &by_peermem);
	dereg_error = EBUSY;
	assert_int_equal(pp_unregister(&reg, &err), -EBUSY);
	assert_non_null(strstr(err.text, "ibv_dereg_mr: EBUSY"));
	pp_memory_free(m);
}

static void test_written(void **state)
{
	struct pp_memory *m =
		new ((struct pp_memory_options){.kind = PP_MEMORY_CUDA, .size = 4096});
	struct pp_buf buf = PP_BUF(1 << 16);
	struct pp_json j = PP_JSON(&buf, false);

	(void)state;
	dmabuf_error = 524;
	good(&hardware, m, &automatic);
	pp_json_object(&j, NULL);
	pp_attempts_write(&j, "attempts", &reg);
	pp_json_end_object(&j);
	assert_false(buf.failed);
	assert_non_null(strstr(buf.data, "\"call\":\"ibv_reg_dmabuf_mr\""));
	assert_non_null(strstr(buf.data, "\"errno\":524,\"error\":\"ENOTSUPP\""));
	assert_non_null(strstr(buf.data, "\"bar1_used_before_bytes\":1048576"));
	assert_non_null(strstr(buf.data, "\"cuda_result\":0,\"error\":null"));
	pp_buf_done(&buf);
	pp_memory_free(m);
}

/* More calls than are kept: counted, and nothing else happens. */
static void test_many(void **state)
{
	struct pp_memory *m = new ((struct pp_memory_options){
		.kind = PP_MEMORY_CUDA_VMM, .size = 32 << 20, .segments = 16});

	(void)state;
	good(&software, m, &by_dmabuf);
	assert_int_equal(reg.n, 16);
	assert_int_equal(reg.n_attempts + reg.attempts_lost, 1 + 16 * 3);
	pp_memory_free(m);
	assert_int_equal(fake_live(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_dmabuf_inside, setup),
		cmocka_unit_test_setup(test_descriptor_zero, setup),
		cmocka_unit_test_setup(test_segments, setup),
		cmocka_unit_test_setup(test_software, setup),
		cmocka_unit_test_setup(test_host, setup),
		cmocka_unit_test_setup(test_sim, setup),
		cmocka_unit_test_setup(test_automatic, setup),
		cmocka_unit_test_setup(test_export_refused, setup),
		cmocka_unit_test_setup(test_verb_words, setup),
		cmocka_unit_test_setup(test_budget, setup),
		cmocka_unit_test_setup(test_memlock, setup),
		cmocka_unit_test_setup(test_other_words, setup),
		cmocka_unit_test_setup(test_written, setup),
		cmocka_unit_test_setup(test_many, setup),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
