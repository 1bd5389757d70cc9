/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes in pixels, shared by placing and painting. */
#ifndef PP_BUNDLE_DRAWING_SHAPE_H
#define PP_BUNDLE_DRAWING_SHAPE_H

enum {
	PP_SHAPE_PAD = 20,
	PP_SHAPE_TITLE_H = 64,
	PP_SHAPE_HEAD_H = 30,  /* bar of a NUMA node */
	PP_SHAPE_TRUNK_W = 28, /* between the block's edge and its host bridges */
	PP_SHAPE_NODE_W = 104, /* host bridge, switch */
	PP_SHAPE_NODE_H = 38,
	PP_SHAPE_LINE_W = 118, /* holds the label of a link */
	PP_SHAPE_LEAF_W = 264, /* gpu, hca, counted box */
	PP_SHAPE_LEAF_H = 38,
	PP_SHAPE_NOTE_H = 16,
	PP_SHAPE_GAP = 14,
	PP_SHAPE_GUTTER = 48, /* between blocks */
	PP_SHAPE_ROW_H = 19,  /* a sentence below the picture */
	PP_SHAPE_MIN_W = 900,
};

#endif
