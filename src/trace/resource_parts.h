/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of resource*.c: kinds of objects as netlink names them, and one dump's
 * messages.
 */
#ifndef PP_TRACE_RESOURCE_PARTS_H
#define PP_TRACE_RESOURCE_PARTS_H

#include <sys/types.h>

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

/* One dump, message by message: of a kind, or with @take of anything else. */
struct pp_resource_dump {
	enum pp_resource_kind kind;
	struct pp_json *json;	 /* borrowed; stands in an array */
	uint32_t sequence, port; /* what answers must carry; 0 0: a recording, anything */
	/* With @take: gets each message's attributes of this command. -EBADMSG. */
	uint32_t command;
	int (*take)(void *arg, const void *attributes, size_t len);
	void *arg;
	unsigned int count; /* objects written */
	bool interrupted;   /* the kernel's list changed while it was read */
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

/* Netlink's socket, or what stands for it in a test. Both return a negative errno. */
struct pp_resource_link {
	int (*send)(void *arg, const void *message, size_t len);
	ssize_t (*receive)(void *arg, void *buf, size_t size);
	void *arg;
	uint32_t port; /* ours, that answers carry */
};

/*
 * Asks all and writes the answer's members that come of netlink, and of @s, whose uverbs devices
 * show what netlink hides. -ENOMEM only.
 */
int pp_resource_look(const struct pp_resource_link *link, struct pp_source *s, struct pp_json *j);
/* The members of a call that failed before anything was listed. */
void pp_resource_refused(struct pp_json *j, const char *call, int error);

#endif
