/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a line says was attempted, and on whose device, in any tool's wording.
 *
 * "ibv_create_qp", "Couldn't create QP" and "failed to create queue pair" are one operation;
 * mlx5_0, libmlx5 and "ConnectX" are one provider. Both are words that need not stand in the line.
 */
#include "judge/field_words.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "base/find.h"
#include "base/banned.h"

enum { NEAR = 28 }; /* bytes between a verb and its noun */

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static void add(struct pp_fields *f, enum pp_field which, const char *word)
{
	for (unsigned int i = 0; i < f->n[which]; i++)
		if (!strcmp(f->words[which][i], word))
			return;
	pp_fields_add_word(f, which, word, strlen(word));
}

/* @word at the start of a word; short ones are whole words. */
static const char *find(const char *text, size_t len, const char *word)
{
	size_t n = strlen(word);
	const char *at = text, *end = text + len;

	while ((at = pp_find(at, (size_t)(end - at), word, n))) {
		bool whole = n > 3 || at + n == end || !is_name(at[n]) || at[n] == 's';

		if (whole && (at == text || !is_name(at[-1])))
			return at;
		at += n;
	}
	return NULL;
}

/* Pieces of function names; the first that fits counts. */
static const struct {
	const char *piece, *op;
} calls[] = {
	{"_dealloc_", "destroy"},
	{"_destroy_", "destroy"},
	{"_dereg_", "destroy"},
	{"reg_dmabuf", "reg_dmabuf"},
	{"umem_reg", "reg_umem"},
	{"reg_mr", "reg_mr"},
	{"RegMr", "reg_mr"},
	{"fi_mr_reg", "reg_mr"},
	{"create_cq", "create_cq"},
	{"create_cp", "create_cq"},
	{"create_qp", "create_qp"},
	{"create_srq", "create_srq"},
	{"create_ah", "create_ah"},
	{"modify_qp", "modify_qp"},
	{"open_device", "open_device"},
	{"alloc_pd", "alloc_pd"},
	{"query_gid", "query_gid"},
	{"query_port", "query_port"},
	{"query_device", "query_device"},
	{"post_send", "post"},
	{"post_recv", "post"},
	{"rdma_create_event_channel", "open_cm"},
	{"rdma_create_ep", "open_cm"},
	{"rdma_getaddrinfo", "resolve"},
	{"rdma_resolve", "resolve"},
	{"rdma_bind_addr", "resolve"},
	{"rdma_connect", "connect_cm"},
	{"fi_getinfo", "getinfo"},
	{"fi_domain", "getinfo"},
	{"fi_setopt", "setopt"},
	{"gdr_open", "gdr_open"},
	{"gdr_pin_buffer", "gdr_pin"},
};

static void read_calls(struct pp_fields *f)
{
	for (unsigned int i = 0; i < f->n[PP_FIELD_CALL]; i++) {
		for (size_t k = 0; k < PP_ARRAY_LEN(calls); k++) {
			if (!strstr(f->words[PP_FIELD_CALL][i], calls[k].piece))
				continue;
			add(f, PP_FIELD_OP, calls[k].op);
			break;
		}
	}
}

/* A verb and, not far behind it, a noun. */
static const struct {
	const char *verbs[5], *nouns[9], *op;
} phrases[] = {
	{{"creat", "alloc", "make", "open"}, {"completion queue", "cq"}, "create_cq"},
	{{"creat", "alloc", "make"}, {"queue pair", "qp", "queuepair"}, "create_qp"},
	{{"creat", "alloc"}, {"shared receive queue", "srq"}, "create_srq"},
	{{"creat", "alloc"}, {"address handle", "ah"}, "create_ah"},
	{{"alloc", "creat"}, {"protection domain", "pd"}, "alloc_pd"},
	{{"regist", "pin"},
	 {"mr", "mrs", "memory", "buffer", "region", "gpu", "cuda", "vram", "address"},
	 "reg_mr"},
	{{"alloc", "creat"}, {"mr", "memory region"}, "reg_mr"},
	{{"mr", "memory region", "memory"}, {"registration"}, "reg_mr"},
	{{"modif", "transition", "move", "chang"}, {"qp", "queue pair", "queuepair"}, "modify_qp"},
	{{"query", "get", "read"}, {"gid"}, "query_gid"},
	{{"query", "get"}, {"device attr"}, "query_device"},
	{{"query", "get"}, {"port attr", "port info"}, "query_port"},
	{{"query"}, {"port"}, "query_port"},
	{{"post"}, {"send", "recv", "receive"}, "post"},
	{{"resolv"}, {"address", "addr", "route"}, "resolve"},
	{{"open"},
	 {"ib device", "rdma device", "hca", "uverbs", "infiniband device", "roce device", "mlx5_"},
	 "open_device"},
};

static bool phrase_fits(size_t p, const struct pp_fields *f)
{
	const char *lower = f->lower, *end = lower + f->lower_len, *verb, *at;
	size_t room;

	for (size_t v = 0; v < PP_ARRAY_LEN(phrases[p].verbs) && phrases[p].verbs[v]; v++) {
		if (!pp_field_may_hold(f, phrases[p].verbs[v]))
			continue;
		for (at = lower; (verb = find(at, (size_t)(end - at), phrases[p].verbs[v]));) {
			at = verb + strlen(phrases[p].verbs[v]);
			while (at < end && is_name(*at))
				at++;
			room = (size_t)(end - at) < NEAR ? (size_t)(end - at) : NEAR;
			for (size_t n = 0; n < PP_ARRAY_LEN(phrases[p].nouns); n++)
				if (phrases[p].nouns[n] && find(at, room, phrases[p].nouns[n]))
					return true;
		}
	}
	return false;
}

void pp_field_read_operations(struct pp_fields *ret)
{
	static const char *const exported[] = {"dmabuf", "dma-buf", "dma_buf", "dma buf"};
	bool dmabuf = false;

	read_calls(ret);
	for (size_t i = 0; i < PP_ARRAY_LEN(phrases); i++)
		if (phrase_fits(i, ret))
			add(ret, PP_FIELD_OP, phrases[i].op);
	for (size_t i = 0; i < PP_ARRAY_LEN(exported); i++)
		dmabuf |= pp_field_may_hold(ret, exported[i]) &&
			  find(ret->lower, ret->lower_len, exported[i]) != NULL;
	for (unsigned int i = 0; dmabuf && i < ret->n[PP_FIELD_OP]; i++) {
		if (strcmp(ret->words[PP_FIELD_OP][i], "reg_mr") != 0)
			continue;
		add(ret, PP_FIELD_OP, "reg_dmabuf");
		break;
	}
}

/*
 * Starts of words by which a device or its library shows its maker. rdmap is udev's name for a
 * device that is neither InfiniBand, RoCE nor iWARP: EFA.
 */
static const struct {
	const char *start, *provider;
	bool numbered; /* a number follows: mlx5_0, rdmap79s0 */
} makers[] = {
	{"mlx5_", "mlx5", true},
	{"libmlx5", "mlx5", false},
	{"connectx", "mlx5", false},
	{"mlx4_", "mlx4", true},
	{"libmlx4", "mlx4", false},
	{"rdmap", "efa", true},
	{"efa_", "efa", true},
	{"efa", "efa", false},
	{"libefa", "efa", false},
	{"bnxt_re", "bnxt_re", false},
	{"libbnxt_re", "bnxt_re", false},
	{"broadcom", "bnxt_re", false},
	{"ionic", "ionic", false},
	{"libionic", "ionic", false},
	{"pensando", "ionic", false},
	{"erdma", "erdma", false},
	{"liberdma", "erdma", false},
	{"irdma", "irdma", false},
	{"libirdma", "irdma", false},
	{"i40iw", "irdma", false},
	{"hns_", "hns", true},
	{"xscale", "xscale", false},
	{"hfi1", "hfi1", false},
	{"omni-path", "hfi1", false},
	{"omnipath", "hfi1", false},
	{"mana_", "mana", true},
	{"qedr", "qedr", false},
	{"cxgb4", "cxgb4", false},
	{"rxe", "rxe", true},
	{"rdma_rxe", "rxe", false},
	{"soft-roce", "rxe", false},
	{"siw", "siw", true},
	{"softiwarp", "siw", false},
};

static bool maker_fits(size_t i, const char *at, const char *end)
{
	size_t n = strlen(makers[i].start);

	if ((size_t)(end - at) < n || memcmp(at, makers[i].start, n) != 0)
		return false;
	at += n;
	if (makers[i].numbered)
		return at < end && (isdigit((unsigned char)*at) || *at == 'b'); /* mlx5_bond_0 */
	return n > 4 || at == end || !is_name(*at) || isdigit((unsigned char)*at);
}

void pp_field_read_providers(struct pp_fields *ret)
{
	const char *end = ret->lower + ret->lower_len;

	for (size_t i = 0; i < PP_ARRAY_LEN(makers); i++) {
		if (!pp_field_may_hold(ret, makers[i].start))
			continue;
		for (const char *at = ret->lower; at < end; at++) {
			if (*at != makers[i].start[0] || (at > ret->lower && is_name(at[-1])) ||
			    !maker_fits(i, at, end))
				continue;
			add(ret, PP_FIELD_PROVIDER, makers[i].provider);
			break;
		}
	}
}
