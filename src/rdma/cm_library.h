/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_cm_library: librdmacm.so.1 as a table of functions, loaded at run time, with own
 * declarations of what is used of its ABI (its headers are in no dependency of the program).
 * tests/unit/test_cm_abi compares them with the installed header.
 *
 * Convention of the calls: 0, or -1 and errno; NULL and errno.
 */
#ifndef PP_RDMA_CM_LIBRARY_H
#define PP_RDMA_CM_LIBRARY_H

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include "base/error.h"

enum { PP_CM_PS_TCP = 0x0106 };

enum pp_cm_event_type {
	PP_CM_ADDR_RESOLVED,
	PP_CM_ADDR_ERROR,
	PP_CM_ROUTE_RESOLVED,
	PP_CM_ROUTE_ERROR,
	PP_CM_CONNECT_REQUEST,
	PP_CM_CONNECT_RESPONSE,
	PP_CM_CONNECT_ERROR,
	PP_CM_UNREACHABLE,
	PP_CM_REJECTED,
	PP_CM_ESTABLISHED,
	PP_CM_DISCONNECTED,
	PP_CM_DEVICE_REMOVAL,
};

struct pp_cm_channel {
	int fd;
};

struct pp_cm_id {
	struct ibv_context *verbs; /* the library's own of that device */
	struct pp_cm_channel *channel;
	void *context;
	struct ibv_qp *qp;
	struct {
		struct sockaddr_storage from, to;
		uint16_t ib_address[17];
		void *path_records;
		int n_paths;
	} route;
	int port_space;
	uint8_t port;
	/* more follows */
};

struct pp_cm_parameters {
	const void *private_data;
	uint8_t private_length, responder_resources, initiator_depth, flow_control;
	uint8_t retry_count, rnr_retry_count, srq;
	uint32_t qp_num;
};

struct pp_cm_event {
	struct pp_cm_id *id, *listener;
	int type; /* enum pp_cm_event_type, or one of a newer library */
	int status;
	struct pp_cm_parameters parameters;
	/* more follows */
};

struct pp_cm_library {
	void *library; /* dlopen() handle, never closed */
	struct pp_cm_channel *(*create_channel)(void);
	void (*destroy_channel)(struct pp_cm_channel *channel);
	int (*create_id)(struct pp_cm_channel *channel, struct pp_cm_id **ret, void *context,
			 int port_space);
	int (*destroy_id)(struct pp_cm_id *id);
	int (*bind)(struct pp_cm_id *id, struct sockaddr *address);
	int (*listen)(struct pp_cm_id *id, int backlog);
	int (*resolve_address)(struct pp_cm_id *id, struct sockaddr *from, struct sockaddr *to,
			       int timeout_ms);
	int (*resolve_route)(struct pp_cm_id *id, int timeout_ms);
	int (*connect)(struct pp_cm_id *id, struct pp_cm_parameters *parameters);
	int (*accept)(struct pp_cm_id *id, struct pp_cm_parameters *parameters);
	int (*reject)(struct pp_cm_id *id, const void *private_data, uint8_t length);
	int (*establish)(struct pp_cm_id *id);
	int (*disconnect)(struct pp_cm_id *id);
	int (*qp_attributes)(struct pp_cm_id *id, struct ibv_qp_attr *attr, int *mask);
	int (*get_event)(struct pp_cm_channel *channel, struct pp_cm_event **ret);
	int (*ack_event)(struct pp_cm_event *event);
	const char *(*event_text)(int type);
	uint16_t (*source_port)(struct pp_cm_id *id); /* big-endian */
};

/* -ENOENT: no such library here; -ENOSYS: it lacks a function. */
int pp_cm_library_load(struct pp_cm_library *ret, struct pp_error *err);

#endif
