/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/glance.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { TEXT = 64 << 10 };

/* Whole files. */
static const char *const files[] = {
	"/proc/sys/kernel/random/boot_id",
	"/proc/sys/kernel/osrelease",
	"/proc/cmdline",
	"/proc/driver/nvidia/version",
	"/proc/driver/nvidia/params",
	"/sys/module/nvidia/version",
	"/sys/module/nvidia_peermem/version",
	"/sys/module/ib_core/version",
	"/sys/module/mlx5_core/version",
	"/etc/os-release",
	"/etc/nccl.conf",
};

/* Names in directories. */
static const char *const dirs[] = {
	"/sys/module",
	"/sys/bus/pci/devices",
	"/sys/class/infiniband",
	"/sys/kernel/iommu_groups",
	"/sys/kernel/mm/memory_peers",
	"/proc/driver/nvidia/gpus",
};

/* Where links of libraries lead, which is their version. */
static const char *const links[] = {
	"/usr/lib/x86_64-linux-gnu/libcuda.so.1",     "/usr/lib64/libcuda.so.1",
	"/usr/lib/x86_64-linux-gnu/libnccl.so.2",     "/usr/lib64/libnccl.so.2",
	"/usr/lib/x86_64-linux-gnu/libibverbs.so.1",  "/usr/lib64/libibverbs.so.1",
	"/usr/lib/x86_64-linux-gnu/libucp.so.0",      "/usr/lib64/libucp.so.0",
	"/usr/lib/aarch64-linux-gnu/libcuda.so.1",    "/usr/lib/aarch64-linux-gnu/libnccl.so.2",
	"/usr/lib/aarch64-linux-gnu/libibverbs.so.1", "/usr/local/cuda",
};

static void add(crypto_hash_sha256_state *h, const void *bytes, size_t len)
{
	(void)crypto_hash_sha256_update(h, bytes, len);
}

/* The error is part of it: what can no longer be read is a change. */
static void add_text(crypto_hash_sha256_state *h, int error, const char *text, size_t len)
{
	add(h, &error, sizeof(error));
	add(h, &len, sizeof(len));
	add(h, text, len);
}

static void add_dir(crypto_hash_sha256_state *h, struct pp_source *s, const char *dir)
{
	struct pp_names names = {0};
	int r = pp_source_list(s, dir, &names);

	add_text(h, r, "", 0);
	for (size_t i = 0; i < names.n; i++)
		add_text(h, 0, names.name[i], strlen(names.name[i]));
	pp_names_done(&names);
}

/* Firmware of each hca. */
static void add_firmware(crypto_hash_sha256_state *h, struct pp_source *s)
{
	static const char CLASS[] = "/sys/class/infiniband";
	struct pp_names names = {0};
	char path[PP_PATH_MAX], text[128];

	if (pp_source_list(s, CLASS, &names))
		return;
	for (size_t i = 0; i < names.n; i++) {
		int r = (size_t)snprintf(path, sizeof(path), "%s/%s/fw_ver", CLASS,
					 names.name[i]) >= sizeof(path)
				? -1
				: pp_source_text(s, path, text, sizeof(text));

		add_text(h, r, text, r ? 0 : strlen(text));
	}
	pp_names_done(&names);
}

void pp_glance_read(struct pp_source *s, struct pp_glance *ret)
{
	crypto_hash_sha256_state h;
	char text[TEXT], path[PP_PATH_MAX];

	(void)crypto_hash_sha256_init(&h);
	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++) {
		size_t len = 0;
		int r = pp_source_read(s, files[i], text, sizeof(text), &len);

		add_text(&h, r, text, r ? 0 : len);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(dirs); i++)
		add_dir(&h, s, dirs[i]);
	for (size_t i = 0; i < PP_ARRAY_LEN(links); i++) {
		int r = pp_source_link(s, links[i], path, sizeof(path));

		add_text(&h, r, path, r ? 0 : strlen(path));
	}
	add_firmware(&h, s);
	(void)crypto_hash_sha256_final(&h, ret->hash);
}

bool pp_glance_equal(const struct pp_glance *a, const struct pp_glance *b)
{
	return !memcmp(a->hash, b->hash, sizeof(a->hash));
}
