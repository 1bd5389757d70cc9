/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a description, as a table.
 */
#include "soft/config/config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/near.h"
#include "base/parse.h"
#include "base/banned.h"

const struct soft_config_device soft_config_default = {
	.rate_gbps = 100,
	/* No OUI of a vendor, and a part that no table knows: programs take their general way. */
	.vendor_id = 0xffffff,
	.limits = {.max_qp = 16384,
		   .max_qp_wr = 16384,
		   .max_sge = 32,
		   .max_inline = 1024,
		   .max_rd_atomic = 16,
		   .max_cq = 65536,
		   .max_cqe = 1 << 17,
		   .max_mr = 1 << 20,
		   .max_mw = 65536,
		   .max_pd = 65536,
		   .max_ah = 65536,
		   .max_srq = 16384,
		   .max_srq_wr = 16384},
};

#define AT(field) offsetof(struct soft_config_device, field)

static const struct number_key {
	const char *key;
	size_t at;
	uint64_t min, max; /* of a uint32_t, unless wide */
	bool hex, wide;
} numbers[] = {
	{"vendor_id", AT(vendor_id), 0, 0xffffff, .hex = true},
	{"vendor_part_id", AT(vendor_part_id), 0, UINT32_MAX},
	{"hw_ver", AT(hw_ver), 0, UINT32_MAX},
	{"max_qp", AT(limits.max_qp), 1, 65000},
	{"max_qp_wr", AT(limits.max_qp_wr), 1, 1 << 14},
	{"max_sge", AT(limits.max_sge), 1, 32},
	{"max_inline", AT(limits.max_inline), 0, 1024},
	{"max_rd_atomic", AT(limits.max_rd_atomic), 1, 16},
	{"max_cq", AT(limits.max_cq), 1, 1 << 24},
	{"max_cqe", AT(limits.max_cqe), 1, 1 << 17},
	{"max_mr", AT(limits.max_mr), 1, 1 << 20},
	{"max_mw", AT(limits.max_mw), 1, 1 << 20},
	{"max_pd", AT(limits.max_pd), 1, 1 << 24},
	{"max_ah", AT(limits.max_ah), 1, 1 << 24},
	{"max_srq", AT(limits.max_srq), 1, 1 << 24},
	{"max_srq_wr", AT(limits.max_srq_wr), 1, 1 << 14},
	{"loss_ppm", AT(plan.loss_ppm), 0, 1000000},
	{"duplicate_ppm", AT(plan.duplicate_ppm), 0, 1000000},
	{"reorder_ppm", AT(plan.reorder_ppm), 0, 1000000},
	{"corrupt_ppm", AT(plan.corrupt_ppm), 0, 1000000},
	{"seed", AT(plan.seed), 0, UINT64_MAX, .wide = true},
};

static int set_number(struct soft_config_device *d, const struct number_key *k, const char *value,
		      struct pp_error *err)
{
	bool hex = k->hex || !strncmp(value, "0x", 2);
	uint64_t n;
	int r = hex ? pp_parse_hex(value, k->max, &n) : pp_parse_u64(value, k->min, k->max, &n);

	if (!r && n < k->min)
		r = -ERANGE;
	if (r)
		return pp_error_set(err, -EINVAL, "%s=%s: not a number from %llu to %llu", k->key,
				    value, (unsigned long long)k->min, (unsigned long long)k->max);
	if (k->wide)
		memcpy((char *)d + k->at, &n, sizeof(n));
	else
		memcpy((char *)d + k->at, &(uint32_t){(uint32_t)n}, sizeof(uint32_t));
	return 0;
}

static int set_rate(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	static const struct number_key rate = {"rate", AT(rate_gbps), 1, 1600};

	d->rate_given = true;
	return set_number(d, &rate, value, err);
}

static int set_mtu(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	uint64_t n;

	if (pp_parse_u64(value, 256, 4096, &n) || n & (n - 1))
		return pp_error_set(err, -EINVAL, "mtu=%s: not 256, 512, 1024, 2048 or 4096",
				    value);
	d->mtu = (uint32_t)n;
	return 0;
}

static int set_address(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	struct soft_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, value, gid.raw + 12) != 1 &&
	    inet_pton(AF_INET6, value, gid.raw) != 1)
		return pp_error_set(err, -EINVAL, "address=%s: not an IPv4 or IPv6 address", value);
	for (unsigned int i = 0; i < d->num_gids; i++)
		if (soft_gid_equal(&d->gids[i].gid, &gid))
			return pp_error_set(err, -EINVAL, "address=%s is there twice", value);
	if (d->num_gids == SOFT_CONFIG_GIDS_MAX)
		return pp_error_set(err, -EINVAL, "more than %d addresses", SOFT_CONFIG_GIDS_MAX);
	d->gids[d->num_gids++].gid = gid;
	return 0;
}

/* Names go into paths and logs of other programs. */
static int set_name(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	size_t len = strlen(value);
	bool good = len && len < sizeof(d->name);

	for (size_t i = 0; i < len && good; i++)
		good = isalnum((unsigned char)value[i]) || value[i] == '_' || value[i] == '-';
	if (!good)
		return pp_error_set(err, -EINVAL,
				    "\"%s\" is no device name: 1 to %zu letters, digits, _ and -",
				    value, sizeof(d->name) - 1);
	memcpy(d->name, value, len + 1);
	return 0;
}

static int set_netdev(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	size_t len = strlen(value);

	if (!len || len >= sizeof(d->netdev))
		return pp_error_set(err, -EINVAL, "netdev=%s: no such name", value);
	memcpy(d->netdev, value, len + 1);
	return 0;
}

/* Without trains a capture on this host shows every packet as it is on a wire. */
static int set_trains(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	bool trains;

	if (pp_parse_bool(value, &trains))
		return pp_error_set(err, -EINVAL, "trains=%s: neither yes nor no", value);
	d->singly = !trains;
	return 0;
}

static int add_fault(void *device, const struct soft_fault_spec *spec, struct pp_error *err)
{
	struct soft_config_device *d = device;

	if (spec->noun == SOFT_FAULT_SEED && !spec->off)
		d->plan.seed = spec->number;
	return soft_fault_set_add(&d->faults, spec, err);
}

static int set_fault(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	return soft_fault_specs_parse(value, add_fault, d, err);
}

/* Without it a capture shows what processes of one host say to each other, too. */
static int set_same_host(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	bool same_host;

	if (pp_parse_bool(value, &same_host))
		return pp_error_set(err, -EINVAL, "same-host=%s: neither yes nor no", value);
	d->wire_only = !same_host;
	return 0;
}

static int set_same_host_gpu(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	if (strcmp(value, "direct") != 0 && strcmp(value, "staged") != 0)
		return pp_error_set(err, -EINVAL, "same-host-gpu=%s: neither direct nor staged",
				    value);
	d->gpu_staged = !strcmp(value, "staged");
	return 0;
}

static int set_wire_threads(struct soft_config_device *d, const char *value, struct pp_error *err)
{
	bool yes;

	if (!strcmp(value, "auto")) {
		d->wire_threads = SOFT_WIRE_THREADS_AUTO;
		return 0;
	}
	if (pp_parse_bool(value, &yes))
		return pp_error_set(err, -EINVAL, "wire-threads=%s: neither auto, yes nor no",
				    value);
	d->wire_threads = yes ? SOFT_WIRE_THREADS_YES : SOFT_WIRE_THREADS_NO;
	return 0;
}

static const struct {
	const char *key;
	int (*set)(struct soft_config_device *d, const char *value, struct pp_error *err);
} others[] = {
	{"name", set_name},	      {"address", set_address},
	{"netdev", set_netdev},	      {"mtu", set_mtu},
	{"trains", set_trains},	      {"fault", set_fault},
	{"same-host", set_same_host}, {"same-host-gpu", set_same_host_gpu},
	{"rate", set_rate},	      {"wire-threads", set_wire_threads},
};

int soft_config_set(struct soft_config_device *d, const char *key, const char *value,
		    struct pp_error *err)
{
	struct pp_near near = PP_NEAR(key);

	for (size_t i = 0; i < PP_ARRAY_LEN(others); i++) {
		if (!strcmp(others[i].key, key))
			return others[i].set(d, value, err);
		pp_near_offer(&near, others[i].key);
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(numbers); i++) {
		if (!strcmp(numbers[i].key, key))
			return set_number(d, &numbers[i], value, err);
		pp_near_offer(&near, numbers[i].key);
	}
	return pp_error_set(err, -EINVAL, "no key \"%s\"%s%s%s", key, near.best ? "; is it " : "",
			    near.best ? near.best : "", near.best ? "?" : "");
}
