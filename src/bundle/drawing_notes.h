/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the items of a picture say, and the sentences below it: what is wrong, what is unknown.
 * @link is the PP_LINK object of the item's own upward link; NULL: none.
 */
#ifndef PP_BUNDLE_DRAWING_NOTES_H
#define PP_BUNDLE_DRAWING_NOTES_H

#include "bundle/drawing.h"

void pp_note_switch(struct pp_drawing *d, struct pp_item *i, const struct pp_object *link);
void pp_note_gpu(struct pp_drawing *d, struct pp_item *i, const struct pp_object *link);
void pp_note_hca(struct pp_drawing *d, struct pp_item *i, const struct pp_object *link);
/* Counts @hca in the group box below @host, which is made when it is missing. */
void pp_note_group(struct pp_drawing *d, const struct pp_object *hca, int host);
/* After all items exist. */
void pp_note_rails(struct pp_drawing *d);
void pp_note_node(struct pp_drawing *d);

#endif
