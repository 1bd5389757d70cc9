/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of resource*.c: kinds of objects as netlink names them, and one dump's
 * messages.
 */
#ifndef PP_TRACE_RESOURCE_PARTS_H
#define PP_TRACE_RESOURCE_PARTS_H

#include "trace/resource.h"

struct nlattr;

enum { PP_RESOURCE_KINDS = PP_RESOURCE_QP + 1 };

struct pp_resource_words {
	const char *name;   /* member of an answer's device, and for people */
	uint32_t command;   /* RDMA_NLDEV_CMD_RES_*_GET */
	const char *call;   /* its name */
	uint16_t table;	    /* attribute that holds the objects of a dump */
	uint16_t id;	    /* attribute of an object's number */
	uint16_t parent;    /* and of what it stands on; 0 none */
	const char *listed; /* "regions": what is missing when the dump fails */
};

extern const struct pp_resource_words pp_resource_words[PP_RESOURCE_KINDS];

/* One dump of a kind, message by message. */
struct pp_resource_dump {
	enum pp_resource_kind kind;
	struct pp_json *json;	 /* borrowed; stands in an array */
	uint32_t sequence, port; /* what answers must carry; 0 0: a recording, anything */
	unsigned int count;	 /* objects written */
	bool interrupted;	 /* the kernel's list changed while it was read */
	bool malformed;
	bool ended; /* the last message was seen */
	int error;  /* what the kernel answered instead; negative errno */
};

/* Bytes as one recvmsg() gave them. */
void pp_resource_messages(struct pp_resource_dump *d, const void *bytes, size_t len);

/*
 * Calls @fn for each attribute of @len bytes. -EBADMSG when one does not fit or bytes are left
 * over; else what @fn returned first that was not 0.
 */
int pp_resource_attributes(const void *bytes, size_t len,
			   int (*fn)(const struct nlattr *attribute, void *arg), void *arg);

#endif
