/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ini.h"
#include "cli/input.h"
#include "base/banned.h"

enum { CONFIG_BYTES = 256 << 10, ADDRESS = 1024 };
static const char CONFIG[] = PEERPATH_SYSCONFDIR "/peerpath.conf";

/* The last one counts; other sections are other verbs'. */
static int take_setting(void *arg, const char *section, const char *key, const char *value,
			unsigned int line, struct pp_error *err)
{
	(void)line;
	if (!key || strcmp(section, "fleet") != 0)
		return 0;
	if (strcmp(key, "database") != 0)
		return pp_error_set(err, -EINVAL, "section [fleet] has no setting '%s': database",
				    key);
	if ((size_t)snprintf(arg, ADDRESS, "%s", value) >= ADDRESS)
		return pp_error_set(err, -EINVAL, "the database's address is too long");
	return 0;
}

static int read_config(char where[ADDRESS], struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(CONFIG_BYTES);
	int r;

	*where = '\0';
	if (access(CONFIG, F_OK))
		return 0;
	r = pp_input_read(CONFIG, &text, err);
	return r ? r : pp_ini_parse(CONFIG, pp_buf_text(&text), text.len, take_setting, where, err);
}

int pp_fleet_failed(const struct pp_args *args, int error, const struct pp_error *err)
{
	switch (error) {
	case -ENOENT:
	case -ENOTUNIQ:
	case -EINVAL:
		return pp_complain(args, PP_EXIT_USAGE, "%s", err->text);
	case -EBADMSG:
	case -EPROTONOSUPPORT:
		return pp_complain(args, PP_EXIT_INPUT, "%s", err->text);
	default:
		return pp_complain(args, PP_EXIT_INTERNAL, "%s", err->text);
	}
}

int pp_fleet_database(const struct pp_args *args, unsigned int flags, struct pp_sql **ret)
{
	const char *where = pp_args_get(args, "database");
	struct pp_error err = {0};
	char set[ADDRESS];
	int r = 0;

	where = where ? where : secure_getenv("PEERPATH_DATABASE");
	if (!where) {
		r = read_config(set, &err);
		where = set;
	}
	if (r)
		return pp_complain(args, PP_EXIT_USAGE, "%s", err.text);
	if (!*where)
		return pp_complain(args, PP_EXIT_USAGE,
				   "which database? --database FILE or postgresql://..., "
				   "PEERPATH_DATABASE, or 'database = ' in section [fleet] of %s",
				   CONFIG);
	r = pp_fleet_open(where, flags, ret, &err);
	return r ? pp_fleet_failed(args, r, &err) : 0;
}
