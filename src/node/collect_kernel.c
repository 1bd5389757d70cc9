/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running kernel and its distribution. Everything is a file, but for the architecture of
 * kernels before 6.1, which uname(2) tells.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/parse.h"
#include "node/ask.h"
#include "node/collect_kernel.h"
#include "node/os_release.h"
#include "base/banned.h"

enum { MAX_OS_RELEASE = 64 << 10, MAX_CMDLINE = 16 << 10, MAX_WORD = 256 };

static int run_uname(struct pp_json *data, const void *arg, struct pp_error *err)
{
	struct utsname u;

	(void)arg;
	if (uname(&u))
		return pp_error_set(err, -errno, "uname: %s", pp_source_why(-errno));
	pp_json_str(data, "machine", u.machine);
	return 0;
}

static void collect_arch(struct pp_node *n)
{
	static const char FILE_[] = "/proc/sys/kernel/arch";
	const struct pp_question q = {.name = "uname", .run = run_uname};
	char text[MAX_WORD];
	struct pp_answer a;
	const char *machine;

	if (!pp_source_text(n->src, FILE_, text, sizeof(text)) && text[0])
		return pp_fact_str(&n->facts, n->self, PP_F_KERNEL_ARCH, text, FILE_);
	if (pp_ask(n->src, &q, &a))
		return pp_fact_unknown(&n->facts, n->self, PP_F_KERNEL_ARCH, NULL, "out of memory");
	machine = a.answered ? pp_answer_str(a.data, "machine") : NULL;
	if (machine && *machine && strlen(machine) < MAX_WORD &&
	    pp_is_text(machine, strlen(machine)))
		pp_fact_str(&n->facts, n->self, PP_F_KERNEL_ARCH, machine, "uname");
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_KERNEL_ARCH, "uname", "%s",
				a.answered ? "uname gave no machine" : a.detail);
	pp_answer_done(&a);
}

static int read_os_release(struct pp_node *n, char *text, size_t size, const char **ret_path)
{
	static const char *const places[] = {"/etc/os-release", "/usr/lib/os-release"};
	int r = -ENOENT;

	for (size_t i = 0; i < PP_ARRAY_LEN(places) && r == -ENOENT; i++) {
		*ret_path = places[i];
		r = pp_source_text(n->src, places[i], text, size);
	}
	return r;
}

static void collect_os(struct pp_node *n)
{
	static const struct {
		enum pp_fact_id id;
		const char *key;
	} keys[] = {
		{PP_F_OS_NAME, "PRETTY_NAME"},
		{PP_F_OS_ID, "ID"},
		{PP_F_OS_VERSION, "VERSION_ID"},
	};
	char *PP_AUTO_FREE text = malloc(MAX_OS_RELEASE);
	char value[MAX_WORD];
	const char *path = NULL;
	int r = text ? read_os_release(n, text, MAX_OS_RELEASE, &path) : -ENOMEM;

	for (size_t i = 0; i < PP_ARRAY_LEN(keys); i++) {
		if (r)
			pp_fact_unknown(&n->facts, n->self, keys[i].id, path, "os-release: %s",
					pp_source_why(r));
		else if (pp_os_release_value(text, keys[i].key, value, sizeof(value)) || !*value)
			pp_fact_unknown(&n->facts, n->self, keys[i].id, path, "%s: no %s in it",
					path, keys[i].key);
		else
			pp_fact_str(&n->facts, n->self, keys[i].id, value, path);
	}
}

/* "none [integrity] confidentiality": the word in brackets is in force. */
static void collect_lockdown(struct pp_node *n)
{
	static const char PATH[] = "/sys/kernel/security/lockdown";
	char text[MAX_WORD], *open, *close;
	int r = pp_source_text(n->src, PATH, text, sizeof(text));

	if (r)
		return pp_fact_unknown(&n->facts, n->self, PP_F_KERNEL_LOCKDOWN, PATH,
				       r == -ENOENT ? "%s: %s: securityfs is not mounted, or the "
						      "kernel has no lockdown"
						    : "%s: %s",
				       PATH, pp_source_why(r));
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close || close == open + 1)
		return pp_fact_unknown(&n->facts, n->self, PP_F_KERNEL_LOCKDOWN, PATH,
				       "%s: no word in brackets: '%.40s'", PATH, text);
	*close = '\0';
	pp_fact_str(&n->facts, n->self, PP_F_KERNEL_LOCKDOWN, open + 1, PATH);
}

static void collect_cmdline(struct pp_node *n)
{
	static const char PATH[] = "/proc/cmdline";
	char *PP_AUTO_FREE text = malloc(MAX_CMDLINE);
	int r = text ? pp_source_text(n->src, PATH, text, MAX_CMDLINE) : -ENOMEM;

	if (r)
		pp_fact_unknown(&n->facts, n->self, PP_F_KERNEL_CMDLINE, PATH, "%s: %s", PATH,
				pp_source_why(r));
	else
		pp_fact_str(&n->facts, n->self, PP_F_KERNEL_CMDLINE, text, PATH);
}

/* Also in /proc/version, "Linux version <release> (...", should the sysctl be hidden. */
static void collect_release(struct pp_node *n)
{
	static const char VERSION[] = "/proc/version", WORDS[] = "Linux version ";
	const struct pp_fact *version;
	char release[MAX_WORD];
	size_t len;

	(void)pp_node_file(n, n->self, PP_F_KERNEL_VERSION, VERSION);
	(void)pp_node_file(n, n->self, PP_F_KERNEL_BOOT_ID, "/proc/sys/kernel/random/boot_id");
	if (!pp_node_file(n, n->self, PP_F_KERNEL_RELEASE, "/proc/sys/kernel/osrelease"))
		return;
	version = pp_fact_get(n->self, PP_F_KERNEL_VERSION);
	if (!version || !version->known || strncmp(version->str, WORDS, strlen(WORDS)) != 0)
		return;
	len = strcspn(version->str + strlen(WORDS), " ");
	if (!len || len >= sizeof(release))
		return;
	memcpy(release, version->str + strlen(WORDS), len);
	release[len] = '\0';
	pp_fact_str(&n->facts, n->self, PP_F_KERNEL_RELEASE, release, VERSION);
}

void pp_collect_kernel(struct pp_node *n)
{
	const char *release;

	collect_release(n);
	collect_arch(n);
	collect_os(n);
	collect_cmdline(n);
	collect_lockdown(n);
	(void)pp_node_file(n, n->self, PP_F_KERNEL_TAINT, "/proc/sys/kernel/tainted");
	/* It names files: a release that is no file name names none. */
	release = pp_fact_str_or(n->self, PP_F_KERNEL_RELEASE, NULL);
	pp_kernel_config_collect(n, release && !strchr(release, '/') ? release : NULL);
	pp_kernel_symbols_collect(n);
	pp_kernel_virtual_collect(n);
	pp_kernel_log_collect(n);
}
