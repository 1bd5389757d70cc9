/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles as data: what is refused, what the given ones hold, what a change is refused for, where
 * paths lead.
 */
#include "profile_world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "judge/policy.h"
#include "profile/difference.h"
#include "profile/need.h"
#include "profile/render.h"
#include "profile/shelf.h"
#include "profile/verified.h"

#define HEAD "[profile]\nname = x\ntitle = X\nregistration = dmabuf\n"

static void refused(const char *text, const char *message)
{
	struct pp_profile *p = NULL;
	struct pp_error err = {0};
	int r = pp_profile_parse("p", text, strlen(text), &p, &err);

	if (!r || !strstr(err.text, message))
		fail_msg("%d: '%s' lacks '%s'", r, err.text, message);
	assert_null(p);
}

/* A profile is somebody's text: no path, key or byte of it leads anywhere else. */
static void test_hostile(void **state)
{
	static const char *const paths[] = {
		"/etc/shadow",
		"/etc/modprobe.d/../shadow.conf",
		"/etc/modprobe.d/a/b.conf",
		"/etc/modprobe.d/.hidden.conf",
		"/etc/modprobe.d/.conf",
		"/etc/modprobe.d/x.conf~",
		"/etc/modprobe.d/x",
		"etc/modprobe.d/x.conf",
		"//etc/modprobe.d/x.conf",
		"/etc//modprobe.d/x.conf",
		"/etc/modprobe.d/$(id).conf",
		"/etc/modprobe.d/a b.conf",
		"/etc/modprobe.d/\xc3\xa4.conf",
		"/etc/cron.d/x.conf",
		"/etc/nccl.conf/x",
		"/etc/nccl.conf.d/x.conf",
		"/etc/systemd/system/x.service",
		"",
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(paths); i++) {
		(void)snprintf(text, sizeof(text), HEAD "[write %s]\nline = x\n", paths[i]);
		refused(text, "is no place of a profile");
	}
	refused("[profile\nname = x\n", "must end with");
	refused(HEAD "[wriet /etc/nccl.conf]\n", "did you mean 'write'?");
	refused(HEAD "[write /etc/nccl.conf]\n", "holds nothing");
	refused(HEAD "[write /etc/nccl.conf]\nline = a\nmode = 4755\n", "0644, 0640, 0600 or 0444");
	refused(HEAD "[write /etc/nccl.conf]\nlnie = a\n", "did you mean 'line'?");
	refused(HEAD "[set /etc/modprobe.d/x.conf]\nA = 1\n", "does not hold KEY=VALUE");
	refused(HEAD "[set /etc/nccl.conf]\nA B = 1\n", "is no name of a variable");
	refused(HEAD "[set /etc/nccl.conf]\nA = $(id)\n", "letters, digits");
	refused(HEAD "[set /etc/nccl.conf]\nA = 1\nA = 2\n", "is given twice");
	refused(HEAD "[keep /etc/nccl.conf]\n[set /etc/nccl.conf]\nA = 1\n", "has two sections");
	refused(HEAD "[keep /etc/nccl.conf]\nline = a\n", "goes with [write ...] only");
	refused(HEAD "[needs]\nrequire = nvidia.flavuor == open\n", "nvidia.flavour");
	refused(HEAD "[needs]\ninstall = x\n", "stands behind no 'require'");
	refused(HEAD "[values helm]\n", "unknown operator 'helm'");
	refused(HEAD "[values gpu-operator]\na..b = 1\n", "no dotted name");
	refused(HEAD "[values gpu-operator]\na = \"\n", "without quotes");
	refused("[profile]\nname = ../x\ntitle = X\nregistration = dmabuf\n[keep /etc/nccl.conf]\n",
		"is no name of a profile");
	refused("[profile]\nname = x\ntitle = X\nregistration = host\n", "dmabuf or peermem");
	refused(HEAD, "names no file");
	refused(HEAD "[write /etc/nccl.conf]\nline = a\001b\n", "not text");
}

/* A title on folded lines is one line of what a rollback reads, and a line ends at 4095 bytes. */
static void test_long_title(void **state)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);
	struct pp_profile *p = NULL;
	struct pp_error err = {0};

	(void)state;
	pp_buf_str(&text, "[profile]\nname = x\nregistration = dmabuf\ntitle = X\n");
	for (int i = 0; i < 100; i++)
		pp_buf_str(&text, "  0123456789 0123456789 0123456789 0123456789\n");
	pp_buf_str(&text, "[write /etc/nccl.conf]\nline = x\n");
	assert_int_equal(pp_profile_parse("p", text.data, text.len, &p, &err), -EFBIG);
	assert_non_null(strstr(err.text, "'title' is longer than 2000 bytes"));
}

static void test_huge(void **state)
{
	struct pp_buf text = PP_BUF(1 << 20);
	struct pp_profile *p = NULL;
	struct pp_error err = {0};

	(void)state;
	pp_buf_str(&text, HEAD "[write /etc/nccl.conf]\n");
	while (text.len < PP_PROFILE_BYTES + 1)
		pp_buf_str(&text, "line = 0123456789\n");
	assert_int_equal(pp_profile_parse("p", text.data, text.len, &p, &err), -EFBIG);
	pp_buf_reset(&text);
	pp_buf_str(&text, HEAD);
	for (int i = 0; i <= PP_PROFILE_FILES; i++)
		pp_buf_printf(&text, "[absent /etc/modprobe.d/%d.conf]\n", i);
	assert_int_equal(pp_profile_parse("p", text.data, text.len, &p, &err), -EFBIG);
	/* A NUL in the middle is no end. */
	assert_int_equal(pp_profile_parse("p", HEAD "\0[", sizeof(HEAD) + 1, &p, &err), -EINVAL);
	pp_buf_done(&text);
}

static struct pp_profile *given(const char *name)
{
	char path[512];
	struct pp_profile *p = NULL;
	struct pp_error err = {0};

	(void)snprintf(path, sizeof(path), "%s/profiles/%s.profile", PEERPATH_SOURCE_DATADIR, name);
	if (pp_shelf_load(path, &p, NULL, &err))
		fail_msg("%s", err.text);
	assert_string_equal(p->name, name);
	return p;
}

static const char *const given_names[] = {"peermem", "peermem-open", "dmabuf"};

/* A policy forbids by the words of the rules: a fix of another word could not be forbidden. */
static void test_given_fixes(void **state)
{
	struct pp_rules *rules = NULL;
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(pp_rules_load(PEERPATH_SOURCE_DATADIR "/rules", &rules, &err), 0);
	for (size_t i = 0; i < PP_ARRAY_LEN(given_names); i++) {
		struct pp_profile *p = given(given_names[i]);
		unsigned int n = 0;

		for (unsigned int k = 0; k < p->n_files + p->n_needs; k++) {
			const char *fix =
				k < p->n_files ? p->file[k].fix_id : p->need[k - p->n_files].fix_id;
			struct pp_policy *policy = NULL;
			char text[128];

			if (!fix)
				continue;
			(void)snprintf(text, sizeof(text), "[forbid]\n%s = no\n", fix);
			assert_int_equal(pp_policy_parse("p", text, strlen(text), &policy, &err),
					 0);
			if (pp_policy_check(policy, rules, &err))
				fail_msg("%s", err.text);
			pp_policy_free(policy);
			n++;
		}
		assert_true(n > 2);
		pp_profile_free(p);
	}
	pp_rules_free(rules);
}

/* Between the last two the path flips alone: variables of libraries, no module, no limit. */
static void test_path_flips_alone(void **state)
{
	struct pp_profile *a = given("peermem-open"), *b = given("dmabuf");

	(void)state;
	assert_int_equal(a->n_files, b->n_files);
	for (unsigned int i = 0; i < a->n_files; i++) {
		const struct pp_profile_file *f = pp_profile_file_of(b, a->file[i].path);

		assert_non_null(f);
		if (f->action == PP_PROFILE_KEEP || !strcmp(f->text, a->file[i].text))
			continue;
		assert_true(f->spot->assigns);
	}
	/* docs: NCCL environment variables, NCCL_DMABUF_ENABLE: 0 off, 1 on */
	assert_string_equal(pp_profile_file_of(a, "/etc/nccl.conf")->text,
			    "NCCL_DMABUF_ENABLE=0\n");
	assert_string_equal(pp_profile_file_of(b, "/etc/nccl.conf")->text,
			    "NCCL_DMABUF_ENABLE=1\n");
	pp_profile_free(a);
	pp_profile_free(b);
}

static bool drops(const char *text)
{
	struct pp_profile *p = parsed(text);
	struct pp_disk d = world_disk();
	struct pp_error err = {0};
	struct pp_change *c;
	struct pp_state s;
	bool r;

	assert_int_equal(pp_state_read(&d, &s, &err), 0);
	if (pp_change_make(&s, p, &c, &err))
		fail_msg("%s", err.text);
	r = pp_change_drops_peermem(&s, c);
	pp_change_free(c);
	pp_state_done(&s);
	pp_disk_close(&d);
	pp_profile_free(p);
	return r;
}

/* The rule of the migration runbook. */
static void test_peermem_stays(void **state)
{
	static const char away[] = HEAD "[set /etc/nccl.conf]\nA = 1\n";
	static const char absent[] = HEAD "[absent /etc/modules-load.d/old.conf]\n";
	static const char block[] = HEAD "[keep /etc/modules-load.d/x.conf]\n"
					 "[write /etc/modprobe.d/n.conf]\nline = "
					 "blacklist  nvidia-peermem\n";
	static const char install[] = HEAD "[write /etc/modprobe.d/n.conf]\nline = "
					   "install nvidia_peermem /bin/false\n";
	static const char other[] =
		HEAD "[write /etc/modprobe.d/n.conf]\nline = blacklist nouveau\n"
		     "[keep /etc/modules-load.d/x.conf]\n";
	struct pp_profile *a = parsed(profile_a), *b = parsed(profile_b);

	(void)state;
	world_make();
	world_file("/etc/modules-load.d/old.conf", "ib_uverbs\nnvidia_peermem\n", 0644);
	/* No profile yet: what the machine loads is not taken away either. */
	assert_true(drops(absent));
	assert_true(drops(install));
	assert_false(drops(away));
	done(a);
	assert_true(drops(away));
	assert_true(drops(block));
	assert_false(drops(other));
	assert_false(drops(profile_b));
	done(b);
	/* DMA-BUF is in effect: now it may go, in a change of its own. */
	assert_false(drops(away));
	assert_false(drops(block));
	world_remove();
	pp_profile_free(a);
	pp_profile_free(b);
}

static void test_policy(void **state)
{
	static const char site[] = "[forbid]\nload-peermem = not here, section 4\n";
	static const char text[] = "[profile]\nname = x\ntitle = X\nregistration = peermem\n"
				   "[write /etc/modules-load.d/x.conf]\nline = nvidia-peermem\n"
				   "fix = load-peermem\n";
	struct pp_profile *p = parsed(text);
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};
	struct pp_change *c;
	struct pp_disk d;
	struct pp_state s;
	const char *reason;

	(void)state;
	world_make();
	d = world_disk();
	assert_int_equal(pp_policy_parse("p", site, strlen(site), &policy, &err), 0);
	assert_int_equal(pp_state_read(&d, &s, &err), 0);
	assert_int_equal(pp_change_make(&s, p, &c, &err), 0);
	assert_string_equal(pp_change_forbidden(c, policy, NULL, &reason), "load-peermem");
	assert_string_equal(reason, "not here, section 4");
	assert_null(pp_change_forbidden(c, NULL, NULL, &reason));
	pp_change_free(c);
	pp_policy_free(policy);
	pp_profile_free(p);
	pp_state_done(&s);
	pp_disk_close(&d);
	world_remove();
}

/* What the node has already is no fix that a site could forbid. */
static void test_policy_met(void **state)
{
	static const char site[] = "[forbid]\nopen-kernel-module = frozen\n";
	static const char text[] = HEAD "[needs]\nrequire = nvidia.flavour == open\n"
					"fix = open-kernel-module\n[keep /etc/nccl.conf]\n";
	static const char *const flavours[] = {"open", "proprietary"};
	struct pp_arena arena = PP_ARENA(1 << 16);
	struct pp_profile *p = parsed(text);
	struct pp_change c = {.profile = p};
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};
	const char *reason;

	(void)state;
	assert_int_equal(pp_generation_new(&c.next), 0);
	assert_int_equal(pp_policy_parse("p", site, strlen(site), &policy, &err), 0);
	for (size_t i = 0; i < PP_ARRAY_LEN(flavours); i++) {
		struct pp_facts facts = {.arena = &arena};
		struct pp_object *self = pp_object_add(&facts, PP_NODE, "node");

		pp_fact_str(&facts, self, PP_F_NVIDIA_FLAVOUR, flavours[i], NULL);
		assert_int_equal(!pp_change_forbidden(&c, policy, &facts, &reason), i == 0);
	}
	pp_generation_free(c.next);
	pp_policy_free(policy);
	pp_profile_free(p);
	pp_arena_done(&arena);
}

static void merge(const char *old, const char *set, const char *want)
{
	struct pp_buf b = PP_BUF(4096);

	pp_profile_merge(old, set, &b);
	assert_string_equal(pp_buf_text(&b), want);
	pp_buf_done(&b);
}

static void test_merge(void **state)
{
	(void)state;
	merge("", "A=1\n", "A=1\n");
	merge("# a\nB=2\nA=0\nC=3", "A=1\n", "# a\nB=2\nC=3\nA=1\n");
	merge("AA=0\nA=\n", "A=1\nD=4\n", "AA=0\nA=1\nD=4\n");
	merge("#A=0\nnothing\n", "A=1\n", "#A=0\nnothing\nA=1\n");
}

static char outside[256];

static void link_in(const char *path, const char *target)
{
	char full[256];

	(void)snprintf(full, sizeof(full), "%s%s", world, path);
	assert_int_equal(symlink(target, full), 0);
}

/* @want: 0, or the errno of trying to write below that directory. */
static void writes(bool plain, const char *path, int want)
{
	static const struct pp_disk_state state = {
		.mode = 0644, .uid = (uid_t)-1, .gid = (gid_t)-1};
	struct pp_disk d = world_disk();
	struct pp_error err = {0};
	int r;

	d.plain = plain;
	r = pp_disk_create(&d, path, "x", 1, &state, &err);
	if (r != want)
		fail_msg("%s: %d %s", path, r, err.text);
	assert_int_equal(access(outside, F_OK), -1);
	pp_disk_close(&d);
}

/* Whatever links an image holds: what is written lies below its root, with either way of walking.
 */
static void links_out(void)
{
	world_make();
	(void)snprintf(outside, sizeof(outside), "/tmp/pp-escaped-%d", (int)getpid());
	link_in("/etc/up", "../../../../../../../../tmp");
	link_in("/etc/absolute", "/tmp");
	link_in("/etc/inside", "/etc/modprobe.d");
	link_in("/etc/loop", "loop");
	world_dir("/tmp");
}

static void test_escape(void **state)
{
	struct open_how how = {.flags = O_PATH};
	char target[400], name[320];
	long fd = syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	(void)state;
	if (fd < 0 && errno == ENOSYS)
		skip(); /* valgrind does not know the call */
	(void)close((int)fd);
	links_out();
	(void)snprintf(name, sizeof(name), "/etc/up/%s", outside + 5);
	writes(false, name, 0);
	(void)snprintf(target, sizeof(target), "%s%s", world, outside);
	assert_int_equal(access(target, F_OK), 0);
	(void)snprintf(name, sizeof(name), "/etc/absolute/%s", outside + 5);
	writes(false, name, 0);
	writes(false, "/etc/inside/y.conf", 0);
	writes(false, "/etc/loop/y.conf", -ELOOP);
	world_remove();
}

/* Without the kernel's help no link is followed at all. */
static void test_escape_by_hand(void **state)
{
	char name[320];

	(void)state;
	links_out();
	(void)snprintf(name, sizeof(name), "/etc/absolute/%s", outside + 5);
	writes(true, name, -ENOTDIR);
	writes(true, "/etc/up/y.conf", -ENOTDIR);
	writes(true, "/etc/inside/z.conf", -ENOTDIR);
	writes(true, "/etc/../etc/z.conf", -EINVAL);
	writes(true, "/etc/modprobe.d/z.conf", 0);
	world_remove();
}

static void unreadable(const char *path, const char *message)
{
	struct pp_disk d = world_disk();
	struct pp_disk_state state;
	struct pp_error err = {0};

	assert_true(pp_disk_read(&d, path, NULL, &state, &err) < 0);
	if (!strstr(err.text, message))
		fail_msg("'%s' lacks '%s'", err.text, message);
	pp_disk_close(&d);
}

/* What could not be given back as it was is not touched. */
static void test_refused_files(void **state)
{
	char a[256], b[256];

	(void)state;
	world_make();
	(void)snprintf(a, sizeof(a), "%s/etc/nccl.conf", world);
	(void)snprintf(b, sizeof(b), "%s/etc/second", world);
	assert_int_equal(link(a, b), 0);
	unreadable("/etc/nccl.conf", "hard links");
	link_in("/etc/sysctl.d/l.conf", "old.conf");
	unreadable("/etc/sysctl.d/l.conf", "symbolic link");
	unreadable("/etc/sysctl.d", "no regular file");
	(void)snprintf(b, sizeof(b), "%s/etc/fifo", world);
	assert_int_equal(mkfifo(b, 0644), 0);
	unreadable("/etc/fifo", "no regular file");
	world_remove();
}

static void differ(const char *a, const char *b, const char *want)
{
	struct pp_buf text = PP_BUF(1 << 16);

	pp_difference("a", a, "b", b, &text);
	if (strcmp(pp_buf_text(&text), want) != 0)
		fail_msg("is:\n%s\nshould be:\n%s", pp_buf_text(&text), want);
	pp_buf_done(&text);
}

/* The texts are those of GNU diff 3.8, "diff -u --label a --label b". */
static void test_difference(void **state)
{
	(void)state;
	differ("x\n", "x\n", "");
	differ("", "x\n", "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
	differ("x\n", "", "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
	differ("x", "x\n", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n");
	differ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "1\nb\n3\n4\n5\n6\n7\n8\n9\n10\n11\nc\n",
	       "--- a\n+++ b\n@@ -1,5 +1,5 @@\n 1\n-2\n+b\n 3\n 4\n 5\n@@ -9,4 +9,4 @@\n 9\n 10\n "
	       "11\n-12\n+c\n");
}

static void test_verified(void **state)
{
	struct pp_verified a = {.profile = "x",
				.software = "s",
				.topology = "t",
				.boot_id = "b1",
				.time = "now",
				.gate = {PP_PASS, PP_DEGRADED}};
	struct pp_verified_row row[PP_VERIFIED_ROWS];
	struct pp_verified b, read;
	struct pp_buf text = PP_BUF(4096);
	struct pp_error err = {0};

	(void)state;
	memset(a.sha256, 'a', 64);
	pp_verified_write(&a, &text);
	assert_int_equal(pp_verified_parse("v", text.data, text.len, &read, &err), 0);
	assert_memory_equal(&read, &a, sizeof(a));
	pp_buf_done(&text);
	b = a;
	pp_verified_compare(&a, &b, row);
	assert_int_equal(row[0].verdict, PP_UNKNOWN); /* the same boot shows nothing of a reboot */
	(void)snprintf(b.boot_id, sizeof(b.boot_id), "b2");
	pp_verified_compare(&a, &b, row);
	for (size_t i = 0; i < PP_VERIFIED_ROWS; i++)
		assert_int_equal(row[i].verdict, PP_PASS);
	b.software[0] = 'x';
	b.topology[0] = '\0';
	b.gate[1] = PP_FAIL;
	pp_verified_compare(&a, &b, row);
	assert_int_equal(row[2].verdict, PP_FAIL);
	assert_int_equal(row[3].verdict, PP_UNKNOWN);
	assert_int_equal(row[5].verdict, PP_FAIL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_long_title),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(test_given_fixes),
		cmocka_unit_test(test_path_flips_alone),
		cmocka_unit_test(test_peermem_stays),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_policy_met),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_by_hand),
		cmocka_unit_test(test_refused_files),
		cmocka_unit_test(test_difference),
		cmocka_unit_test(test_verified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
