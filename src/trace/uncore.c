/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the kernel's description of a PMU to perf_event_attr. Events whose unit the kernel does not
 * tell are taken only where the vendor says what one count is.
 */
#include "trace/uncore.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { TEXT_BYTES = 256 };

static const char DEVICES[] = "/sys/bus/event_source/devices";
static const double MIB = 1048576;

/*
 * Events by the beginning of their names. Intel's memory controllers and free-running counters
 * have them in sysfs with .scale and .unit "MiB" (arch/x86/events/intel/uncore_snbep.c,
 * uncore_snb.c); AMD's have none there: event 0x0a is a CAS command of 64 bytes, rdwrmask 1 reads
 * and 2 writes (tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json).
 */
static const struct known {
	const char *pmu;   /* the beginning of its name */
	const char *event; /* the beginning of the file's name; NULL: @terms, @bytes */
	const char *terms;
	double bytes;
	enum pp_uncore_kind kind;
} known[] = {
	{"uncore_imc", "cas_count_read", NULL, 0, PP_UNCORE_MEMORY_READ},
	{"uncore_imc", "cas_count_write", NULL, 0, PP_UNCORE_MEMORY_WRITE},
	{"uncore_imc", "data_read", NULL, 0, PP_UNCORE_MEMORY_READ},
	{"uncore_imc", "data_write", NULL, 0, PP_UNCORE_MEMORY_WRITE},
	{"amd_umc", NULL, "event=0x0a,rdwrmask=0x1", 64, PP_UNCORE_MEMORY_READ},
	{"amd_umc", NULL, "event=0x0a,rdwrmask=0x2", 64, PP_UNCORE_MEMORY_WRITE},
	{"uncore_iio_free_running", "bw_in_", NULL, 0, PP_UNCORE_IO_IN},
	{"uncore_iio_free_running", "bw_out_", NULL, 0, PP_UNCORE_IO_OUT},
};

/* "config:0-7,21": the next bits of @value go there. */
static int spread(const char *format, uint64_t value, uint64_t config[3])
{
	static const char *const words[] = {"config", "config1", "config2"};
	size_t len = strcspn(format, ":"), which;
	const char *at;

	for (which = 0; which < PP_ARRAY_LEN(words); which++)
		if (strlen(words[which]) == len && !memcmp(words[which], format, len))
			break;
	if (which == PP_ARRAY_LEN(words) || format[len] != ':')
		return -EBADMSG;
	for (at = format + len + 1; *at; at += *at == ',') {
		char range[32], *dash;
		uint64_t low, high;
		size_t n = strcspn(at, ",");

		if (!n || n >= sizeof(range))
			return -EBADMSG;
		memcpy(range, at, n);
		range[n] = '\0';
		dash = strchr(range, '-');
		if (dash)
			*dash++ = '\0';
		if (pp_parse_u64(range, 0, 63, &low) ||
		    pp_parse_u64(dash ? dash : range, low, 63, &high))
			return -EBADMSG;
		for (uint64_t bit = low; bit <= high; bit++, value >>= 1)
			config[which] |= (value & 1) << bit;
		at += n;
	}
	return value ? -EBADMSG : 0; /* does not fit */
}

int pp_uncore_encode(struct pp_source *s, const char *format, const char *event,
		     uint64_t ret_config[3])
{
	char text[TEXT_BYTES], path[PP_PATH_MAX], bits[TEXT_BYTES], *save = text, *term;
	uint64_t config[3] = {0};

	if (strlen(event) >= sizeof(text))
		return -EBADMSG;
	(void)snprintf(text, sizeof(text), "%s", event);
	while ((term = strsep(&save, ","))) {
		char *number = strchr(term, '=');
		uint64_t value = 1;

		if (number) {
			*number++ = '\0';
			if (strncmp(number, "0x", 2) ? pp_parse_u64(number, 0, UINT64_MAX, &value)
						     : pp_parse_hex(number, UINT64_MAX, &value))
				return -EBADMSG;
		}
		if (!*term || strchr(term, '/') || pp_path_join(format, term, path) ||
		    pp_source_text(s, path, bits, sizeof(bits)) || spread(bits, value, config))
			return -EBADMSG;
	}
	memcpy(ret_config, config, sizeof(config));
	return 0;
}

/* "0-1,28": the cpus that count for a whole socket each. */
static unsigned int cpumask(struct pp_source *s, const char *dir, int cpu[PP_UNCORE_CPUS])
{
	char path[PP_PATH_MAX], text[TEXT_BYTES], *save = text, *range, *dash;
	unsigned int n = 0;
	uint64_t low, high;

	if (pp_path_join(dir, "cpumask", path) || pp_source_text(s, path, text, sizeof(text)))
		return 0;
	while ((range = strsep(&save, ","))) {
		dash = strchr(range, '-');
		if (dash)
			*dash++ = '\0';
		if (pp_parse_u64(range, 0, INT16_MAX, &low) ||
		    pp_parse_u64(dash ? dash : range, low, INT16_MAX, &high))
			return 0;
		for (; low <= high && n < PP_UNCORE_CPUS; low++)
			cpu[n++] = (int)low;
	}
	return n;
}

/* Bytes of one count, by the files EVENT.scale and EVENT.unit; 0 when they do not say. */
static double unit_of(struct pp_source *s, const char *event_path)
{
	char path[PP_PATH_MAX], text[TEXT_BYTES], *end;
	double scale;

	if ((size_t)snprintf(path, sizeof(path), "%s.unit", event_path) >= sizeof(path) ||
	    pp_source_text(s, path, text, sizeof(text)) || strcmp(text, "MiB") != 0)
		return 0;
	if ((size_t)snprintf(path, sizeof(path), "%s.scale", event_path) >= sizeof(path) ||
	    pp_source_text(s, path, text, sizeof(text)))
		return 0;
	scale = strtod(text, &end);
	return end != text && !*end && isfinite(scale) && scale > 0 ? scale * MIB : 0;
}

struct pmu {
	struct pp_source *src;
	char dir[PP_PATH_MAX], format[PP_PATH_MAX];
	uint32_t type;
	int cpu[PP_UNCORE_CPUS];
	unsigned int cpus;
	struct pp_uncore *into;
};

static void add(const struct pmu *p, const struct known *k, const char *terms, double bytes)
{
	struct pp_uncore_counter one = {.kind = k->kind, .type = p->type, .bytes = bytes, .fd = -1};

	if (!(bytes > 0) || pp_uncore_encode(p->src, p->format, terms, one.config))
		return;
	for (unsigned int i = 0; i < p->cpus && p->into->n < PP_UNCORE_COUNTERS; i++) {
		one.cpu = p->cpu[i];
		p->into->one[p->into->n++] = one;
	}
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void add_listed(const struct pmu *p, const struct known *k)
{
	char dir[PP_PATH_MAX], path[PP_PATH_MAX], terms[TEXT_BYTES];
	struct pp_names names;

	if (pp_path_join(p->dir, "events", dir) || pp_source_list(p->src, dir, &names))
		return;
	for (size_t i = 0; i < names.n; i++)
		if (begins(names.name[i], k->event) && !strchr(names.name[i], '.') &&
		    !pp_path_join(dir, names.name[i], path) &&
		    !pp_source_text(p->src, path, terms, sizeof(terms)))
			add(p, k, terms, unit_of(p->src, path));
	pp_names_done(&names);
}

static void look_at(struct pp_source *s, const char *name, struct pp_uncore *into)
{
	struct pmu p = {.src = s, .into = into};
	char path[PP_PATH_MAX], text[TEXT_BYTES];
	uint64_t type;

	if (pp_path_join(DEVICES, name, p.dir) || pp_path_join(p.dir, "format", p.format) ||
	    pp_path_join(p.dir, "type", path) || pp_source_text(s, path, text, sizeof(text)) ||
	    pp_parse_u64(text, 0, UINT32_MAX, &type))
		return;
	p.type = (uint32_t)type;
	p.cpus = cpumask(s, p.dir, p.cpu);
	for (size_t i = 0; i < PP_ARRAY_LEN(known); i++) {
		if (!begins(name, known[i].pmu))
			continue;
		if (known[i].event)
			add_listed(&p, &known[i]);
		else
			add(&p, &known[i], known[i].terms, known[i].bytes);
	}
}

int pp_uncore_find(struct pp_source *s, struct pp_uncore *ret, struct pp_error *err)
{
	struct pp_names names;
	int r = pp_source_list(s, DEVICES, &names);

	ret->n = 0;
	if (r)
		return pp_error_set(err, r, "%s: %s", DEVICES, pp_source_why(r));
	for (size_t i = 0; i < names.n; i++)
		look_at(s, names.name[i], ret);
	pp_names_done(&names);
	if (!ret->n)
		return pp_error_set(err, -ENOENT,
				    "the kernel shows no counters of memory controllers or I/O "
				    "stacks (a virtual machine has none)");
	return 0;
}
