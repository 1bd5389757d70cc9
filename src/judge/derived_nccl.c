/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lines of several NCCL processes say together: a setting that is not the same in all of
 * them, a driver older than the build, and nccl-tests that ran as many times as it has processes.
 */
#include "judge/derived_measured.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/find.h"
#include "base/banned.h"

static const char *const watched[] = {"set by environment to", "cudadriverversion", "# nthread ",
				      "# avg bus bandwidth",   "nccl failure",	    "cuda failure"};

/*
 * Settings that all ranks must share. Names of interfaces, devices and files may differ between
 * nodes, and what tunes one node's side of a connection does no harm.
 */
static const char *const shared[] = {"NCCL_ALGO",
				     "NCCL_PROTO",
				     "NCCL_BUFFSIZE",
				     "NCCL_LL_BUFFSIZE",
				     "NCCL_LL128_BUFFSIZE",
				     "NCCL_NTHREADS",
				     "NCCL_MIN_NCHANNELS",
				     "NCCL_MAX_NCHANNELS",
				     "NCCL_MIN_CTAS",
				     "NCCL_MAX_CTAS",
				     "NCCL_P2P_LEVEL",
				     "NCCL_P2P_DISABLE",
				     "NCCL_SHM_DISABLE",
				     "NCCL_NET",
				     "NCCL_NET_GDR_LEVEL",
				     "NCCL_NET_GDR_READ",
				     "NCCL_IB_DISABLE",
				     "NCCL_CROSS_NIC",
				     "NCCL_NVLS_ENABLE",
				     "NCCL_COLLNET_ENABLE",
				     "NCCL_P2P_NET_CHUNKSIZE",
				     "NCCL_PXN_DISABLE",
				     "NCCL_CUMEM_ENABLE",
				     "NCCL_MNNVL_ENABLE",
				     "NCCL_SOCKET_FAMILY",
				     "NCCL_NET_PLUGIN",
				     "NCCL_RUNTIME_CONNECT"};

const char *pp_derived_nccl_word(unsigned int i)
{
	return i < PP_ARRAY_LEN(watched) ? watched[i] : NULL;
}

static void copy_word(const char *at, const char *end, char *ret, size_t size)
{
	size_t n = 0;

	while (at + n < end && n + 1 < size && !isspace((unsigned char)at[n]))
		n++;
	memcpy(ret, at, n);
	while (n && (ret[n - 1] == '.' || ret[n - 1] == ','))
		n--;
	ret[n] = '\0';
}

static int find_shared(const char *name)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(shared); i++)
		if (!strcmp(shared[i], name))
			return (int)i;
	return -1;
}

/* "host:pid:tid [0] NCCL INFO NCCL_ALGO set by environment to Ring" */
static void read_setting(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	static const char mark[] = "NCCL INFO ";
	const char *info = pp_find(text, len, mark, sizeof(mark) - 1), *end = text + len;
	const char *at = pp_derived_behind(text, len, "set by environment to ");
	char name[32], value[PP_DERIVED_VALUE], process[PP_DERIVED_PROCESS];
	struct pp_derived_setting *s;
	int i;

	if (!info || !at || at < info)
		return;
	copy_word(info + sizeof(mark) - 1, end, name, sizeof(name));
	copy_word(at, end, value, sizeof(value));
	copy_word(text, info, process, sizeof(process));
	i = find_shared(name);
	if (i < 0 || !value[0] || !strchr(process, ':'))
		return;
	s = &d->settings[i];
	if (!s->value[0]) {
		memcpy(s->value, value, sizeof(value));
		memcpy(s->process, process, sizeof(process));
		return;
	}
	if (strcmp(s->value, value) != 0 && strcmp(s->process, process) != 0)
		pp_derived_say(d, PP_DERIVED_SETTING, line,
			       "peerpath: %s differs between processes: %s and %s", name, s->value,
			       value);
}

/* 11000 is CUDA 11.0; "+cuda11.7" is what NCCL was built with. */
static void read_driver(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	const char *driver = pp_derived_behind(text, len, "cudaDriverVersion "), *end = text + len;
	const char *build = pp_derived_behind(text, len, "+cuda");
	int64_t major, minor = 0, value;

	if (driver && !d->driver) {
		value = pp_derived_number(&driver, end);
		if (value >= 9000 && value < 100000)
			d->driver = value / 10;
	}
	if (build && build < end && isdigit((unsigned char)*build) && !d->built) {
		major = pp_derived_number(&build, end);
		if (build < end && *build == '.')
			minor = pp_derived_number(&build, end);
		if (major >= 9 && major < 100 && minor >= 0 && minor < 10)
			d->built = major * 100 + minor;
	}
	if (!d->driver || !d->built || d->driver >= d->built)
		return;
	pp_derived_say(d, PP_DERIVED_DRIVER, line,
		       "peerpath: the driver knows CUDA %" PRId64 ".%" PRId64
		       " only, NCCL was built with %s: %" PRId64 ".%" PRId64,
		       d->driver / 100, d->driver % 100,
		       d->driver / 100 < d->built / 100 ? "the next generation"
							: "a later release of it",
		       d->built / 100, d->built % 100);
}

static void say_alone(struct pp_derived *d, uint64_t line)
{
	pp_derived_say(d, PP_DERIVED_ALONE, line,
		       "peerpath: nccl-tests ran several times side by side, each process alone");
}

/*
 * Only rank 0 prints the header: a second one before the results is of a second job. Before the
 * first one's list of ranks it is of one that runs beside it, whatever follows.
 */
static void read_tests(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	if (pp_derived_behind(text, len, "# nThread ")) {
		if (d->tests_open && !d->tests_listed)
			say_alone(d, line);
		d->tests_open++;
		d->tests_line = line;
		d->tests_listed = false;
	} else if (pp_derived_behind(text, len, "#  Rank ")) {
		d->tests_listed = true;
	} else if (pp_derived_behind(text, len, "# Avg bus bandwidth")) {
		if (d->tests_open > 1)
			say_alone(d, d->tests_line);
		d->tests_open = 0;
	} else if (pp_derived_behind(text, len, "failure")) {
		d->tests_open = 0;
	}
}

void pp_derived_read_nccl(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	read_setting(d, text, len, line);
	read_driver(d, text, len, line);
	read_tests(d, text, len, line);
}
