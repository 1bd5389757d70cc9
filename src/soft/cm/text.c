/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of events, as rdma-core prints them.
 */
#include "base/compiler.h"
#include "soft/cm/rdma_cma.h"

#include "base/banned.h"

#define NAME(event) [event] = #event

static const char *const names[] = {
	NAME(RDMA_CM_EVENT_ADDR_RESOLVED),     NAME(RDMA_CM_EVENT_ADDR_ERROR),
	NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),    NAME(RDMA_CM_EVENT_ROUTE_ERROR),
	NAME(RDMA_CM_EVENT_CONNECT_REQUEST),   NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
	NAME(RDMA_CM_EVENT_CONNECT_ERROR),     NAME(RDMA_CM_EVENT_UNREACHABLE),
	NAME(RDMA_CM_EVENT_REJECTED),	       NAME(RDMA_CM_EVENT_ESTABLISHED),
	NAME(RDMA_CM_EVENT_DISCONNECTED),      NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
	NAME(RDMA_CM_EVENT_MULTICAST_JOIN),    NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
	NAME(RDMA_CM_EVENT_ADDR_CHANGE),       NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
	NAME(RDMA_CM_EVENT_ADDRINFO_RESOLVED), NAME(RDMA_CM_EVENT_ADDRINFO_ERROR),
};

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return (unsigned int)event < PP_ARRAY_LEN(names) ? names[event] : "UNKNOWN EVENT";
}
