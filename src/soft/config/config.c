/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/ini.h"
#include "base/parse.h"
#include "base/banned.h"

struct reading {
	struct soft_config *config;
	struct soft_config_device all;
	bool in_all;
};

static int begin_device(struct reading *r, const char *name, struct pp_error *err)
{
	struct soft_config *c = r->config;

	if (c->num_devices == SOFT_CONFIG_DEVICES_MAX)
		return pp_error_set(err, -EINVAL, "more than %d devices", SOFT_CONFIG_DEVICES_MAX);
	for (unsigned int i = 0; i < c->num_devices; i++)
		if (!strcmp(c->devices[i].name, name))
			return pp_error_set(err, -EINVAL, "device %s is there twice", name);
	c->devices[c->num_devices] = r->all;
	r->in_all = false;
	return soft_config_set(&c->devices[c->num_devices++], "name", name, err);
}

static int begin_all(struct reading *r, struct pp_error *err)
{
	if (r->config->num_devices)
		return pp_error_set(err, -EINVAL, "what is for all devices comes first");
	r->in_all = true;
	return 0;
}

static int set(struct reading *r, const char *key, const char *value, struct pp_error *err)
{
	static const char *const own[] = {"name", "address", "netdev"};

	if (r->in_all)
		for (size_t i = 0; i < PP_ARRAY_LEN(own); i++)
			if (!strcmp(own[i], key))
				return pp_error_set(
					err, -EINVAL,
					"%s= belongs to a device: its name comes before it", key);
	return soft_config_set(r->in_all ? &r->all
					 : &r->config->devices[r->config->num_devices - 1],
			       key, value, err);
}

static int on_ini(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct reading *r = arg;

	(void)line;
	if (!key) {
		if (!strcmp(section, "all"))
			return begin_all(r, err);
		if (!strncmp(section, "device ", 7))
			return begin_device(r, section + 7, err);
		return pp_error_set(err, -EINVAL, "[%s] is neither [all] nor [device NAME]",
				    section);
	}
	if (!strcmp(key, "name"))
		return pp_error_set(err, -EINVAL, "the name stands in [device NAME]");
	return set(r, key, value, err);
}

/* One "key=value" of an inline description; the first of a group opens a device if it is name=. */
static int on_word(struct reading *r, char *word, bool first, struct pp_error *err)
{
	char *equals = strchr(word, '=');
	const char *key, *value;

	if (!equals)
		return pp_error_set(err, -EINVAL, "\"%s\" has no \"=\"", word);
	*equals = '\0';
	key = pp_trim(word);
	value = pp_trim(equals + 1);
	if (first && !strcmp(key, "name"))
		return begin_device(r, value, err);
	if (first) {
		int rc = begin_all(r, err);

		if (rc)
			return pp_error_set(err, rc, "a device begins with name=, not %s=", key);
	} else if (!strcmp(key, "name")) {
		return pp_error_set(err, -EINVAL, "name= comes first in its device");
	}
	return set(r, key, value, err);
}

static int parse_inline(struct reading *r, const char *text, struct pp_error *err)
{
	char *copy PP_AUTO_FREE = strdup(text), *group, *groups, *word, *words;
	int rc = 0;

	if (!copy)
		return pp_error_set(err, -ENOMEM, "no memory");
	groups = copy;
	while (!rc && (group = strsep(&groups, ";"))) {
		bool first = true;

		words = group;
		while (!rc && (word = strsep(&words, ","))) {
			if (!*pp_trim(word))
				continue;
			rc = on_word(r, word, first, err);
			first = false;
		}
	}
	return rc;
}

static int read_file(const char *path, char **ret, size_t *ret_len, struct pp_error *err)
{
	PP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text PP_AUTO_FREE = malloc(SOFT_CONFIG_BYTES_MAX + 1);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return pp_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!text)
		return pp_error_set(err, -ENOMEM, "no memory");
	while ((n = read(fd, text + len, SOFT_CONFIG_BYTES_MAX + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return pp_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (len > SOFT_CONFIG_BYTES_MAX)
		return pp_error_set(err, -EFBIG, "%s: more than %d bytes", path,
				    SOFT_CONFIG_BYTES_MAX);
	*ret_len = len;
	*ret = text;
	text = NULL;
	return 0;
}

static int parse_file(struct reading *r, const char *path, struct pp_error *err)
{
	char *text PP_AUTO_FREE = NULL;
	size_t len = 0;
	int rc = read_file(path, &text, &len, err);

	return rc ? rc : pp_ini_parse(path, text, len, on_ini, r, err);
}

int soft_config_parse(const char *description, const struct soft_host_address *hosts,
		      unsigned int num_hosts, struct soft_config *ret, struct pp_error *err)
{
	struct soft_config *c PP_AUTO_FREE = calloc(1, sizeof(*c));
	struct reading r = {.config = c, .all = soft_config_default, .in_all = true};
	int rc = 0;

	if (!c)
		return pp_error_set(err, -ENOMEM, "no memory");
	if (description && *description)
		rc = strchr(description, '=') ? parse_inline(&r, description, err)
					      : parse_file(&r, description, err);
	if (!rc && !c->num_devices)
		rc = soft_config_add_default(c, &r.all, hosts, num_hosts, err);
	else
		for (unsigned int i = 0; i < c->num_devices && !rc; i++)
			rc = soft_config_complete(&c->devices[i], hosts, num_hosts, err);
	if (!rc)
		*ret = *c;
	return rc;
}

int soft_config_load(const char *description, struct soft_config *ret, struct pp_error *err)
{
	struct soft_host_address *hosts PP_AUTO_FREE =
		calloc(SOFT_CONFIG_HOSTS_MAX, sizeof(*hosts));
	int n;

	if (!hosts)
		return pp_error_set(err, -ENOMEM, "no memory");
	n = soft_host_addresses(hosts, SOFT_CONFIG_HOSTS_MAX);
	if (n < 0)
		return pp_error_set(err, n, "the addresses of this machine: %s", strerror(-n));
	return soft_config_parse(description, hosts, (unsigned int)n, ret, err);
}
