/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes are read by memcpy(), so that bytes at any address and of any content are safe.
 */
#include "node/dcb.h"

#include <errno.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <string.h>

#include "base/banned.h"

/* Of Linux 6.3; older headers lack it. */
enum { APP_TRUST_TABLE = 11 };

struct walk {
	const uint8_t *p;
	size_t left;
};

struct attribute {
	unsigned int type;
	const uint8_t *payload;
	size_t len;
};

/* 1 and the next attribute, 0 at the end, -EBADMSG. */
static int next(struct walk *w, struct attribute *ret)
{
	struct nlattr head;
	size_t step;

	if (!w->left)
		return 0;
	if (w->left < sizeof(head))
		return -EBADMSG;
	memcpy(&head, w->p, sizeof(head));
	if (head.nla_len < sizeof(head) || head.nla_len > w->left)
		return -EBADMSG;
	*ret = (struct attribute){.type = head.nla_type & NLA_TYPE_MASK,
				  .payload = w->p + sizeof(head),
				  .len = head.nla_len - sizeof(head)};
	step = NLA_ALIGN((size_t)head.nla_len);
	/* The last attribute may lack its padding. */
	if (step > w->left)
		step = w->left;
	w->p += step;
	w->left -= step;
	return 1;
}

static int parse_apps(const struct attribute *table, struct pp_dcb *dcb)
{
	struct walk w = {.p = table->payload, .left = table->len};
	struct attribute a;
	struct dcb_app app;
	int r;

	while ((r = next(&w, &a)) > 0) {
		if (a.type != DCB_ATTR_IEEE_APP)
			continue;
		if (a.len < sizeof(app))
			return -EBADMSG;
		memcpy(&app, a.payload, sizeof(app));
		dcb->dscp_apps += app.selector == IEEE_8021QAZ_APP_SEL_DSCP;
	}
	dcb->has_apps = true;
	return r;
}

static int parse_trust(const struct attribute *table, struct pp_dcb *dcb)
{
	struct walk w = {.p = table->payload, .left = table->len};
	struct attribute a;
	int r;

	while ((r = next(&w, &a)) > 0) {
		if (a.len < 1)
			return -EBADMSG;
		if (dcb->n_trust < PP_DCB_SELECTORS)
			dcb->trust[dcb->n_trust++] = a.payload[0];
	}
	dcb->has_trust = true;
	return r;
}

static int parse_ets(const struct attribute *a, struct pp_dcb *dcb)
{
	struct ieee_ets ets;

	if (a->len < sizeof(ets))
		return -EBADMSG;
	memcpy(&ets, a->payload, sizeof(ets));
	memcpy(dcb->prio_tc, ets.prio_tc, sizeof(dcb->prio_tc));
	dcb->has_ets = true;
	return 0;
}

static int parse_pfc(const struct attribute *a, struct pp_dcb *dcb)
{
	/* Only the start is read: the kernel's structure may grow at its end. */
	if (a->len < offsetof(struct ieee_pfc, mbc))
		return -EBADMSG;
	dcb->pfc_enabled = a->payload[offsetof(struct ieee_pfc, pfc_en)];
	dcb->has_pfc = true;
	return 0;
}

static int parse_ieee(const struct attribute *nest, struct pp_dcb *dcb)
{
	struct walk w = {.p = nest->payload, .left = nest->len};
	struct attribute a;
	int r = 0, more;

	while (!r && (more = next(&w, &a)) != 0) {
		if (more < 0)
			return more;
		switch (a.type) {
		case DCB_ATTR_IEEE_ETS:
			r = parse_ets(&a, dcb);
			break;
		case DCB_ATTR_IEEE_PFC:
			r = parse_pfc(&a, dcb);
			break;
		case DCB_ATTR_IEEE_APP_TABLE:
			r = parse_apps(&a, dcb);
			break;
		case APP_TRUST_TABLE:
			r = parse_trust(&a, dcb);
			break;
		default:
			break;
		}
	}
	return r;
}

int pp_dcb_parse(const void *attributes, size_t len, struct pp_dcb *ret)
{
	struct walk w = {.p = attributes, .left = len};
	struct pp_dcb dcb = {0};
	struct attribute a;
	int r;

	while ((r = next(&w, &a)) > 0) {
		if (a.type != DCB_ATTR_IEEE)
			continue;
		r = parse_ieee(&a, &dcb);
		if (r)
			return r;
	}
	if (r)
		return r;
	*ret = dcb;
	return 0;
}
