/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Software facts: of made recordings; beside what the dynamic loader itself chose for this
 * process, and this process's own environment.
 */
#include "node_replayed.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <unistd.h>

#include "node/environment.h"
#include "node/library.h"
#include "node/nccl_conf.h"

static struct pp_record *record;

static void put(const char *path, const char *text)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_FILE, path, text, strlen(text), 0), 0);
}

static void put_bytes(const char *path, const char *bytes, size_t len)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_FILE, path, bytes, len, 0), 0);
}

static void ln(const char *path, const char *target)
{
	assert_int_equal(pp_record_put(record, PP_ENTRY_LINK, path, target, strlen(target), 0), 0);
}

static void answer(const char *name, const char *data)
{
	char document[4096];

	(void)snprintf(document, sizeof(document), "{\"outcome\": \"answered\", \"data\": %s}",
		       data);
	assert_int_equal(
		pp_record_put(record, PP_ENTRY_ANSWER, name, document, strlen(document), 0), 0);
}

static void test_allow_list(void **state)
{
	static const char *const yes[] = {
		"NCCL_DEBUG",	"UCX_TLS",	     "PATH", "HOME", "container",
		"SLURM_PROCID", "PYTORCH_ALLOC_CONF"};
	static const char *const no[] = {
		"AWS_SECRET_ACCESS_KEY", "NCC", "SLURM_JOB_USER", "PATHS", "MYNCCL_X", "USER",
		"SSH_AUTH_SOCK"};
	static const char *const secret[] = {"NVIDIA_API_KEY", "PEERPATH_TOKEN", "UCX_password",
					     "NCCL_X_CREDENTIALS"};
	static const char *const plain[] = {"NCCL_IB_PKEY", "UCX_IB_PKEY", "NCCL_DEBUG"};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		assert_true(pp_environment_allowed(yes[i]));
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(pp_environment_allowed(no[i]));
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		assert_true(pp_environment_secret(secret[i]));
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		assert_false(pp_environment_secret(plain[i]));
}

static int join(void *arg, const char *name, const char *value)
{
	char *out = arg;
	size_t len = strlen(out);

	(void)snprintf(out + len, 4096 - len, "[%s]=[%s];", name, value);
	return 0;
}

/* As NCCL's own reader does it: no trimming, '#' only in the first column. */
static void test_nccl_conf(void **state)
{
	static const char CONF[] = "# a comment\n#NCCL_A=1\nNCCL_DEBUG=WARN\n"
				   "NCCL_IB_DISABLE = 1\n NCCL_B=2\nno value\n"
				   "NCCL_X=a=b # c\r\n=\nNCCL_LAST=";
	char out[4096] = "";
	char wide[3 * PP_NCCL_WORD];

	(void)state;
	assert_int_equal(pp_nccl_conf_parse(CONF, strlen(CONF), join, out), 0);
	assert_string_equal(out, "[NCCL_DEBUG]=[WARN];[NCCL_IB_DISABLE ]=[ 1];[ NCCL_B]=[2];"
				 "[NCCL_X]=[a=b # c\r];[]=[];[NCCL_LAST]=[];");
	memset(wide, 'N', sizeof(wide));
	wide[2 * PP_NCCL_WORD] = '=';
	out[0] = '\0';
	assert_int_equal(pp_nccl_conf_parse(wide, sizeof(wide), join, out), 0);
	assert_int_equal(strlen(out), 2 * (PP_NCCL_WORD - 1) + strlen("[]=[];"));
	assert_int_equal(pp_nccl_conf_parse("", 0, join, out), 0);
}

static void test_settings(void **state)
{
	struct pp_node *n;

	(void)state;
	record = node_record();
	answer("environment",
	       "{\"variables\": {\"NCCL_IB_HCA\": \"mlx5_0\", \"HOME\": \"/elsewhere\","
	       " \"UCX_TLS\": \"rc\", \"NCCL_IB_GID_INDEX\": \"\", \"SECRET\": \"x\","
	       " \"NCCL_ESC\": \"\\u001b[2J\"}, \"redacted\": 2}");
	answer("home-directory", "{\"home\": \"/home/u\"}");
	put("/home/u/.nccl.conf", "NCCL_IB_HCA=mlx5_9\nNCCL_IB_DISABLE=0\nNCCL_IB_GID_INDEX=3\n");
	put("/elsewhere/.nccl.conf", "NCCL_IB_DISABLE=7\n");
	put("/etc/nccl.conf", "NCCL_IB_DISABLE=1\nNCCL_NET_GDR_LEVEL=SYS\nX_TOKEN=abc\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_NCCL_IB_HCA), "mlx5_0");
	assert_string_equal(node_text(n, PP_F_NCCL_IB_DISABLE), "0");
	assert_string_equal(node_text(n, PP_F_NCCL_GDR_LEVEL), "SYS");
	/* Set, though to nothing: the files do not come in. */
	assert_string_equal(node_text(n, PP_F_NCCL_GID_INDEX), "");
	assert_string_equal(node_text(n, PP_F_NCCL_DMABUF), "");
	assert_true(node_known(n, PP_F_NCCL_DMABUF));
	assert_string_equal(node_text(n, PP_F_NCCL_CONF),
			    "/home/u/.nccl.conf: NCCL_IB_HCA=mlx5_9, NCCL_IB_DISABLE=0, "
			    "NCCL_IB_GID_INDEX=3, /etc/nccl.conf: NCCL_IB_DISABLE=1, "
			    "NCCL_NET_GDR_LEVEL=SYS, X_TOKEN=(hidden)");
	assert_string_equal(node_text(n, PP_F_UCX_ENV), "UCX_TLS=rc");
	assert_string_equal(node_text(n, PP_F_ENV_HIDDEN), "2");
	assert_null(strchr(node_text(n, PP_F_NCCL_ENV), '\x1b'));
	assert_null(strstr(node_text(n, PP_F_NCCL_ENV), "SECRET"));
	node_done(n);
	/* NCCL_CONF_FILE stands in for the user's file. */
	record = node_record();
	answer("environment", "{\"variables\": {\"NCCL_CONF_FILE\": \"/job/nccl.conf\"}}");
	put("/job/nccl.conf", "NCCL_IB_DISABLE=1\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_NCCL_IB_DISABLE), "1");
	node_done(n);
	/* A file that cannot be read may set anything, but not what is set already. */
	record = node_record();
	answer("environment", "{\"variables\": {\"NCCL_IB_HCA\": \"mlx5_0\"}}");
	answer("home-directory", "{\"home\": \"/root\"}");
	assert_int_equal(pp_record_put(record, PP_ENTRY_ERROR, "/etc/nccl.conf", NULL, 0, -EACCES),
			 0);
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_NCCL_IB_HCA), "mlx5_0");
	assert_string_equal(node_text(n, PP_F_NCCL_IB_DISABLE),
			    "unknown: /etc/nccl.conf: permission denied");
	assert_false(node_known(n, PP_F_NCCL_CONF));
	node_done(n);
	/* Nothing was asked. */
	record = node_record();
	put("/etc/nccl.conf", "NCCL_IB_DISABLE=1\n");
	put("/run/.containerenv", "engine=\"podman-4.3.1\"\nimage=\"docker.io/library/x:1\"\n");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_CONTAINER_IMAGE), "docker.io/library/x:1");
	assert_false(node_known(n, PP_F_NCCL_IB_DISABLE));
	assert_false(node_known(n, PP_F_NCCL_ENV));
	assert_false(node_known(n, PP_F_PERFTEST_PATH));
	assert_false(node_known(n, PP_F_NCCL_VERSION));
	node_done(n);
}

static const char *name_version(const char *path)
{
	static char version[32];

	if (pp_library_version_of_name(path, version, sizeof(version)))
		return "none";
	return version;
}

static const char *inside(const char *bytes, size_t len, const char *marker)
{
	static char version[64];
	struct pp_source *s;
	int r;

	record = node_record();
	put_bytes("/lib.so", bytes, len);
	s = node_source(record);
	r = pp_library_version_inside(s, "/lib.so", marker, version, sizeof(version));
	pp_source_free(s);
	return r == -ENOENT ? "none" : r == -EEXIST ? "several" : r ? "error" : version;
}

#define INSIDE(bytes, marker) inside(bytes, sizeof(bytes), marker)

static void test_versions(void **state)
{
	static const char MARK[] = "NCCL version ";

	(void)state;
	assert_string_equal(name_version("/usr/lib/libnccl.so.2.28.9"), "2.28.9");
	assert_string_equal(name_version("/usr/lib/libnccl.so.2"), "none");
	assert_string_equal(name_version("/usr/lib/libfabric.so.1.20"), "none");
	assert_string_equal(name_version("/usr/lib/libx.so.2.28.9.bak"), "none");
	assert_string_equal(name_version("/usr/lib/libx.so.2..9"), "none");
	assert_string_equal(name_version("/usr/lib/libx.so...."), "none");
	assert_string_equal(INSIDE("x\0NCCL version %s\0NCCL version 2.28.9+cuda13.0\0y", MARK),
			    "2.28.9+cuda13.0");
	assert_string_equal(INSIDE("NCCL version mismatch\0", MARK), "none");
	/* As in real libraries: alone, or right behind bytes of another constant. */
	assert_string_equal(INSIDE("FI_MSWAP\0001.17.0\0FI_NOTIFY", NULL), "1.17.0");
	assert_string_equal(INSIDE("iface\0\0e\xcd\xcd\x41"
				   "1.13.1\0%s\n",
				   NULL),
			    "1.13.1");
	/* Near misses: addresses, other words, parts. */
	assert_string_equal(INSIDE("127.0.0.1\0abcdef127.0.0.1\0v1.2.3\0GLIBC_2.2.5\0001.2\0"
				   "1.2.3-rc\0.1.2\0001..2.3\0",
				   NULL),
			    "none");
	assert_string_equal(INSIDE("1.2.3\0x\0001.2.4\0", NULL), "several");
	assert_string_equal(INSIDE("1.2.3\0x\0001.2.3\0", NULL), "1.2.3");
}

static void test_search_order(void **state)
{
	struct pp_library_path path;
	struct pp_arena arena = PP_ARENA((size_t)1 << 20);
	struct pp_source *s;
	char file[PP_PATH_MAX];
	size_t at = 0;

	(void)state;
	record = node_record();
	ln("/lib", "usr/lib");
	put("/etc/ld.so.conf", "# first\ninclude ld.so.conf.d/*.conf\n/opt/last/lib # end\n"
			       "include /etc/ld.so.conf\n");
	put("/etc/ld.so.conf.d/b.conf", "/opt/b\n/nonexistent\nhwcap 1 nosegneg\n");
	put("/etc/ld.so.conf.d/a.conf", "/opt/a\n/opt/env\n");
	put("/etc/ld.so.conf.d/.hidden.conf", "/opt/hidden\n");
	put("/opt/env/x", "");
	put("/opt/a/libnccl.so.2.27.7", "");
	ln("/opt/a/libnccl.so.2", "libnccl.so.2.27.7");
	put("/opt/b/libnccl.so.2", "\0");
	ln("/opt/last/lib/libnccl.so.2", "../../a/libnccl.so.2");
	put("/opt/hidden/libnccl.so.2", "");
	put("/usr/lib/x86_64-linux-gnu/libc.so.6", "");
	ln("/usr/lib/libnccl.so.2", "gone");
	s = node_source(record);
	pp_library_path_init(s, &arena, "/opt/env:relative::/opt/nowhere;/opt/env", "x86_64",
			     &path);
	assert_int_equal(path.n, 6);
	assert_string_equal(path.dir[0], "/opt/env");
	assert_string_equal(path.dir[1], "/opt/a");
	assert_string_equal(path.dir[2], "/opt/b");
	assert_string_equal(path.dir[3], "/opt/last/lib");
	assert_string_equal(path.dir[4], "/usr/lib/x86_64-linux-gnu");
	assert_string_equal(path.dir[5], "/usr/lib");
	assert_int_equal(pp_library_find(s, &path, "libnccl.so.2", &at, file), 0);
	assert_string_equal(file, "/opt/a/libnccl.so.2.27.7");
	assert_int_equal(pp_library_find(s, &path, "libnccl.so.2", &at, file), 0);
	assert_string_equal(file, "/opt/b/libnccl.so.2");
	assert_int_equal(pp_library_find(s, &path, "libnccl.so.2", &at, file), 0);
	assert_string_equal(file, "/opt/a/libnccl.so.2.27.7");
	assert_int_equal(pp_library_find(s, &path, "libnccl.so.2", &at, file), -ENOENT);
	pp_source_free(s);
	pp_arena_done(&arena);
}

static void test_nccl_facts(void **state)
{
	static const char STRINGS[] = "x\0NCCL version 2.21.5+cuda12.4\0";
	static const char ENV[] = "{\"variables\": {\"VIRTUAL_ENV\": \"/venv\", "
				  "\"PATH\": \"/usr/bin:/opt/torch/bin:/opt/perftest/bin\"}}";
	struct pp_node *n;

	(void)state;
	record = node_record();
	answer("environment", ENV);
	put("/etc/ld.so.conf", "/opt/a\n");
	put("/opt/a/libnccl.so.2.27.7", "");
	ln("/opt/a/libnccl.so.2", "libnccl.so.2.27.7");
	put_bytes("/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2", STRINGS,
		  sizeof(STRINGS));
	put("/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2", "?");
	ln("/opt/torch/bin/python3", "/usr/bin/python3.12");
	put_bytes("/opt/torch/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2", STRINGS,
		  sizeof(STRINGS));
	put("/opt/perftest/bin/ib_write_bw", "");
	put("/usr/local/cuda-12.4/version.json",
	    "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"12.4.131\"}}");
	put("/usr/local/cuda-13.0/include/cuda_runtime_api.h", "#define CUDART_VERSION  13000\n");
	put("/usr/local/cuda-9/version.json", "{\"cuda\": [");
	ln("/usr/local/cuda", "cuda-12.4");
	n = node_replayed(record);
	assert_string_equal(node_text(n, PP_F_NCCL_VERSION), "2.27.7");
	assert_string_equal(node_text(n, PP_F_NCCL_LIBS),
			    "/opt/a/libnccl.so.2.27.7 2.27.7, "
			    "/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2 "
			    "2.21.5+cuda12.4, "
			    "/opt/torch/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2 "
			    "2.21.5+cuda12.4, "
			    "/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2 "
			    "(version unknown: no version in it)");
	assert_string_equal(node_text(n, PP_F_PERFTEST_PATH), "/opt/perftest/bin/ib_write_bw");
	assert_string_equal(node_text(n, PP_F_CUDA_TOOLKITS),
			    "/usr/local/cuda-12.4 12.4.131, /usr/local/cuda-13.0 13.0, "
			    "/usr/local/cuda-9 (version unknown)");
	node_done(n);
	/* Without the environment, another library may come first: its version is not told. */
	record = node_record();
	put("/etc/ld.so.conf", "/opt/a\n");
	put("/opt/a/libnccl.so.2.27.7", "");
	ln("/opt/a/libnccl.so.2", "libnccl.so.2.27.7");
	n = node_replayed(record);
	assert_false(node_known(n, PP_F_NCCL_VERSION));
	assert_false(node_known(n, PP_F_NCCL_LIBS));
	node_done(n);
}

/* Which file the loader really took for a library that this program is linked with. */
static void test_loader_agrees(void **state)
{
	struct pp_library_path path;
	struct pp_arena arena = PP_ARENA((size_t)1 << 20);
	char file[PP_PATH_MAX], loaded[PATH_MAX];
	struct pp_source *live;
	struct pp_error err;
	size_t at = 0;
	Dl_info info;

	(void)state;
	assert_int_not_equal(dladdr((void *)(uintptr_t)json_object, &info), 0);
	if (!strstr(info.dli_fname, "libjansson.so.4")) {
		print_message("jansson is linked statically here\n");
		skip();
	}
	assert_non_null(realpath(info.dli_fname, loaded));
	assert_int_equal(pp_source_live(&live, &err), 0);
	pp_library_path_init(live, &arena, getenv("LD_LIBRARY_PATH"),
			     sizeof(void *) == 8 && strstr(loaded, "x86_64") ? "x86_64" : NULL,
			     &path);
	assert_int_equal(pp_library_find(live, &path, "libjansson.so.4", &at, file), 0);
	assert_string_equal(file, loaded);
	pp_source_free(live);
	pp_arena_done(&arena);
}

static void test_live_environment(void **state)
{
	struct pp_source *live;
	struct pp_error err;
	struct pp_node *n, *again;
	char was[8192];

	(void)state;
	assert_int_equal(setenv("NCCL_NET_GDR_LEVEL", "PHB", 1), 0);
	assert_int_equal(setenv("UCX_TLS", "rc,cuda", 1), 0);
	assert_int_equal(setenv("PEERPATH_TOKEN", "do-not-tell", 1), 0);
	assert_int_equal(setenv("OTHER_NAME", "do-not-tell", 1), 0);
	record = node_record();
	assert_int_equal(pp_source_live(&live, &err), 0);
	pp_source_set_record(live, record);
	assert_int_equal(pp_node_collect(live, &n, &err), 0);
	assert_string_equal(node_text(n, PP_F_NCCL_GDR_LEVEL), "PHB");
	assert_string_equal(node_text(n, PP_F_UCX_ENV), "UCX_TLS=rc,cuda");
	assert_string_equal(node_text(n, PP_F_ENV_HIDDEN), "1");
	assert_null(strstr(pp_record_answer(record, "environment")->content, "do-not-tell"));
	again = node_replayed(record);
	for (unsigned int i = 0; i < n->self->n; i++) {
		enum pp_fact_id id = n->self->facts[i].id;

		if (id < PP_F_CUDA_TOOLKITS || id > PP_F_PERFTEST_PATH)
			continue;
		(void)snprintf(was, sizeof(was), "%s", node_text(n, id));
		assert_string_equal(node_text(again, id), was);
	}
	pp_node_free(n);
	pp_source_free(live);
	node_done(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allow_list),    cmocka_unit_test(test_nccl_conf),
		cmocka_unit_test(test_settings),      cmocka_unit_test(test_versions),
		cmocka_unit_test(test_search_order),  cmocka_unit_test(test_nccl_facts),
		cmocka_unit_test(test_loader_agrees), cmocka_unit_test(test_live_environment),
	};

	return cmocka_run_group_tests_name("software", tests, NULL, NULL);
}
