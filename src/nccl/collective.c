/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/collective.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static const struct {
	const char *name;
	bool reduces, in_place;
} collectives[PP_COLLECTIVES] = {
	[PP_NCCL_ALL_REDUCE] = {"all_reduce", true, true},
	[PP_NCCL_REDUCE_SCATTER] = {"reduce_scatter", true, true},
	[PP_NCCL_ALL_GATHER] = {"all_gather", false, true},
	[PP_NCCL_ALL_TO_ALL] = {"all_to_all", false, false},
	[PP_NCCL_SEND_RECV] = {"send_recv", false, false},
};

static const struct {
	const char *name;
	unsigned int size;
	int code;
} elements[PP_ELEMENTS] = {
	[PP_INT8] = {"int8", 1, 0},	[PP_INT32] = {"int32", 4, 2},
	[PP_HALF] = {"half", 2, 6},	[PP_FLOAT] = {"float", 4, 7},
	[PP_DOUBLE] = {"double", 8, 8}, [PP_BFLOAT16] = {"bfloat16", 2, 9},
};

static const char *const reductions[PP_REDUCTIONS] = {
	[PP_SUM] = "sum", [PP_PROD] = "prod", [PP_MAX] = "max", [PP_MIN] = "min", [PP_AVG] = "avg"};

const char *pp_collective_name(enum pp_collective c)
{
	return c < PP_COLLECTIVES ? collectives[c].name : "?";
}

const char *pp_element_name(enum pp_element e)
{
	return e < PP_ELEMENTS ? elements[e].name : "?";
}

const char *pp_reduction_name(enum pp_reduction r)
{
	return r < PP_REDUCTIONS ? reductions[r] : "?";
}

int pp_collective_parse(const char *text, enum pp_collective *ret)
{
	for (unsigned int i = 0; i < PP_COLLECTIVES; i++)
		if (!strcmp(collectives[i].name, text))
			return *ret = (enum pp_collective)i, 0;
	return -EINVAL;
}

int pp_element_parse(const char *text, enum pp_element *ret)
{
	for (unsigned int i = 0; i < PP_ELEMENTS; i++)
		if (!strcmp(elements[i].name, text))
			return *ret = (enum pp_element)i, 0;
	return -EINVAL;
}

int pp_reduction_parse(const char *text, enum pp_reduction *ret)
{
	for (unsigned int i = 0; i < PP_REDUCTIONS; i++)
		if (!strcmp(reductions[i], text))
			return *ret = (enum pp_reduction)i, 0;
	return -EINVAL;
}

unsigned int pp_element_size(enum pp_element e)
{
	return elements[e].size;
}

int pp_element_code(enum pp_element e)
{
	return elements[e].code;
}

bool pp_collective_reduces(enum pp_collective c)
{
	return collectives[c].reduces;
}

bool pp_collective_in_place(enum pp_collective c)
{
	return collectives[c].in_place;
}

struct pp_collective_shape pp_collective_shape(enum pp_collective c, enum pp_element e,
					       uint64_t bytes, unsigned int ranks)
{
	uint64_t all = bytes / elements[e].size, line = 16 / elements[e].size;
	uint64_t part = all / ranks / line * line;
	struct pp_collective_shape s = {
		.count = part, .send = part * ranks, .receive = part * ranks};

	switch (c) {
	case PP_NCCL_REDUCE_SCATTER:
		s.receive = s.receive_step = part;
		break;
	case PP_NCCL_ALL_GATHER:
		s.send = s.send_step = part;
		break;
	case PP_NCCL_ALL_TO_ALL:
		break;
	default:
		s.count = s.send = s.receive = all;
	}
	s.bytes = (s.send > s.receive ? s.send : s.receive) * elements[e].size;
	return s;
}

double pp_collective_factor(enum pp_collective c, unsigned int ranks)
{
	double n = ranks;

	switch (c) {
	case PP_NCCL_ALL_REDUCE:
		return 2 * (n - 1) / n;
	case PP_NCCL_SEND_RECV:
		return 1;
	default:
		return (n - 1) / n;
	}
}
