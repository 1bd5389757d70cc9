/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/fault/spec.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/near.h"
#include "base/parse.h"
#include "soft/fault/value.h"
#include "base/banned.h"

static const char errors[] = "an errno, by name or number: ENOMEM, 524";
static const char packets[] =
	"a share (1%, 250ppm), or packets (any, ack, nak, rnr, send, write_last...)";
static const char span[] = "a time: 5ms, 200us, with ~2ms of scatter";
static const char address[] = "all, or an address";

static const struct {
	const char *name;
	soft_fault_value *value;
	const char *takes;
	bool counted; /* has a WHEN */
	bool final;   /* what it did is not taken away */
} nouns[] = {
	[SOFT_FAULT_OPEN_DEVICE] = {"open_device", soft_fault_value_error, errors, true},
	[SOFT_FAULT_ALLOC_PD] = {"alloc_pd", soft_fault_value_error, errors, true},
	[SOFT_FAULT_REG_MR] = {"reg_mr", soft_fault_value_error, errors, true},
	[SOFT_FAULT_REG_DMABUF_MR] = {"reg_dmabuf_mr", soft_fault_value_error, errors, true},
	[SOFT_FAULT_ALLOC_MW] = {"alloc_mw", soft_fault_value_error, errors, true},
	[SOFT_FAULT_CREATE_CQ] = {"create_cq", soft_fault_value_error, errors, true},
	[SOFT_FAULT_CREATE_SRQ] = {"create_srq", soft_fault_value_error, errors, true},
	[SOFT_FAULT_CREATE_QP] = {"create_qp", soft_fault_value_error, errors, true},
	[SOFT_FAULT_CREATE_AH] = {"create_ah", soft_fault_value_error, errors, true},
	[SOFT_FAULT_MODIFY_QP] = {"modify_qp", soft_fault_value_error, errors, true},
	[SOFT_FAULT_MODIFY_QP_RESET] = {"modify_qp_reset", soft_fault_value_error, errors, true},
	[SOFT_FAULT_MODIFY_QP_INIT] = {"modify_qp_init", soft_fault_value_error, errors, true},
	[SOFT_FAULT_MODIFY_QP_RTR] = {"modify_qp_rtr", soft_fault_value_error, errors, true},
	[SOFT_FAULT_MODIFY_QP_RTS] = {"modify_qp_rts", soft_fault_value_error, errors, true},
	[SOFT_FAULT_MODIFY_QP_SQD] = {"modify_qp_sqd", soft_fault_value_error, errors, true},
	[SOFT_FAULT_MODIFY_QP_SQE] = {"modify_qp_sqe", soft_fault_value_error, errors, true},
	[SOFT_FAULT_MODIFY_QP_ERR] = {"modify_qp_err", soft_fault_value_error, errors, true},
	[SOFT_FAULT_POST_SEND] = {"post_send", soft_fault_value_error, errors, true},
	[SOFT_FAULT_POST_RECV] = {"post_recv", soft_fault_value_error, errors, true},
	[SOFT_FAULT_LOSS] = {"loss", soft_fault_value_packets, packets, true},
	[SOFT_FAULT_DUPLICATE] = {"duplicate", soft_fault_value_packets, packets, true},
	[SOFT_FAULT_REORDER] = {"reorder", soft_fault_value_packets, packets, true},
	[SOFT_FAULT_CORRUPT] = {"corrupt", soft_fault_value_packets, packets, true},
	[SOFT_FAULT_ECN] = {"ecn", soft_fault_value_packets, packets, true},
	[SOFT_FAULT_DELAY] = {"delay", soft_fault_value_delay, span, true},
	[SOFT_FAULT_SPOIL] = {"spoil", soft_fault_value_packets, packets, true},
	[SOFT_FAULT_PARTITION] = {"partition", soft_fault_value_address, address, false},
	[SOFT_FAULT_PARTITION_IN] = {"partition_in", soft_fault_value_address, address, false},
	[SOFT_FAULT_PARTITION_OUT] = {"partition_out", soft_fault_value_address, address, false},
	[SOFT_FAULT_BANDWIDTH] = {"bandwidth", soft_fault_value_bandwidth,
				  "bits a second: 100M, 2G", false},
	[SOFT_FAULT_SEED] = {"seed", soft_fault_value_seed, "a number", false},
	[SOFT_FAULT_PORT] = {"port", soft_fault_value_port, "down or up", false},
	[SOFT_FAULT_GID] = {"gid", soft_fault_value_gid,
			    "off:INDEX, on:INDEX, or INDEX:INDEX for two that change places",
			    false},
	[SOFT_FAULT_QP] = {"qp", soft_fault_value_qp, "fatal, or fatal:NUMBER", .final = true},
	[SOFT_FAULT_DEVICE] = {"device", soft_fault_value_device, "removed", .final = true},
	[SOFT_FAULT_CQ_DELAY] = {"cq_delay", soft_fault_value_time, "a time: 5ms, 200us", false},
	[SOFT_FAULT_CQ_DEPTH] = {"cq_depth", soft_fault_value_depth, "a number of completions",
				 false},
};
_Static_assert(PP_ARRAY_LEN(nouns) == SOFT_FAULT_NOUNS, "a row for each noun");

const char *soft_fault_noun_name(enum soft_fault_noun noun)
{
	return nouns[noun].name;
}

static int find(const char *name, enum soft_fault_noun *ret, struct pp_error *err)
{
	struct pp_near near = PP_NEAR(name);

	for (unsigned int i = 0; i < SOFT_FAULT_NOUNS; i++) {
		if (!strcmp(nouns[i].name, name)) {
			*ret = i;
			return 0;
		}
		pp_near_offer(&near, nouns[i].name);
	}
	return pp_error_set(err, -EINVAL, "no fault \"%s\"%s%s%s", name,
			    near.best ? "; is it " : "", near.best ? near.best : "",
			    near.best ? "?" : "");
}

/* The value in front of the first "@", and what follows that into @spec->when. */
static int parse_when(char *whens, struct soft_fault_spec *spec, struct pp_error *err)
{
	char *part;

	if (whens && !nouns[spec->noun].counted)
		return pp_error_set(err, -EINVAL, "%s: %s= has no \"@\"", spec->text,
				    nouns[spec->noun].name);
	while ((part = strsep(&whens, "@"))) {
		int r = soft_fault_when_parse(part, &spec->when);

		if (r == -EEXIST)
			return pp_error_set(err, -EINVAL, "%s: \"@%s\" says twice which",
					    spec->text, part);
		if (r)
			return pp_error_set(err, -EINVAL,
					    "%s: \"@%s\" is neither N, N..M, N.., /N nor P%%",
					    spec->text, part);
	}
	return 0;
}

static int parse_value(char *value, struct soft_fault_spec *spec, struct pp_error *err)
{
	char *whens = strchr(value, '@');
	int r;

	if (!strcmp(value, "off")) {
		if (nouns[spec->noun].final)
			return pp_error_set(err, -EINVAL, "%s=off: what it did stays",
					    nouns[spec->noun].name);
		spec->off = true;
		return 0;
	}
	if (whens)
		*whens++ = '\0';
	r = nouns[spec->noun].value(value, spec);
	if (r)
		return pp_error_set(err, -EINVAL, "%s: not %s", spec->text,
				    nouns[spec->noun].takes);
	return parse_when(whens, spec, err);
}

int soft_fault_spec_parse(const char *text, struct soft_fault_spec *ret, struct pp_error *err)
{
	struct soft_fault_spec spec = {.when = soft_fault_when_all};
	size_t len = strlen(text);
	char copy[SOFT_FAULT_TEXT_MAX], *equals;
	int r;

	if (len >= sizeof(copy) || !pp_is_text(text, len) || strpbrk(text, " \t\"\\"))
		return pp_error_set(err, -EINVAL, "not a fault: longer than %zu bytes, or with %s",
				    sizeof(copy) - 1, "blanks, quotes or control bytes");
	memcpy(spec.text, text, len + 1);
	memcpy(copy, text, len + 1);
	equals = strchr(copy, '=');
	if (!equals)
		return pp_error_set(err, -EINVAL, "\"%s\" has no \"=\"", text);
	*equals = '\0';
	r = find(copy, &spec.noun, err);
	if (!r)
		r = parse_value(equals + 1, &spec, err);
	if (!r)
		*ret = spec;
	return r;
}

int soft_fault_specs_parse(const char *text,
			   int (*each)(void *arg, const struct soft_fault_spec *spec,
				       struct pp_error *err),
			   void *arg, struct pp_error *err)
{
	const char *at = text;
	int r = 0;

	while (!r && *(at += strspn(at, " \t"))) {
		size_t len = strcspn(at, " \t");
		char word[SOFT_FAULT_TEXT_MAX];
		struct soft_fault_spec spec;

		if (len >= sizeof(word))
			return pp_error_set(err, -EINVAL, "a fault of more than %zu bytes",
					    sizeof(word) - 1);
		memcpy(word, at, len);
		word[len] = '\0';
		at += len;
		r = soft_fault_spec_parse(word, &spec, err);
		if (!r)
			r = each(arg, &spec, err);
	}
	return r;
}
