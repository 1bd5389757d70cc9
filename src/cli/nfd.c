/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nfd.h"

#include <ctype.h>
#include <errno.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/banned.h"

/* A file may have 64 KiB, a value 63 bytes (Kubernetes' labels). */
enum { MAX_FILE = 64 << 10, MAX_VALUE = 63, DIGEST_SHOWN = 16 };

static const pp_ns USUAL = 3600 * PP_SECOND, LONGEST = 366 * 24 * 3600 * PP_SECOND;

static int lifetime(const struct pp_args *args, pp_ns *ret)
{
	const char *text = pp_args_get(args, "nfd-expires");

	*ret = USUAL;
	return text && (pp_parse_duration(text, LONGEST, ret) || *ret < PP_SECOND) ? -EINVAL : 0;
}

int pp_nfd_check(const struct pp_args *args)
{
	pp_ns life;

	if (pp_args_has(args, "nfd-expires") && !pp_args_has(args, "nfd"))
		return pp_complain(args, PP_EXIT_USAGE, "--nfd-expires goes with --nfd");
	if (lifetime(args, &life))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--nfd-expires does not take '%s': a time such as 600 or 90m",
				   pp_args_get(args, "nfd-expires"));
	return 0;
}

static bool fits(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

/* A value begins and ends with a letter or a digit, and has few others between; "" is no value. */
static void label(struct pp_buf *b, const char *name, const char *text, size_t most)
{
	char value[MAX_VALUE + 1];
	size_t n = 0;

	while (text && *text && !isalnum((unsigned char)*text))
		text++;
	for (; text && *text && n < most && n < MAX_VALUE; text++)
		value[n++] = fits(*text) ? *text : '_';
	while (n > 0 && !isalnum((unsigned char)value[n - 1]))
		n--;
	if (n > 0)
		pp_buf_printf(b, "peerpath.io/%s=%.*s\n", name, (int)n, value);
}

static void fact_label(struct pp_buf *b, const struct pp_session *s, const char *name,
		       enum pp_fact_id id)
{
	const struct pp_fact *f = pp_fact_get(s->node->self, id);

	if (f && f->known)
		pp_buf_printf(b, "peerpath.io/%s=%lld\n", name, (long long)f->i64);
}

static void labels(struct pp_buf *b, const struct pp_session *s, const struct pp_proof *p)
{
	const struct pp_object *self = s->node->self;

	label(b, "gate-identity", pp_verdict_name(p->gates.row[PP_GATE_IDENTITY].verdict),
	      MAX_VALUE);
	label(b, "gate-prerequisites", pp_verdict_name(p->gates.row[PP_GATE_PREREQUISITES].verdict),
	      MAX_VALUE);
	fact_label(b, s, "gpus", PP_F_N_GPUS);
	fact_label(b, s, "gpus-with-near-hca", PP_F_NODE_CLOSE_PAIRS);
	fact_label(b, s, "hcas", PP_F_N_HCAS);
	label(b, "nvidia-flavour", pp_fact_str_or(self, PP_F_NVIDIA_FLAVOUR, NULL), MAX_VALUE);
	label(b, "rdma-stack", pp_fact_str_or(self, PP_F_RDMA_STACK, NULL), MAX_VALUE);
	label(b, "software-fingerprint", pp_fact_str_or(self, PP_F_SOFTWARE_FINGERPRINT, NULL),
	      DIGEST_SHOWN);
	label(b, "topology-class", pp_fact_str_or(self, PP_F_TOPOLOGY_CLASS, NULL), DIGEST_SHOWN);
}

int pp_nfd_write(const struct pp_args *args, const struct pp_session *s, const struct pp_proof *p)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(MAX_FILE);
	const char *file = pp_args_get(args, "nfd");
	char when[32], text[128];
	pp_ns life;
	int r;

	if (!file)
		return 0;
	(void)lifetime(args, &life);
	pp_buf_printf(&b, "# +expiry-time=%s\n",
		      pp_clock_format(pp_clock_wall() + life, when, sizeof(when)));
	label(&b, "verdict", pp_verdict_name(p ? p->gates.verdict : PP_UNKNOWN), MAX_VALUE);
	label(&b, "version", PEERPATH_VERSION, MAX_VALUE);
	if (p)
		labels(&b, s, p);
	/* Its reader need not be who writes it. */
	r = b.failed ? -ENOMEM : pp_file_replace(file, pp_buf_text(&b), b.len, 0644, 0);
	return r ? pp_complain(args, PP_EXIT_INTERNAL, "cannot write '%s': %s", file,
			       r == -ENOTSUP ? "no regular file"
					     : pp_errno_text(r, text, sizeof(text)))
		 : 0;
}
