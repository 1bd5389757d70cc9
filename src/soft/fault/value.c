/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/fault/value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum {
	ERRNO_MAX = 4095,
	NAMED_MAX = 133,
	GIDS_MAX = 16,
	DEPTH_MAX = 1 << 17,
	BANDWIDTH_MIN = 100000
};

static const uint64_t delay_max_ns = UINT64_C(60) * 1000000000;
static const uint64_t bandwidth_max = UINT64_C(1000000000000);

int soft_fault_value_error(char *value, struct soft_fault_spec *spec)
{
	/* What libc has no name for: the kernel's own ENOTSUPP, and a second name of 95. */
	static const struct {
		const char *name;
		int number;
	} others[] = {{"ENOTSUPP", 524}, {"ENOTSUP", EOPNOTSUPP}, {"EWOULDBLOCK", EAGAIN}};
	uint64_t n;

	if (!pp_parse_u64(value, 1, ERRNO_MAX, &n)) {
		spec->error = (int)n;
		return 0;
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(others); i++) {
		if (!strcmp(others[i].name, value)) {
			spec->error = others[i].number;
			return 0;
		}
	}
	for (int i = 1; i <= NAMED_MAX; i++) {
		const char *name = strerrorname_np(i);

		if (name && !strcmp(name, value)) {
			spec->error = i;
			return 0;
		}
	}
	return -EINVAL;
}

int soft_fault_value_packets(char *value, struct soft_fault_spec *spec)
{
	uint32_t ppm;
	char none[] = "";

	if (soft_fault_share_parse(value, &ppm))
		return soft_fault_which_parse(value, &spec->which);
	spec->when.ppm = ppm;
	return soft_fault_which_parse(none, &spec->which);
}

/* "5ms", "200us", "1s"; a bare number is refused: of what? */
static int parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	size_t digits = strspn(text, "0123456789");
	char number[20];
	uint64_t n;

	if (!digits || digits >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (pp_parse_u64(number, 0, delay_max_ns, &n))
		return -EINVAL;
	for (size_t i = 0; i < PP_ARRAY_LEN(units); i++) {
		if (strcmp(units[i].unit, text + digits) != 0)
			continue;
		if (__builtin_mul_overflow(n, units[i].ns, &n) || n > delay_max_ns)
			return -EINVAL;
		*ret_ns = n;
		return 0;
	}
	return -EINVAL;
}

int soft_fault_value_time(char *value, struct soft_fault_spec *spec)
{
	return parse_time(value, &spec->number);
}

int soft_fault_value_delay(char *value, struct soft_fault_spec *spec)
{
	char *which = strchr(value, ':'), *scatter;
	char none[] = "";

	if (which)
		*which++ = '\0';
	scatter = strchr(value, '~');
	if (scatter)
		*scatter++ = '\0';
	if (parse_time(value, &spec->number) || (scatter && parse_time(scatter, &spec->more)))
		return -EINVAL;
	return soft_fault_which_parse(which ? which : none, &spec->which);
}

int soft_fault_value_address(char *value, struct soft_fault_spec *spec)
{
	struct soft_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	spec->all = !strcmp(value, "all");
	if (!spec->all && inet_pton(AF_INET, value, gid.raw + 12) != 1 &&
	    inet_pton(AF_INET6, value, gid.raw) != 1)
		return -EINVAL;
	spec->address = gid;
	return 0;
}

int soft_fault_value_bandwidth(char *value, struct soft_fault_spec *spec)
{
	static const struct {
		char unit;
		uint64_t factor;
	} units[] = {{'k', 1000}, {'M', 1000000}, {'G', 1000000000}};
	size_t len = strlen(value);
	uint64_t factor = 1, n;

	for (size_t i = 0; i < PP_ARRAY_LEN(units) && len && factor == 1; i++) {
		if (value[len - 1] != units[i].unit)
			continue;
		factor = units[i].factor;
		value[len - 1] = '\0';
	}
	/* Slower is no wire, faster is none of this device's. */
	if (pp_parse_u64(value, 1, bandwidth_max, &n) || __builtin_mul_overflow(n, factor, &n) ||
	    n < BANDWIDTH_MIN || n > bandwidth_max)
		return -EINVAL;
	spec->number = n;
	return 0;
}

int soft_fault_value_seed(char *value, struct soft_fault_spec *spec)
{
	return pp_parse_u64(value, 0, UINT64_MAX, &spec->number);
}

int soft_fault_value_port(char *value, struct soft_fault_spec *spec)
{
	if (strcmp(value, "down") != 0 && strcmp(value, "up") != 0)
		return -EINVAL;
	spec->number = !strcmp(value, "down");
	return 0;
}

int soft_fault_value_gid(char *value, struct soft_fault_spec *spec)
{
	char *second = strchr(value, ':');
	bool off, on;

	if (!second)
		return -EINVAL;
	*second++ = '\0';
	off = !strcmp(value, "off");
	on = !strcmp(value, "on");
	if (pp_parse_u64(second, 0, GIDS_MAX - 1, &spec->number))
		return -EINVAL;
	spec->more = off ? UINT64_MAX : spec->number;
	return off || on ? 0 : pp_parse_u64(value, 0, GIDS_MAX - 1, &spec->more);
}

int soft_fault_value_qp(char *value, struct soft_fault_spec *spec)
{
	spec->all = !strcmp(value, "fatal");
	if (spec->all)
		return 0;
	if (strncmp(value, "fatal:", 6) != 0)
		return -EINVAL;
	value += 6;
	return !strncmp(value, "0x", 2) ? pp_parse_hex(value, 0xffffff, &spec->number)
					: pp_parse_u64(value, 0, 0xffffff, &spec->number);
}

int soft_fault_value_device(char *value, struct soft_fault_spec *spec)
{
	spec->number = 1;
	return strcmp(value, "removed") ? -EINVAL : 0;
}

int soft_fault_value_depth(char *value, struct soft_fault_spec *spec)
{
	return pp_parse_u64(value, 1, DEPTH_MAX, &spec->number);
}
