/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/derived_measured.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/find.h"
#include "base/banned.h"

enum { HOST, GPU };

/* Counters whose growth means loss; link_downed means a lost link. */
static const char *const counters[] = {
	"out_of_sequence", "packet_seq_err",   "local_ack_timeout_err",
	"rx_discards_phy", "roce_adp_retrans", "rnr_nak_retry_err",
	"link_downed"};

static const char *const watched[] = {
	"out_of_sequence", "packet_seq_err",	"local_ack_timeout_err",
	"rx_discards_phy", "roce_adp_retrans",	"rnr_nak_retry_err",
	"link_downed",	   "reg_mem_types",	"md supports:",
	"#bytes",	   "bw average",	"use_cuda",
	"gpu buffer",	   "initializing cuda", "cumemalloc",
	"reg_mr",	   "register"};

const char *pp_derived_measured_word(unsigned int i)
{
	return i < PP_ARRAY_LEN(watched) ? watched[i] : NULL;
}

/*
 * "... mem_type bit 0x2 ... (md reg_mem_types 0x3)", newer: "address 0x.. (cuda) length ... (md
 * supports: host|cuda)": with the kind in the list UCX has seen a peer-memory module (or DMA-BUF).
 */
static void read_ucx(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	const char *end = text + len, *bit = pp_derived_behind(text, len, "mem_type bit 0x"),
		   *types = pp_derived_behind(text, len, "md reg_mem_types 0x"),
		   *kind = pp_derived_behind(text, len, "("),
		   *list = pp_derived_behind(text, len, "md supports:");
	unsigned int n = 0;
	char word[24];

	if (bit && types && bit < end && types < end && isdigit((unsigned char)*bit)) {
		unsigned int one = (unsigned int)(*bit - '0'), all = 0;

		for (; types < end && isxdigit((unsigned char)*types); types++)
			all = all * 16 + (unsigned int)(isdigit((unsigned char)*types)
								? *types - '0'
								: (*types | 32) - 'a' + 10);
		pp_derived_say(d, PP_DERIVED_UCX, line,
			       "peerpath: UCX %s register this kind of memory",
			       one & all ? "can" : "can not");
		return;
	}
	if (!kind || !list)
		return;
	while (kind + n < end && n + 1 < sizeof(word) && isalpha((unsigned char)kind[n])) {
		word[n] = kind[n];
		n++;
	}
	word[n] = '\0';
	if (n >= 3)
		pp_derived_say(d, PP_DERIVED_UCX, line,
			       "peerpath: UCX %s register this kind of memory",
			       pp_find(list, (size_t)(end - list), word, n) ? "can" : "can not");
}

static void note_counter(struct pp_derived *d, const char *name, const char *key, int64_t value,
			 uint64_t line)
{
	bool link = !strcmp(name, "link_downed");

	for (unsigned int i = 0; i < d->n_counters; i++) {
		if (strcmp(d->counters[i].key, key) != 0)
			continue;
		if (value > d->counters[i].first)
			pp_derived_say(d, link ? PP_DERIVED_LINK : PP_DERIVED_COUNTER, line,
				       "peerpath: counter %s grew by %" PRId64, name,
				       value - d->counters[i].first);
		return;
	}
	if (d->n_counters == PP_DERIVED_COUNTERS)
		return;
	(void)snprintf(d->counters[d->n_counters].key, sizeof(d->counters[0].key), "%s", key);
	d->counters[d->n_counters++].first = value;
}

/*
 * A counter is the same one when the same stands before it: a path, a device. In a line of many
 * (rdma statistic) the first two words count.
 */
static void read_counters(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	const char *end = text + len, *at, *name;
	char key[sizeof(d->counters[0].key)];
	size_t head;
	int64_t value;

	for (size_t i = 0; i < PP_ARRAY_LEN(counters); i++) {
		at = pp_derived_behind(text, len, counters[i]);
		if (!at || (at < end && (isalnum((unsigned char)*at) || *at == '_')))
			continue;
		name = at - strlen(counters[i]);
		head = (size_t)(name - text);
		if (head > 5 && !memcmp(text, "link ", 5)) {
			const char *blank = memchr(text + 5, ' ', head - 5);

			head = blank ? (size_t)(blank - text) : head;
		}
		(void)snprintf(key, sizeof(key), "%.*s%s", head > 60 ? 60 : (int)head, text,
			       counters[i]);
		for (int n = 0; n < 2 && (value = pp_derived_number(&at, end)) >= 0; n++) {
			note_counter(d, counters[i], key, value, line);
			while (at < end && *at == ' ')
				at++;
			if (end - at < 2 || memcmp(at, "->", 2) != 0)
				break;
		}
	}
}

/* "96.51" without strtod: at most 9 digits before the point and 3 behind it; -1 none. */
static double decimal(const char **p, const char *end)
{
	double value = 0, unit = 0.1;
	int n = 0;

	while (*p < end && (**p == ' ' || **p == '\t'))
		(*p)++;
	for (; *p < end && isdigit((unsigned char)**p) && n < 9; (*p)++, n++)
		value = value * 10 + (**p - '0');
	if (!n)
		return -1;
	if (*p < end && **p == '.')
		for ((*p)++; *p < end && isdigit((unsigned char)**p); (*p)++, unit /= 10)
			value += unit * (**p - '0');
	return *p == end || isspace((unsigned char)**p) ? value : -1;
}

/* Two runs of perftest in one text, one with GPU memory: their average at the largest size. */
static void read_bandwidth(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	static const char *const gpu[] = {"use_cuda", "GPU buffer", "initializing CUDA",
					  "cuMemAlloc"};
	const char *end = text + len, *at = text;
	int64_t bytes;
	double average;
	int which;

	for (size_t i = 0; i < PP_ARRAY_LEN(gpu); i++)
		if (pp_find(text, len, gpu[i], strlen(gpu[i])))
			d->gpu_test = true;
	if (pp_find(text, len, "#bytes", 6)) {
		d->in_table = pp_find(text, len, "BW average", 10) != NULL;
		return;
	}
	if (!d->in_table)
		return;
	bytes = pp_derived_number(&at, end);
	if (bytes <= 0 || pp_derived_number(&at, end) <= 0 || decimal(&at, end) < 0 ||
	    (average = decimal(&at, end)) <= 0) {
		if (*text == '-') /* the rule below the table: the run is over */
			d->in_table = d->gpu_test = false;
		return;
	}
	which = d->gpu_test ? GPU : HOST;
	d->bytes[which] = bytes;
	d->average[which] = average;
	if (d->bytes[HOST] == d->bytes[GPU] && d->average[GPU] < 0.9 * d->average[HOST] &&
	    bytes >= 65536)
		pp_derived_say(d, PP_DERIVED_RATIO, line,
			       "peerpath: GPU bandwidth is %.2f of host bandwidth",
			       d->average[GPU] / d->average[HOST]);
}

/* A registration that failed, of more than a small BAR1 (256 MiB) can hold beside other things. */
static void read_region(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	static const char *const words[] = {"length", "size"};
	const char *end = text + len, *at;
	int64_t bytes;

	if (!pp_find(text, len, "reg", 3) ||
	    (!pp_find(text, len, "ailed", 5) && !pp_find(text, len, "rror", 4)))
		return;
	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++) {
		at = pp_derived_behind(text, len, words[i]);
		if (!at || at == end || !strchr(" :=", *at))
			continue;
		bytes = pp_derived_number(&at, end);
		if (bytes >= (int64_t)100 << 20)
			pp_derived_say(d, PP_DERIVED_LARGE, line,
				       "peerpath: a large region was refused: %" PRId64 " bytes",
				       bytes);
	}
}

void pp_derived_read_measured(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	read_ucx(d, text, len, line);
	read_counters(d, text, len, line);
	read_bandwidth(d, text, len, line);
	read_region(d, text, len, line);
}
