/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an NCCL topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) into a graph, and says what in
 * it is odd. XML as NCCL writes it only: no document type, no entities.
 */
#ifndef PP_NODE_NCCL_XML_H
#define PP_NODE_NCCL_XML_H

#include <stddef.h>

#include "base/error.h"
#include "node/nccl_graph.h"

enum { PP_NCCL_XML_MAX_BYTES = 4 << 20 };

enum pp_nccl_odd {
	PP_NCCL_ODD_VERSION,	 /* the file's version is not 1: NCCL refuses it */
	PP_NCCL_ODD_BUSID,	 /* no PCI address, or not in 12 characters */
	PP_NCCL_ODD_DUPLICATE,	 /* an address stands twice */
	PP_NCCL_ODD_ABSENT,	 /* class, speed or width is no attribute */
	PP_NCCL_ODD_SPEED,	 /* a speed that NCCL's table lacks: counted as 8 GT/s */
	PP_NCCL_ODD_WIDTH,	 /* width 0: counted as 16 lanes */
	PP_NCCL_ODD_SLOW_SWITCH, /* 2.5 GT/s x1: a virtual switch that gives no link data */
	PP_NCCL_ODD_NIC_ON_CPU,	 /* a NIC directly under a CPU */
	PP_NCCL_ODD_NUMA,	 /* a CPU without a NUMA number, or -1 */
	PP_NCCL_ODD_MISPLACED,	 /* a PCI device outside of any CPU, or below a GPU or NIC */
	PP_NCCL_ODDS
};

struct pp_nccl_xml {
	struct pp_nccl_graph graph;
	unsigned int version;
	unsigned int odd[PP_NCCL_ODDS];	     /* how often */
	const char *odd_first[PP_NCCL_ODDS]; /* of whom it was said first: an id, a value */
};

/*
 * @name is what messages call the text. 0, or with one line in @err: -EBADMSG (no XML, no NCCL
 * topology, a document type), -EFBIG (size, depth, number of devices or attributes), -ENOMEM.
 * pp_nccl_xml_done() frees on success.
 */
int pp_nccl_xml_parse(const char *name, const char *text, size_t len, struct pp_nccl_xml *ret,
		      struct pp_error *err);
void pp_nccl_xml_done(struct pp_nccl_xml *x);

/* What an oddity means, in one sentence. */
const char *pp_nccl_odd_text(enum pp_nccl_odd o);
/* Its name in documents: "width-unknown". */
const char *pp_nccl_odd_name(enum pp_nccl_odd o);

#endif
