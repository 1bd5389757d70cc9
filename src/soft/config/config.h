/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_config: which devices there are, by description or by default. Pure: the machine's
 * addresses are an argument.
 *
 * A description is a file, or the text itself when it has an equals sign (variable PEERPATH_SOFT):
 *
 *   [all]                       vendor_part_id=4119
 *   vendor_part_id = 4119       name=a,address=10.0.0.1,mtu=1024;name=b,netdev=eth1
 *   [device a]
 *   address = 10.0.0.1
 *   mtu = 1024
 *
 * Without a device in it, or without a description, the devices are: soft0, soft1... for every
 * netdev with a routable address, and last soft_lo for the loopback addresses. Last, because who
 * takes the first device shall reach other machines; under a name of its own, because its number
 * would differ from machine to machine. GID 0 is an IPv4 address if there is any, all others are
 * IPv6 (NCCL then needs no sysfs to choose): further IPv4 addresses of a netdev get a device each.
 */
#ifndef SOFT_CONFIG_CONFIG_H
#define SOFT_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "soft/link/fault.h"
#include "soft/link/host.h"
#include "soft/link/link.h"
#include "soft/wire/gid.h"

enum {
	SOFT_CONFIG_DEVICES_MAX = 32,
	SOFT_CONFIG_GIDS_MAX = 16,
	SOFT_CONFIG_HOSTS_MAX = 256,
	SOFT_CONFIG_NAME_MAX = 48, /* with its end */
	SOFT_CONFIG_BYTES_MAX = 64 * 1024,
};

struct soft_config_gid {
	struct soft_gid gid;
	unsigned int ifindex;
};

/* What a device grants; kept by the verbs. */
struct soft_limits {
	uint32_t max_qp, max_qp_wr, max_sge, max_inline, max_rd_atomic;
	uint32_t max_cq, max_cqe, max_mr, max_mw, max_pd, max_ah, max_srq, max_srq_wr;
};

struct soft_config_device {
	char name[SOFT_CONFIG_NAME_MAX];
	struct soft_config_gid gids[SOFT_CONFIG_GIDS_MAX];
	unsigned int num_gids;
	char netdev[16];    /* asked for, or of the first GID */
	uint8_t mac[6];	    /* of that netdev; zero: none */
	uint32_t mtu;	    /* of the path, bytes */
	uint32_t rate_gbps; /* shown only */
	bool rate_given;    /* else the device may show more (abi/port.c) */
	uint32_t vendor_id, vendor_part_id, hw_ver;
	struct soft_limits limits;
	struct soft_fault_plan plan; /* of the wire, as keys of their own say it */
	struct soft_fault_set faults;
	bool singly;	 /* every packet leaves alone: for captures */
	bool wire_only;	 /* no same-host link */
	bool gpu_staged; /* memory of GPUs goes through staging on that, too */
	enum soft_wire_threads wire_threads;
};

struct soft_config {
	struct soft_config_device devices[SOFT_CONFIG_DEVICES_MAX];
	unsigned int num_devices;
};

/*
 * @description NULL or "": the default. -EINVAL and what is wrong in @err; the same when an address
 * is not this machine's, or an MTU does not fit. No device is no error.
 */
int soft_config_parse(const char *description, const struct soft_host_address *hosts,
		      unsigned int num_hosts, struct soft_config *ret, struct pp_error *err);

/* The same for this machine: reads the file, asks for the addresses. */
int soft_config_load(const char *description, struct soft_config *ret, struct pp_error *err);

/* key.c: one key of a description. -EINVAL: unknown, or not such a value. */
int soft_config_set(struct soft_config_device *device, const char *key, const char *value,
		    struct pp_error *err);
extern const struct soft_config_device soft_config_default; /* all but name and addresses */

/* address.c: fills in what follows from the machine's addresses and checks it. */
int soft_config_complete(struct soft_config_device *device, const struct soft_host_address *hosts,
			 unsigned int num_hosts, struct pp_error *err);
/* Appends the default devices, made after @model. */
int soft_config_add_default(struct soft_config *config, const struct soft_config_device *model,
			    const struct soft_host_address *hosts, unsigned int num_hosts,
			    struct pp_error *err);

/*
 * guid.c: the node's GUID of a device, big-endian: the same on every start, and of every device its
 * own (NCCL takes devices of one system image GUID for ports of one NIC). Locally administered (the
 * U bit of EUI-64 is not set): no vendor gave it.
 */
uint64_t soft_config_guid(const struct soft_config_device *device);

/* Address of a GID as text: IPv4 or IPv6. Writes into @text, returns it. */
const char *soft_config_gid_text(const struct soft_gid *gid, char *text, size_t size);

#endif
