/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line to its fields: numbers behind the words that announce them, names with known prefixes.
 */
#include "judge/field_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/find.h"
#include "base/banned.h"

/* A line while it is read: in lower case beside the original. */
struct line {
	const char *text, *lower;
	size_t len, lower_len;
	struct pp_fields *ret;
};

static void add_number(struct pp_fields *f, enum pp_field which, int64_t value)
{
	for (unsigned int i = 0; i < f->n[which]; i++)
		if (f->numbers[which][i] == value)
			return;
	if (f->n[which] < PP_FIELD_NUMBERS)
		f->numbers[which][f->n[which]++] = value;
}

void pp_fields_add_word(struct pp_fields *f, enum pp_field which, const char *word, size_t len)
{
	char *to;

	if (f->n[which] == PP_FIELD_WORDS || !len)
		return;
	if (len >= PP_FIELD_WORD)
		len = PP_FIELD_WORD - 1;
	to = f->words[which][f->n[which]++];
	memcpy(to, word, len);
	to[len] = '\0';
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Number at @p: decimal, with a sign, or 0x; -1 when there is none. */
static int64_t number_at(const char *p, const char *end)
{
	bool hex = end - p > 2 && p[0] == '0' && p[1] == 'x';
	int64_t value = 0;
	int n = 0, digit;

	if (hex)
		p += 2;
	else if (p < end && (*p == '-' || *p == '+'))
		p++;
	for (; p < end && n < 9; p++, n++) {
		digit = isdigit((unsigned char)*p)	     ? *p - '0'
			: hex && isxdigit((unsigned char)*p) ? tolower((unsigned char)*p) - 'a' + 10
							     : -1;
		if (digit < 0)
			break;
		value = value * (hex ? 16 : 10) + digit;
	}
	return n && (p == end || !is_name(*p)) ? value : -1;
}

/* "word", then at most two of " :=([" and "is", "with", "code", then a number. */
static int64_t number_behind(const struct line *l, const char *word)
{
	static const char *const between[] = {"code", "is",	"with",	 "err",
					      "no",   "number", "value", "status"};
	const char *end = l->lower + l->lower_len, *at = l->lower;
	size_t len = strlen(word);
	int64_t value;

	if (!pp_field_may_hold(l->ret, word))
		return -1;
	while ((at = pp_find(at, (size_t)(end - at), word, len))) {
		bool starts = at == l->lower || !is_name(at[-1]);

		at += len;
		if (!starts)
			continue;
		for (unsigned int round = 0; round < 3; round++) {
			while (at < end && strchr(" :=([#'\"", *at))
				at++;
			value = number_at(at, end);
			if (value >= 0)
				return value;
			for (size_t i = 0; i < PP_ARRAY_LEN(between); i++) {
				size_t n = strlen(between[i]);

				if ((size_t)(end - at) > n && !memcmp(at, between[i], n) &&
				    !isalnum((unsigned char)at[n]))
					at += n;
			}
		}
	}
	return -1;
}

static bool has(const struct line *l, const char *word)
{
	return pp_field_may_hold(l->ret, word) &&
	       pp_find(l->lower, l->lower_len, word, strlen(word)) != NULL;
}

static bool has_word(const struct line *l, const char *word)
{
	const char *end = l->lower + l->lower_len, *at = l->lower;
	size_t len = strlen(word);

	if (!pp_field_may_hold(l->ret, word))
		return false;
	while ((at = pp_find(at, (size_t)(end - at), word, len))) {
		if ((at == l->lower || !is_name(at[-1])) && (at + len == end || !is_name(at[len])))
			return true;
		at += len;
	}
	return false;
}

static bool speaks_of_completion(const struct line *l)
{
	return has(l, "completion") || has(l, "ibv_wc_") || has(l, "wc status") ||
	       has(l, "wc error") || has(l, "syndrom 0x") || has(l, "vend_err") ||
	       has(l, "vendor_err") || has(l, "vendor err") || has(l, "failed status") ||
	       has(l, "poll_cq") || has(l, "poll cq") || has(l, "wc.status") || has(l, "on wr");
}

static bool of_completion(const struct line *l)
{
	if (l->ret->of == PP_OF_UNKNOWN)
		l->ret->of = speaks_of_completion(l) ? PP_OF_COMPLETION : PP_OF_OTHER;
	return l->ret->of == PP_OF_COMPLETION;
}

static void read_status(const struct line *l)
{
	static const char *const words[] = {"status", "error", "wc status", "err"};
	char name[64];
	int64_t value;

	/* Every text of a status ends in "error" or "exceeded", every name in "_err". */
	for (size_t i = 1; (has(l, "err") || has(l, "exceeded")) && i < PP_STATUS_WORDS; i++) {
		size_t n = 0;

		for (; pp_status_words[i].name[n]; n++)
			name[n] = (char)tolower((unsigned char)pp_status_words[i].name[n]);
		name[n] = '\0';
		/* RETRY_EXC_ERR ends RNR_RETRY_EXC_ERR: only the prefix of the enumeration counts.
		 */
		if (has(l, pp_status_words[i].text)) {
			add_number(l->ret, PP_FIELD_STATUS, (int64_t)i);
		} else if (has(l, name)) {
			if (i == 12 && has(l, "rnr_retry_exc"))
				continue;
			add_number(l->ret, PP_FIELD_STATUS, (int64_t)i);
		}
	}
	value = pp_field_syndrome_status(number_behind(l, "synd"));
	if (value > 0)
		add_number(l->ret, PP_FIELD_STATUS, value);
	for (size_t i = 0; of_completion(l) && i < PP_ARRAY_LEN(words); i++) {
		if (l->ret->n[PP_FIELD_STATUS])
			return;
		value = number_behind(l, words[i]);
		if (value >= 0 && value < 32)
			add_number(l->ret, PP_FIELD_STATUS, value);
	}
}

static void read_vendor(const struct line *l)
{
	static const char *const words[] = {
		"vendor err", "vendor_err",	 "vendor error",    "vend_err", "vend",
		"syndrom",    "vendor_syndrome", "vendor syndrome", "vendor"};
	int64_t value;

	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++) {
		value = number_behind(l, words[i]);
		if (value < 0)
			continue;
		add_number(l->ret, PP_FIELD_VENDOR, value);
		return;
	}
}

static void read_errno(const struct line *l)
{
	static const char *const words[] = {"errno",  "error",	     "err",	  "rc",
					    "ret",    "return",	     "returned",  "status",
					    "failed", "failed with", "exit code", "result"};
	char name[32];
	int64_t value;

	for (size_t i = 0; i < PP_ERRNO_WORDS; i++) {
		const char *upper = pp_errno_words[i].name;
		size_t n = 0;

		for (; upper && upper[n]; n++)
			name[n] = (char)tolower((unsigned char)upper[n]);
		name[n] = '\0';
		if (has(l, pp_errno_words[i].text) || (n && has_word(l, name)))
			add_number(l->ret, PP_FIELD_ERRNO, pp_errno_words[i].code);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++) {
		if (i && of_completion(l))
			return;
		value = number_behind(l, words[i]);
		if (value > 0 && value <= 4095)
			add_number(l->ret, PP_FIELD_ERRNO, value);
	}
}

static void read_xid(const struct line *l)
{
	const char *end = l->lower + l->lower_len, *at = pp_find(l->lower, l->lower_len, "xid", 3);
	int64_t value;

	if (!at)
		return;
	at += 3;
	/* "Xid (PCI:0000:3b:00): 79", "Xid 79", "XID error: 79" */
	for (unsigned int i = 0; i < 3 && at < end; i++) {
		while (at < end && strchr(" :=,", *at))
			at++;
		if (at < end && *at == '(') {
			while (at < end && *at != ')')
				at++;
			at += at < end;
			continue;
		}
		value = number_at(at, end);
		if (value >= 0) {
			add_number(l->ret, PP_FIELD_XID, value);
			return;
		}
		while (at < end && isalpha((unsigned char)*at))
			at++;
	}
}

/* libibverbs' providers by the kernel driver that they go with. */
static void read_driver(const struct line *l)
{
	static const struct {
		const char *provider, *driver;
	} providers[] = {
		{"mlx5", "mlx5_core"},	  {"mlx4", "mlx4_core"},
		{"efa", "efa"},		  {"bnxt_re", "bnxt_en"},
		{"irdma", "ice"},	  {"i40iw", "i40e"},
		{"hns", "hns3"},	  {"erdma", "erdma"},
		{"ionic", "ionic"},	  {"cxgb4", "cxgb4"},
		{"qedr", "qede"},	  {"hfi1verbs", "hfi1"},
		{"ipathverbs", "ib_qib"}, {"mthca", "ib_mthca"},
		{"ocrdma", "be2net"},	  {"vmw_pvrdma", "vmw_pvrdma"},
		{"mana", "mana"},	  {"rxe", "rdma_rxe"},
		{"siw", "siw"},		  {"cxgb3", "cxgb3"},
		{"nes", "iw_nes"},	  {"usnic_verbs", "usnic_verbs"},
	};
	const char *end = l->lower + l->lower_len, *at = l->lower, *stop;

	while ((at = pp_find(at, (size_t)(end - at), "lib", 3))) {
		at += 3;
		for (stop = at; stop < end && is_name(*stop); stop++)
			;
		for (size_t i = 0; i < PP_ARRAY_LEN(providers); i++) {
			if (strlen(providers[i].provider) != (size_t)(stop - at) ||
			    memcmp(at, providers[i].provider, (size_t)(stop - at)) != 0)
				continue;
			pp_fields_add_word(l->ret, PP_FIELD_DRIVER, providers[i].driver,
					   strlen(providers[i].driver));
			return;
		}
	}
}

void pp_fields_begin(const char *text, size_t len, struct pp_fields *ret)
{
	size_t n = 0;
	char c;

	memset(ret->n, 0, sizeof(ret->n));
	memset(ret->grams, 0, sizeof(ret->grams));
	ret->done = 0;
	ret->of = PP_OF_UNKNOWN;
	ret->text = text;
	ret->len = len < PP_FIELD_LINE ? len : PP_FIELD_LINE;
	for (size_t i = 0; i < ret->len; i++) {
		c = text[i];
		c = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c >= '\t' && c <= '\r' ? ' ' : c;
		if (c == ' ' && n && ret->lower[n - 1] == ' ')
			continue;
		ret->lower[n++] = c;
		if (n > 2) {
			unsigned int g = pp_field_gram(&ret->lower[n - 3]);

			ret->grams[g / 64] |= (uint64_t)1 << (g % 64);
		}
	}
	ret->lower_len = n;
}

/* Calls and settings are read together. */
static void read_names(struct pp_fields *f)
{
	if (f->done & (1U << PP_FIELD_CALL))
		return;
	f->done |= 1U << PP_FIELD_CALL | 1U << PP_FIELD_ENV;
	pp_field_read_names(f);
}

void pp_fields_need(struct pp_fields *f, enum pp_field which)
{
	static void (*const readers[PP_FIELDS])(const struct line *l) = {
		[PP_FIELD_ERRNO] = read_errno,	 [PP_FIELD_STATUS] = read_status,
		[PP_FIELD_VENDOR] = read_vendor, [PP_FIELD_XID] = read_xid,
		[PP_FIELD_DRIVER] = read_driver,
	};
	struct line l = {f->text, f->lower, f->len, f->lower_len, f};

	if (f->done & (1U << which))
		return;
	if (which == PP_FIELD_CALL || which == PP_FIELD_ENV || which == PP_FIELD_OP)
		read_names(f);
	f->done |= 1U << which;
	if (readers[which])
		readers[which](&l);
	else if (which == PP_FIELD_OP)
		pp_field_read_operations(f);
	else if (which == PP_FIELD_PROVIDER)
		pp_field_read_providers(f);
}

void pp_fields_read(const char *text, size_t len, struct pp_fields *ret)
{
	pp_fields_begin(text, len, ret);
	for (unsigned int i = 0; i < PP_FIELDS; i++)
		pp_fields_need(ret, (enum pp_field)i);
}
