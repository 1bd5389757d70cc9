/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/choose.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "rdma/choose_parts.h"
#include "base/banned.h"

static bool is_virtual(const struct pp_object *hca)
{
	return !strncmp(hca->id, "virtual/", 8) || pp_object_simulated(hca);
}

static const char *state_of(const struct pp_object *port)
{
	return pp_fact_str_or(port, PP_F_PORT_STATE, "unknown");
}

/* ── ports ── */

static const struct pp_object *next_port(const struct pp_node *n, const struct pp_object *hca,
					 const struct pp_object *after)
{
	const struct pp_object *o = after;

	while ((o = pp_object_next(&n->facts, PP_PORT, o)))
		if (o->parent == hca)
			return o;
	return NULL;
}

/* @wanted 0: the first ACTIVE one. NULL: none. */
static const struct pp_object *port_of(const struct pp_node *n, const struct pp_object *hca,
				       unsigned int wanted)
{
	const struct pp_object *o = NULL;

	while ((o = next_port(n, hca, o))) {
		if (wanted && pp_fact_int_or(o, PP_F_PORT_NUMBER, -1) == (int64_t)wanted)
			return o;
		if (!wanted && !strcmp(state_of(o), "ACTIVE"))
			return o;
	}
	return NULL;
}

static int no_port(const struct pp_node *n, const struct pp_object *hca, unsigned int wanted,
		   struct pp_error *err)
{
	const struct pp_object *o = NULL;
	char list[200] = "";

	while ((o = next_port(n, hca, o)))
		pp_choose_append(list, sizeof(list), "%s%lld %s", *list ? ", " : "",
				 (long long)pp_fact_int_or(o, PP_F_PORT_NUMBER, -1), state_of(o));
	if (wanted)
		return pp_error_set(err, -ENODEV, "%s (%s) has no port %u; it has: %s", hca->id,
				    hca->name, wanted, *list ? list : "none");
	return pp_error_set(err, -ENETDOWN, "%s (%s) has no ACTIVE port; it has: %s", hca->id,
			    hca->name, *list ? list : "none");
}

/* ── one device ── */

static int fill(const struct pp_node *n, const struct pp_choose_options *o,
		const struct pp_object *hca, const struct pp_object *gpu, struct pp_choice *ret,
		struct pp_error *err)
{
	const struct pp_object *port = port_of(n, hca, o->port);
	int64_t numa = pp_fact_int_or(hca, PP_F_HCA_NUMA, -1);

	if (!hca->name)
		return pp_error_set(err, -ENODEV,
				    "%s has no RDMA device: its driver (%s) made none", hca->id,
				    pp_fact_str_or(hca, PP_F_HCA_DRIVER, "unknown"));
	if (!port)
		return no_port(n, hca, o->port, err);
	*ret = (struct pp_choice){
		.hca = hca,
		.port = port,
		.gpu = gpu,
		.pair = gpu ? pp_choose_pair(n, gpu, hca) : NULL,
		.number = (unsigned int)pp_fact_int_or(port, PP_F_PORT_NUMBER, 1),
		.numa = numa < 0 || numa > INT32_MAX ? -1 : (int)numa,
		.cpus = pp_fact_str_or(hca, PP_F_HCA_CPUS, NULL),
		.netdev = pp_fact_str_or(port, PP_F_PORT_NETDEV, NULL),
		.simulated = pp_object_simulated(hca),
	};
	(void)snprintf(ret->device, sizeof(ret->device), "%s", hca->name);
	(void)snprintf(ret->id, sizeof(ret->id), "%s", hca->id);
	return 0;
}

/* A name that libibverbs lists and the kernel does not know. */
static void fill_unseen(const struct pp_choose_options *o, const char *name,
			const struct pp_object *gpu, struct pp_choice *ret)
{
	*ret = (struct pp_choice){
		.gpu = gpu, .number = o->port ? o->port : 1, .numa = -1, .simulated = true};
	(void)snprintf(ret->device, sizeof(ret->device), "%s", name);
	(void)snprintf(ret->id, sizeof(ret->id), "virtual/%s", name);
	(void)snprintf(ret->why, sizeof(ret->why),
		       "libibverbs lists %s and the kernel shows no such device: software", name);
}

static int by_user(const struct pp_node *n, const struct pp_choose_options *o,
		   const struct pp_object *gpu, struct pp_choice *ret, struct pp_error *err)
{
	const struct pp_object *hca;
	const char *unseen = NULL;
	int r = pp_choose_device(n, o, &hca, &unseen, err);

	if (r)
		return r;
	if (unseen) {
		fill_unseen(o, unseen, gpu, ret);
		return 0;
	}
	r = fill(n, o, hca, gpu, ret, err);
	if (r)
		return r;
	(void)snprintf(ret->why, sizeof(ret->why), "%s was asked for%s", o->device,
		       ret->pair && !pp_fact_is(ret->pair, PP_F_PAIR_RAIL)
			       ? "; it is not the gpu's rail"
			       : "");
	return 0;
}

static int by_gpu(const struct pp_node *n, const struct pp_choose_options *o,
		  const struct pp_object *gpu, struct pp_choice *ret, struct pp_error *err)
{
	const struct pp_object *pair = NULL;
	bool any = false;
	int r;

	while ((pair = pp_object_next(&n->facts, PP_PAIR, pair))) {
		if (pair->parent != gpu)
			continue;
		any = true;
		if (!pp_fact_is(pair, PP_F_PAIR_RAIL))
			continue;
		r = fill(n, o, pair->peer, gpu, ret, err);
		if (!r)
			(void)snprintf(ret->why, sizeof(ret->why), "rail of gpu %s: %s", gpu->id,
				       pp_fact_str_or(pair, PP_F_PAIR_RAIL_WHY, "its nearest hca"));
		return r;
	}
	return pp_error_set(err, -ENODEV, "gpu %s has no rail: %s", gpu->id,
			    any ? "no hca here can be used (see 'peerpath topo')"
				: "there is no hca on this node's PCI bus");
}

/* ── the first ── */

static int by_state(const struct pp_node *n, const struct pp_choose_options *o,
		    const struct pp_object *gpu, struct pp_choice *ret, struct pp_error *err)
{
	const char *const *listed = pp_choose_listed(n, o);
	const struct pp_object *hca, *down = NULL;

	for (int software = 0; software < 2; software++) {
		hca = NULL;
		while ((hca = pp_object_next(&n->facts, PP_HCA, hca))) {
			if (is_virtual(hca) != (bool)software || !hca->name)
				continue;
			if (!port_of(n, hca, o->port)) {
				down = down ? down : hca;
				continue;
			}
			(void)fill(n, o, hca, gpu, ret, err);
			(void)snprintf(
				ret->why, sizeof(ret->why), "the first %s device with %s port",
				software ? "software" : "hardware", o->port ? "that" : "an ACTIVE");
			return 0;
		}
	}
	for (size_t i = 0; listed && listed[i]; i++) {
		if (!pp_choose_by_name(n, listed[i])) {
			fill_unseen(o, listed[i], gpu, ret);
			return 0;
		}
	}
	return down ? no_port(n, down, o->port, err)
		    : pp_error_set(err, -ENODEV, "no RDMA device on this node");
}

int pp_choose(const struct pp_node *n, const struct pp_choose_options *options,
	      struct pp_choice *ret, struct pp_error *err)
{
	const struct pp_object *gpu = NULL;
	int r = options->gpu ? pp_choose_gpu(n, options->gpu, &gpu, err) : 0;

	if (r)
		return r;
	if (options->device)
		return by_user(n, options, gpu, ret, err);
	r = gpu ? by_gpu(n, options, gpu, ret, err) : by_state(n, options, NULL, ret, err);
	/* Software devices are on no bus, so that they are no gpu's rail. */
	if (gpu && r == -ENODEV && pp_choose_only_software(n))
		r = by_state(n, options, gpu, ret, err);
	return r;
}

/* ── all of them ── */

static int all_gpus(const struct pp_node *n, const struct pp_choose_options *o,
		    struct pp_choice *ret, unsigned int most, unsigned int *ret_n)
{
	struct pp_choose_options one = {.port = o->port, .listed = o->listed};
	const struct pp_object *gpu = NULL;
	struct pp_error ignored;
	unsigned int count = 0;

	while (count < most && (gpu = pp_object_next(&n->facts, PP_GPU, gpu))) {
		one.gpu = gpu->id;
		if (!pp_choose(n, &one, &ret[count], &ignored))
			count++;
	}
	*ret_n = count;
	return 0;
}

int pp_choose_rails(const struct pp_node *n, const struct pp_choose_options *options,
		    struct pp_choice *ret, unsigned int most, unsigned int *ret_n,
		    struct pp_error *err)
{
	const char *const *listed = pp_choose_listed(n, options);
	const struct pp_object *hca = NULL;
	unsigned int count = 0;

	if (n->facts.count[PP_GPU])
		return all_gpus(n, options, ret, most, ret_n);
	while (count < most && (hca = pp_object_next(&n->facts, PP_HCA, hca))) {
		if (!hca->name || !port_of(n, hca, options->port) ||
		    fill(n, options, hca, NULL, &ret[count], err))
			continue;
		(void)snprintf(ret[count++].why, sizeof(ret->why),
			       "a device with an ACTIVE port; there is no gpu");
	}
	for (size_t i = 0; listed && listed[i] && count < most; i++)
		if (!pp_choose_by_name(n, listed[i]))
			fill_unseen(options, listed[i], NULL, &ret[count++]);
	*ret_n = count;
	return 0;
}
