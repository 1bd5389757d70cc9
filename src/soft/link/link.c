/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "soft/link/parts.h"
#include "base/banned.h"

static int open_receivers(struct soft_link *link, const struct soft_link_config *config,
			  struct pp_error *err)
{
	for (unsigned int i = 0; i < config->num_gids; i++) {
		size_t buffer;
		int rc = soft_receiver_open(&link->receivers[i], &config->gids[i], &buffer, err);

		if (rc < 0)
			return rc;
		link->num_receivers++;
		if (i == 0 || buffer < link->receive_buffer)
			link->receive_buffer = buffer;
	}
	return 0;
}

int soft_link_set_fault(struct soft_link *link, struct soft_fault *fault)
{
	if (!fault || !soft_fault_active(fault)) {
		/* What is under way arrives. */
		if (link->ill)
			soft_ill_end(link);
		soft_ill_free(link->ill);
		link->ill = NULL;
		return 0;
	}
	return link->ill ? 0 : soft_ill_new(fault, &link->ill);
}

int soft_link_open(const struct soft_link_config *config, struct soft_link **ret,
		   struct pp_error *err)
{
	struct soft_link *link;
	int rc;

	if (config->num_gids == 0 || config->num_gids > SOFT_LINK_GIDS_MAX)
		return pp_error_set(err, -EINVAL, "a link needs 1 to %d addresses",
				    SOFT_LINK_GIDS_MAX);
	link = calloc(1, sizeof(*link));
	if (!link)
		return pp_error_set(err, -ENOMEM, "no memory for a link");
	link->slot = config->slot;
	link->handover = config->handover;
	link->singly = config->singly;
	link->train = &link->own_train;
	for (unsigned int i = 0; i < SOFT_LINK_GIDS_MAX; i++)
		for (unsigned int j = 0; j < SOFT_SENDERS; j++)
			link->senders[i][j].fd = -1;
	rc = soft_link_set_fault(link, config->fault);
	if (rc < 0)
		(void)pp_error_set(err, rc, "no memory for an ill wire");
	else
		rc = open_receivers(link, config, err);
	if (rc < 0) {
		soft_link_close(link);
		return rc;
	}
	for (unsigned int i = 0; i < link->num_receivers; i++)
		if (link->handover)
			soft_steer_start(link, &link->receivers[i]);
		else
			soft_steer_by_number(link->receivers[i].fd);
	*ret = link;
	return 0;
}

void soft_link_close(struct soft_link *link)
{
	if (!link)
		return;
	for (unsigned int i = 0; i < link->num_receivers; i++)
		(void)close(link->receivers[i].fd);
	for (unsigned int i = 0; i < SOFT_LINK_GIDS_MAX; i++)
		for (unsigned int j = 0; j < SOFT_SENDERS; j++)
			if (link->senders[i][j].fd >= 0)
				(void)close(link->senders[i][j].fd);
	soft_ill_free(link->ill);
	free(link);
}

unsigned int soft_link_fds(const struct soft_link *link, int ret_fds[SOFT_LINK_FDS_MAX])
{
	for (unsigned int i = 0; i < link->num_receivers; i++)
		ret_fds[i] = link->receivers[i].fd;
	return link->num_receivers;
}

size_t soft_link_receive_buffer(const struct soft_link *link)
{
	return link->receive_buffer;
}

void soft_link_doubt(struct soft_link *link)
{
	for (unsigned int i = 0; link->handover && i < link->num_receivers; i++)
		soft_steer_doubt(link, &link->receivers[i]);
}

uint64_t soft_link_given(const struct soft_link *link)
{
	return link->given;
}

uint64_t soft_link_bulk(const struct soft_link *link)
{
	return link->bulk;
}

const struct soft_link_stats *soft_link_stats(const struct soft_link *link)
{
	return &link->stats;
}

int soft_link_path(struct soft_link *link, const struct soft_gid *src, const struct soft_gid *dst,
		   uint32_t entropy, struct soft_path *ret)
{
	struct soft_sender *s;
	unsigned int i = 0, j;

	while (i < link->num_receivers && !soft_gid_equal(&link->receivers[i].gid, src))
		i++;
	if (i == link->num_receivers)
		return -EADDRNOTAVAIL;
	if (soft_gid_is_ipv4(src) != soft_gid_is_ipv4(dst))
		return -EAFNOSUPPORT;
	/* Numbers follow each other: a multiplication spreads them over the sockets. */
	j = (entropy * 0x9e3779b1u >> 16) % SOFT_SENDERS;
	s = &link->senders[i][j];
	if (s->fd < 0) {
		int rc = soft_sender_open(s, src);

		if (rc < 0)
			return rc;
		s->no_trains |= link->singly;
	}
	memset(ret, 0, sizeof(*ret));
	soft_icrc_flow_init(&ret->flow, src, dst, s->port);
	ret->hop_limit = 64;
	ret->sender = (uint8_t)(i * SOFT_SENDERS + j);
	return 0;
}

uint64_t soft_link_send(struct soft_link *link, const struct soft_path *path,
			const struct soft_packet *p, const struct iovec *pieces,
			unsigned int num_pieces)
{
	if (!link->ill)
		return soft_train_add(link, path, p, pieces, num_pieces);
	soft_ill_send(link, path, p, pieces, num_pieces);
	return 0;
}

pp_ns soft_link_flush(struct soft_link *link)
{
	soft_train_send(link);
	soft_train_reap(link);
	return link->ill ? soft_ill_flush(link) : 0;
}
