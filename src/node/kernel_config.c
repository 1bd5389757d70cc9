/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.config.*: from /proc/config.gz, which speaks for the running kernel, else from the file
 * that the distribution installs under the kernel's release.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "node/collect_kernel.h"
#include "node/kconfig.h"
#include "base/banned.h"

enum { MAX_GZ = 1 << 20 };

static const struct {
	enum pp_fact_id id;
	const char *name;
} symbols[] = {
	{PP_F_CFG_DMA_SHARED_BUFFER, "DMA_SHARED_BUFFER"},
	{PP_F_CFG_INFINIBAND_USER_MEM, "INFINIBAND_USER_MEM"},
	{PP_F_CFG_INFINIBAND_ODP, "INFINIBAND_ON_DEMAND_PAGING"},
	{PP_F_CFG_PCI_P2PDMA, "PCI_P2PDMA"},
	{PP_F_CFG_DMABUF_MOVE_NOTIFY, "DMABUF_MOVE_NOTIFY"},
	{PP_F_CFG_KPROBE_EVENTS, "KPROBE_EVENTS"},
};

static int read_gz(struct pp_node *n, const char *path, char **ret)
{
	char *PP_AUTO_FREE gz = malloc(MAX_GZ);
	size_t len;
	int r = gz ? pp_source_read(n->src, path, gz, MAX_GZ, &len) : -ENOMEM;

	return r ? r : pp_kconfig_inflate(gz, len, PP_KCONFIG_MAX, ret);
}

/* Keeps the lines that facts rest on: the symbols asked for, and the witness of the end. */
static enum pp_scan_step keep_line(void *arg, const char *line, size_t len)
{
	struct pp_buf *lines = arg;
	bool wanted = pp_kconfig_whole(line);

	for (size_t i = 0; !wanted && i < PP_ARRAY_LEN(symbols); i++)
		wanted = pp_kconfig_value(line, symbols[i].name, false) != '\0';
	if (!wanted)
		return PP_SCAN_DROP;
	pp_buf_add(lines, line, len);
	pp_buf_char(lines, '\n');
	return PP_SCAN_KEEP;
}

static int read_plain(struct pp_node *n, const char *path, char **ret)
{
	struct pp_buf PP_AUTO_BUF lines = PP_BUF(PP_KCONFIG_MAX + 1);
	const struct pp_scan scan = {
		.separator = '\n', .max = PP_KCONFIG_MAX, .filter = keep_line, .arg = &lines};
	int r = pp_source_scan(n->src, path, &scan);

	pp_buf_add(&lines, "", 0);
	if (!r)
		r = lines.failed;
	if (!r)
		*ret = pp_take(lines.data);
	return r;
}

static void set_symbols(struct pp_node *n, const char *text, const char *path)
{
	bool whole = pp_kconfig_whole(text);
	char word[2] = "";

	pp_fact_str(&n->facts, n->self, PP_F_KERNEL_CONFIG_SOURCE, path, path);
	for (size_t i = 0; i < PP_ARRAY_LEN(symbols); i++) {
		word[0] = pp_kconfig_value(text, symbols[i].name, whole);
		if (word[0] && word[0] != '=')
			pp_fact_str(&n->facts, n->self, symbols[i].id, word, path);
		else
			pp_fact_unknown(&n->facts, n->self, symbols[i].id, path,
					word[0] ? "%s: CONFIG_%s is not y, m or n"
						: "%s: no CONFIG_%s in it, and it may be cut",
					path, symbols[i].name);
	}
}

static void set_unknown(struct pp_node *n, const char *why)
{
	pp_fact_unknown(&n->facts, n->self, PP_F_KERNEL_CONFIG_SOURCE, NULL, "%s", why);
	for (size_t i = 0; i < PP_ARRAY_LEN(symbols); i++)
		pp_fact_unknown(&n->facts, n->self, symbols[i].id, NULL, "%s", why);
}

void pp_kernel_config_collect(struct pp_node *n, const char *release)
{
	static const char *const places[][2] = {{"/boot/config-", ""},
						{"/lib/modules/", "/config"}};
	static const char GZ[] = "/proc/config.gz";
	char *PP_AUTO_FREE text = NULL;
	char path[PP_PATH_MAX], why[2 * PP_PATH_MAX];
	int first = read_gz(n, GZ, &text), r;

	if (!first)
		return set_symbols(n, text, GZ);
	(void)snprintf(why, sizeof(why), "%s: %s; %s", GZ, pp_source_why(first),
		       release ? "no file for this kernel under /boot or /lib/modules"
			       : "the kernel's release is not known");
	for (size_t i = 0; release && i < PP_ARRAY_LEN(places); i++) {
		(void)snprintf(path, sizeof(path), "%s%s%s", places[i][0], release, places[i][1]);
		r = read_plain(n, path, &text);
		if (!r)
			return set_symbols(n, text, path);
		if (r != -ENOENT)
			(void)snprintf(why, sizeof(why), "%s: %s", path, pp_source_why(r));
	}
	set_unknown(n, why);
}
