/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of devices, as a file and as text, against made-up addresses.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/config/config.h"

static const struct soft_host_address hosts[] = {
	{"lo", 1, 65536, true, true, {0}, {{[10] = 0xff, 0xff, 127, 0, 0, 1}}},
	{"lo", 1, 65536, true, true, {0}, {{[15] = 1}}},
	{"eth0", 2, 1500, false, true, {2}, {{[10] = 0xff, 0xff, 10, 0, 0, 1}}},
	{"eth1", 3, 9000, false, true, {4}, {{[0] = 0xfd, [15] = 1}}},
};

static void parse(const char *description)
{
	struct soft_config *config = calloc(1, sizeof(*config));
	struct pp_error err = {0};
	int r;

	assert(config);
	r = soft_config_parse(description, hosts, sizeof(hosts) / sizeof(hosts[0]), config, &err);
	assert(!r || (r < 0 && err.text[0] && !config->num_devices));
	for (unsigned int i = 0; i < config->num_devices; i++) {
		const struct soft_config_device *d = &config->devices[i];

		assert(d->name[0] && d->num_gids && d->num_gids <= SOFT_CONFIG_GIDS_MAX);
		assert(d->mtu >= 256 && d->mtu <= 4096 && d->gids[0].ifindex);
		assert(d->limits.max_qp && d->limits.max_sge <= 32);
	}
	free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	char *text = strndup((const char *)data, size);
	int fd = memfd_create("description", MFD_CLOEXEC);

	assert(text && fd >= 0);
	if (strchr(text, '='))
		parse(text);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	parse(path);
	close(fd);
	free(text);
	return 0;
}
