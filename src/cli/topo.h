/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of `peerpath topo`: who is in the matrix, each way of showing it, and the options that are
 * jobs of their own (other tools' descriptions of a topology).
 */
#ifndef PP_CLI_TOPO_H
#define PP_CLI_TOPO_H

#include "cli/session.h"
#include "cli/view.h"
#include "node/distance.h"

enum { PP_TOPO_NAME = 16, PP_TOPO_EXTRA = 256 };

struct pp_topo_member {
	char name[PP_TOPO_NAME];      /* GPU0, NIC0, DEV0: of this output only */
	const struct pp_object *o;    /* NULL for a function added by --device */
	int pci;		      /* index into the tree */
	bool asked;		      /* by --device, too */
	const struct pp_object *port; /* of a NIC: the port that speaks for it, NULL none */
};

struct pp_topo {
	const struct pp_node *node;	/* borrowed */
	struct pp_topo_member *members; /* owned: GPUs, then NICs, then others */
	unsigned int n, gpus, nics;
	unsigned int left_out; /* of pp_topo_shown(): virtual functions that are no rail */
};

/*
 * Members in order of address; --device adds others. Prints one line and returns an exit code for
 * an address that is none or is not on this node.
 */
int pp_topo_members(const struct pp_session *s, struct pp_topo *ret);
/* Without virtual functions that nobody uses or asked for; names stay. -ENOMEM. */
int pp_topo_shown(const struct pp_topo *t, struct pp_topo *ret);
void pp_topo_done(struct pp_topo *t);

/* "PIX", "NV18" where the NVLinks of two GPUs are known. Writes into @text, returns it. */
const char *pp_topo_cell(const struct pp_topo *t, unsigned int a, unsigned int b,
			 char text[PP_TOPO_NAME]);

/* The pair of a gpu and its rail, NULL none. */
const struct pp_object *pp_topo_rail(const struct pp_node *n, const struct pp_object *gpu);

/* Each adds its part to the output. */
void pp_topo_rails(struct pp_view *v, const struct pp_topo *t);
void pp_topo_matrix(struct pp_out *o, const struct pp_topo *t);
void pp_topo_routes(struct pp_view *v);
void pp_topo_choices(struct pp_view *v, const struct pp_topo *t);
void pp_topo_links(struct pp_view *v);
void pp_topo_pinning(struct pp_view *v, const struct pp_topo *t);
void pp_topo_json(struct pp_out *o, const struct pp_topo *t);

/* Each reads @file ("-": standard input), writes its document, and returns an exit code. */
int pp_topo_smi(const struct pp_args *args, const char *file);
int pp_topo_nccl_xml(const struct pp_args *args, const char *file);

/* Draws the machine into @file ("-": standard output); returns an exit code. */
int pp_topo_svg(const struct pp_session *s, const char *file);
/* Compares with the planned layout in @file and adds its document; returns an exit code. */
int pp_topo_expect(const struct pp_session *s, const char *file);
/* Writes the present layout into @file; returns an exit code. */
int pp_topo_expect_write(const struct pp_session *s, const char *file);

#endif
