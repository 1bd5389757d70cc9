/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_pci: the PCI tree of a node, typed, because paths need walking.
 *
 * Built from /sys/bus/pci/devices/<bdf> links and attributes. Unknown is never a value: numbers
 * use -1, and ACS carries its own state, since "could not read" is not "off".
 */
#ifndef PP_NODE_PCI_H
#define PP_NODE_PCI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bdf.h"

enum pp_acs_state {
	PP_ACS_UNREADABLE, /* config space was short: no privilege, or no extended space */
	PP_ACS_ABSENT,	   /* extended space read whole: no such capability */
	PP_ACS_KNOWN,
};

/* ACS control bits (PCIe 6.0, 7.7.11.3). */
enum {
	PP_ACS_SV = 0x01,
	PP_ACS_TB = 0x02,
	PP_ACS_RR = 0x04,
	PP_ACS_CR = 0x08,
	PP_ACS_UF = 0x10,
	PP_ACS_EC = 0x20,
	PP_ACS_DT = 0x40,
	/* What sends peer-to-peer requests up to the root complex (Linux p2pdma tests these). */
	PP_ACS_REDIRECT = PP_ACS_RR | PP_ACS_CR | PP_ACS_EC,
};

/* PCI Express device/port type, from the capability; -1 when config was not readable. */
enum {
	PP_PORT_ENDPOINT = 0,
	PP_PORT_LEGACY_ENDPOINT = 1,
	PP_PORT_ROOT = 4,
	PP_PORT_UPSTREAM = 5,
	PP_PORT_DOWNSTREAM = 6,
	PP_PORT_TO_PCI = 7,   /* PCI Express above, conventional PCI below */
	PP_PORT_FROM_PCI = 8, /* the reverse */
	PP_PORT_INTEGRATED = 9,
	PP_PORT_CONVENTIONAL = 16, /* readable, and no PCI Express capability */
};

/* Of numa and iommu_group: -1 is the kernel's "none", this is "could not be read". */
enum { PP_UNREADABLE = -2 };

struct pp_pci_dev {
	struct pp_bdf bdf;
	int parent;	     /* index of the bridge above, -1: directly on its host bridge */
	int host_bridge;     /* index into pp_pci.bridges, -1: its place is not known */
	int depth;	     /* bridges above it that it hangs below: 0 without a parent */
	uint32_t class_code; /* 0xCCSSPP; 0 when it could not be read */
	uint16_t vendor, device, subsystem_vendor, subsystem_device;
	int numa;		      /* as the kernel says, -1 none, PP_UNREADABLE */
	int iommu_group;	      /* -1 none, PP_UNREADABLE */
	int port_type;		      /* PP_PORT_*, -1 unknown */
	int speed_mts, max_speed_mts; /* link, MT/s: 2500, 5000, 8000 ... ; -1 unknown */
	int width, max_width;	      /* lanes, -1 unknown */
	int config_len;		      /* bytes of config space that could be read, -1 none */
	enum pp_acs_state acs_state;
	uint16_t acs_cap, acs_ctl;
	uint16_t acs_at;	/* offset of the capability, when its state is known */
	int8_t ats;		/* enabled 1, off or no capability 0, unreadable -1 */
	int8_t is_virtual;	/* SR-IOV VF 1, not one 0, unknown -1 */
	int physfn;		/* index of the PF of a VF, -1 */
	uint64_t largest_bar;	/* bytes of the largest prefetchable memory region, 0 unknown */
	bool driver_known;	/* false: whether one is bound could not be read */
	const char *driver;	/* NULL none */
	const char *path;	/* "/sys/devices/pci0000:00/.../0000:3b:00.0"; never NULL */
	const char *iommu_type; /* "DMA", "DMA-FQ", "identity", ...; NULL unknown or no group */
	const char *local_cpus; /* local_cpulist; NULL unknown */
};

struct pp_pci {
	struct pp_pci_dev *dev; /* sorted by bdf */
	unsigned int n;
	const char **bridges; /* host bridges: "pci0000:00", or the platform path for odd ones */
	unsigned int n_bridges;
	int online_nodes;  /* NUMA nodes online, -1 unknown */
	int *node_package; /* package (socket) of NUMA node i, -1; n_node_package long */
	unsigned int n_node_package;
	bool iommu_groups_known; /* /sys/kernel/iommu_groups could be listed */
	unsigned int n_iommu_groups;
	unsigned int unreadable; /* functions listed but with no usable path or class */
	const char *why;	 /* no tree at all: the reason; else NULL */
};

/* Of none there is no memory, and no address to count from. */
#define pp_pci_foreach(pci, d) for ((d) = (pci)->dev; (d) && (d) < (pci)->dev + (pci)->n; (d)++)

/* Index or -1. */
int pp_pci_find(const struct pp_pci *pci, const struct pp_bdf *bdf);

/* Socket (package) of NUMA node @numa, where -1 is the only node of a one-node machine; -1 unknown.
 */
int pp_pci_package(const struct pp_pci *pci, int numa);
/* "8.0 GT/s PCIe", "8 GT/s", "32.0 GT/s PCIe" -> MT/s; -1 for "Unknown", "" and the like. */
int pp_pci_speed_parse(const char *text);
/* Lanes from text; -1 for 0, 63, 255 and nonsense. */
int pp_pci_width_parse(const char *text);
/* GB/s (10^9) one way of a link by speed and width, after line coding; 0 when unknown. */
double pp_pci_bandwidth(int speed_mts, int width);
/* "SV+RR+CR+UF", "0"; returns @text (@size >= 24). */
const char *pp_acs_bits(uint16_t ctl, char *text, size_t size);

/*
 * Type of the function's IOMMU group: the kernel's word, "none" when it has no group, NULL when
 * that could not be read; then pp_pci_iommu_why() says why.
 */
const char *pp_pci_iommu_type(const struct pp_pci *pci, const struct pp_pci_dev *d);
const char *pp_pci_iommu_why(const struct pp_pci *pci, const struct pp_pci_dev *d);

/*
 * First function of which nobody can say what it is: its class or vendor could not be read, and
 * no other function shows it to be a bridge. NULL: there is none. While there is one, no count of
 * functions of a kind is a count.
 */
const struct pp_pci_dev *pp_pci_nameless(const struct pp_pci *pci);

bool pp_pci_is_bridge(const struct pp_pci_dev *d); /* leads to another bus */
bool pp_pci_is_gpu(const struct pp_pci_dev *d);	   /* NVIDIA display or 3D controller */
/* A PCI function that should carry an RDMA device: NVIDIA/Mellanox network, InfiniBand, EFA. */
bool pp_pci_is_hca(const struct pp_pci_dev *d);

#endif
