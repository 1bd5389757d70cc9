/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/signal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const struct {
	const char *key, *unit, *what;
	enum pp_signal_shape shape;
	enum pp_signal_level usual;
} table[PP_SIGNAL_KINDS] = {
#define X(id, k, s, l, u, w)                       \
	[PP_SIGNAL_##id] = {.key = (k),            \
			    .unit = (u),           \
			    .what = (w),           \
			    .shape = PP_SHAPE_##s, \
			    .usual = PP_LEVEL_##l},
#include "daemon/signals.def"
#undef X
};

static const char *const next[PP_SIGNAL_KINDS] = {
	[PP_SIGNAL_FINGERPRINT] = "peerpath identity",
	[PP_SIGNAL_TOPOLOGY] = "peerpath topo",
	[PP_SIGNAL_FLAVOUR] = "peerpath identity",
	[PP_SIGNAL_ACS] = "peerpath topo",
	[PP_SIGNAL_KERNEL_LOG] = "dmesg | peerpath explain -",
	[PP_SIGNAL_BAR1_FREE] = "peerpath trace",
	[PP_SIGNAL_NCCL_FILES] = "peerpath identity --facts",
	[PP_SIGNAL_REGISTRATION] = "peerpath trace",
	[PP_SIGNAL_NCCL_ERRORS] = "peerpath nccl judge LOG",
	[PP_SIGNAL_SLO] = "peerpath prove",
	[PP_SIGNAL_HUNG_CALL] = "dmesg | peerpath explain -",
	[PP_SIGNAL_WATCHER] = "peerpath monitor --show",
};

static const char *const levels[] = {"info", "early", "alarm"};

const char *pp_signal_key(enum pp_signal_kind kind)
{
	return table[kind].key;
}

const char *pp_signal_what(enum pp_signal_kind kind)
{
	return table[kind].what;
}

const char *pp_signal_unit(enum pp_signal_kind kind)
{
	return table[kind].unit;
}

const char *pp_signal_number(enum pp_signal_kind kind, double number, char text[48])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
	const char *unit = pp_signal_unit(kind);
	size_t u = 0;

	if (strcmp(unit, units[0]) != 0) {
		(void)snprintf(text, 48, "%.6g%s%s", number, *unit ? " " : "", unit);
		return text;
	}
	for (; number >= 1024 && u + 1 < PP_ARRAY_LEN(units); u++)
		number /= 1024;
	(void)snprintf(text, 48, "%.4g %s", number, units[u]);
	return text;
}

const char *pp_signal_next(enum pp_signal_kind kind)
{
	return next[kind] ? next[kind] : "peerpath check";
}

enum pp_signal_shape pp_signal_shape(enum pp_signal_kind kind)
{
	return table[kind].shape;
}

enum pp_signal_level pp_signal_usual(enum pp_signal_kind kind)
{
	return table[kind].usual;
}

const char *pp_level_name(enum pp_signal_level level)
{
	return levels[level];
}

int pp_signal_find(const char *key, enum pp_signal_kind *ret)
{
	for (unsigned int i = 0; i < PP_SIGNAL_KINDS; i++) {
		if (!strcmp(table[i].key, key)) {
			*ret = (enum pp_signal_kind)i;
			return 0;
		}
	}
	return -EINVAL;
}

int pp_level_find(const char *name, enum pp_signal_level *ret)
{
	for (unsigned int i = 0; i < PP_ARRAY_LEN(levels); i++) {
		if (!strcmp(levels[i], name)) {
			*ret = (enum pp_signal_level)i;
			return 0;
		}
	}
	return -EINVAL;
}
