/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is exported so that programs load, and refused: multicast, service records, and sockets over
 * RDMA (rsocket), of which the first call says ENOSYS and all others EBADF: there is none. To wait
 * for descriptors of another kind works as ever.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/select.h>

#include "base/banned.h"

#pragma GCC visibility push(default)
long soft_cm_refuse(void);
long soft_cm_refuse_socket(void);
long soft_cm_refuse_descriptor(void);
long soft_cm_refuse_group(void);
int rpoll(struct pollfd *fds, nfds_t nfds, int timeout);
int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
	    struct timeval *timeout);
#pragma GCC visibility pop

long soft_cm_refuse(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

/* For multicast: as the kernel answers for a device without. */
long soft_cm_refuse_socket(void)
{
	errno = ENOSYS;
	return -1;
}

long soft_cm_refuse_descriptor(void)
{
	errno = EBADF;
	return -1;
}

/* Nobody ever joined. */
long soft_cm_refuse_group(void)
{
	errno = EADDRNOTAVAIL;
	return -1;
}

#define REFUSED(name, answer) \
	extern __typeof__(answer) name __attribute__((alias(#answer), visibility("default")));

REFUSED(rdma_join_multicast, soft_cm_refuse_socket)
REFUSED(rdma_join_multicast_ex, soft_cm_refuse_socket)
REFUSED(rdma_leave_multicast, soft_cm_refuse_group)
REFUSED(rdma_resolve_addrinfo, soft_cm_refuse)
REFUSED(rdma_query_addrinfo, soft_cm_refuse)
REFUSED(rsocket, soft_cm_refuse_socket)
REFUSED(repoll_create, soft_cm_refuse_socket)
REFUSED(repoll_ctl, soft_cm_refuse_descriptor)
REFUSED(repoll_wait, soft_cm_refuse_descriptor)
REFUSED(raccept, soft_cm_refuse_descriptor)
REFUSED(rbind, soft_cm_refuse_descriptor)
REFUSED(rclose, soft_cm_refuse_descriptor)
REFUSED(rconnect, soft_cm_refuse_descriptor)
REFUSED(rfcntl, soft_cm_refuse_descriptor)
REFUSED(rgetpeername, soft_cm_refuse_descriptor)
REFUSED(rgetsockname, soft_cm_refuse_descriptor)
REFUSED(rgetsockopt, soft_cm_refuse_descriptor)
REFUSED(riomap, soft_cm_refuse_descriptor)
REFUSED(riounmap, soft_cm_refuse_descriptor)
REFUSED(riowrite, soft_cm_refuse_descriptor)
REFUSED(rlisten, soft_cm_refuse_descriptor)
REFUSED(rread, soft_cm_refuse_descriptor)
REFUSED(rreadv, soft_cm_refuse_descriptor)
REFUSED(rrecv, soft_cm_refuse_descriptor)
REFUSED(rrecvfrom, soft_cm_refuse_descriptor)
REFUSED(rrecvmsg, soft_cm_refuse_descriptor)
REFUSED(rsend, soft_cm_refuse_descriptor)
REFUSED(rsendmsg, soft_cm_refuse_descriptor)
REFUSED(rsendto, soft_cm_refuse_descriptor)
REFUSED(rsetsockopt, soft_cm_refuse_descriptor)
REFUSED(rshutdown, soft_cm_refuse_descriptor)
REFUSED(rwrite, soft_cm_refuse_descriptor)
REFUSED(rwritev, soft_cm_refuse_descriptor)

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}
