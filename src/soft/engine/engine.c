/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of a process: its making and end, wires, queue pairs, and what a fork leaves of it.
 *
 * The pointer to the one engine is this library's only process-wide state; `making` guards it.
 */
#include "soft/engine/engine.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/engine/board.h"
#include "soft/engine/parts.h"
#include "soft/engine/show.h"

#include "base/banned.h"

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static struct soft_engine *current;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void close_links(struct soft_engine *e)
{
	for (struct soft_wire *w = e->wires; w; w = w->next) {
		soft_link_close(w->link);
		w->link = NULL;
		soft_board_close(w->board);
		w->board = NULL;
	}
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&making);
	if (current)
		pthread_mutex_lock(&current->lock);
}

static void fork_parent(void)
{
	if (current)
		pthread_mutex_unlock(&current->lock);
	pthread_mutex_unlock(&making);
}

/*
 * The child has no thread, and must not keep the parent's sockets: a copy that nobody reads would
 * go on taking the dead parent's share of the port, and its slot.
 */
static void fork_child(void)
{
	struct soft_engine *e = current;

	if (e) {
		e->inherited = true;
		close_links(e);
		soft_lanes_done(e);
		soft_slot_free(e->slot);
		e->slot = NULL;
		close_fd(&e->wake_fd);
		close_fd(&e->show_fd);
		close_fd(&e->caller_fd);
		current = NULL;
		pthread_mutex_unlock(&e->lock);
	}
	pthread_mutex_unlock(&making);
}

static void watch_forks(void)
{
	/* Without memory for the handlers a fork is no safer than with another library's sockets.
	 */
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void soft_engine_watch_forks(void)
{
	pthread_once(&fork_once, watch_forks);
}

static void engine_free(struct soft_engine *e)
{
	struct soft_wire *next;

	for (struct soft_wire *w = e->wires; w; w = next) {
		next = w->next;
		soft_cq_late_drop(&w->late);
		soft_link_close(w->link);
		soft_board_close(w->board);
		free(w);
	}
	soft_lanes_done(e);
	soft_slot_free(e->slot);
	soft_regions_free(e->regions);
	soft_qp_table_done(&e->table);
	close_fd(&e->wake_fd);
	close_fd(&e->show_fd);
	close_fd(&e->caller_fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* Two processes whose callers never sleep want two, and their threads must not take those. */
static bool processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 2;
}

static int engine_make(soft_engine_show *show, void *show_arg, struct soft_engine **ret,
		       struct pp_error *err)
{
	struct soft_engine *e = calloc(1, sizeof(*e));
	pthread_mutexattr_t attr;
	int rc;

	if (!e)
		return pp_error_set(err, -ENOMEM, "no memory");
	e->wake_fd = e->show_fd = e->caller_fd = -1;
	e->users = 1;
	e->processors = processors();
	/* Without it all goes by the wire. */
	(void)soft_lanes_init(&e->lanes);
	pthread_mutexattr_init(&attr);
	/* Held for microseconds: a short spin beats a sleep. */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&e->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	rc = soft_slot_take(&e->slot, err);
	if (rc == 0 &&
	    ((rc = soft_regions_new(&e->regions)) < 0 || (rc = soft_qp_table_init(&e->table)) < 0))
		pp_error_set(err, rc, "no memory");
	if (rc == 0 && show) {
		e->show = show;
		e->show_arg = show_arg;
		/* Not being seen is no reason not to work. */
		e->show_fd = soft_show_listen(soft_slot_number(e->slot));
		if (e->show_fd < 0)
			e->show_fd = -1;
	}
	if (rc == 0 && (rc = soft_engine_thread_start(e)) < 0)
		pp_error_set(err, rc, "no thread");
	if (rc < 0) {
		engine_free(e);
		return rc;
	}
	*ret = e;
	return 0;
}

int soft_engine_get(soft_engine_show *show, void *show_arg, struct soft_engine **ret,
		    struct pp_error *err)
{
	int rc = 0;

	soft_engine_watch_forks();
	pthread_mutex_lock(&making);
	if (current)
		current->users++;
	else
		rc = engine_make(show, show_arg, &current, err);
	if (rc == 0)
		*ret = current;
	pthread_mutex_unlock(&making);
	return rc;
}

void soft_engine_put(struct soft_engine *e)
{
	bool last;

	if (!e)
		return;
	/* To the end: a child forked in between would keep sockets that nobody reads. */
	pthread_mutex_lock(&making);
	last = --e->users == 0;
	if (last && e == current)
		current = NULL;
	if (last && !e->inherited)
		soft_engine_thread_stop(e);
	if (last)
		engine_free(e);
	pthread_mutex_unlock(&making);
}

void soft_engine_on_request(struct soft_engine *e, soft_engine_request *answer)
{
	atomic_store(&e->request, answer);
}

void soft_engine_lock(struct soft_engine *e)
{
	pthread_mutex_lock(&e->lock);
}

void soft_engine_unlock(struct soft_engine *e)
{
	pthread_mutex_unlock(&e->lock);
}

bool soft_engine_inherited(const struct soft_engine *e)
{
	return e->inherited;
}

unsigned int soft_engine_slot(const struct soft_engine *e)
{
	return e->slot ? soft_slot_number(e->slot) : 0;
}

struct soft_regions *soft_engine_regions(struct soft_engine *e)
{
	return e->regions;
}

static struct soft_wire *find_wire(struct soft_engine *e, const struct soft_link_config *config)
{
	for (struct soft_wire *w = e->wires; w; w = w->next)
		if (w->config.num_gids == config->num_gids &&
		    !memcmp(w->config.gids, config->gids, config->num_gids * sizeof(*config->gids)))
			return w;
	return NULL;
}

static struct soft_wire *make_wire(struct soft_engine *e, const struct soft_link_config *config,
				   const struct soft_fault_plan *faults, struct soft_board *board)
{
	static const struct soft_fault_plan none;
	struct soft_wire *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->engine = e;
	w->config = *config;
	w->config.slot = soft_engine_slot(e);
	w->config.handover = e->slot;
	soft_fault_init(&w->fault, faults ? faults : &none);
	w->config.fault = &w->fault;
	w->board = board;
	w->next = e->wires;
	e->wires = w;
	return w;
}

int soft_engine_open_wire(struct soft_engine *e, const struct soft_link_config *config,
			  const struct soft_fault_plan *faults, struct soft_board *board,
			  struct soft_wire **ret)
{
	struct soft_wire *w;

	soft_engine_lock(e);
	w = find_wire(e, config);
	if (!w)
		w = make_wire(e, config, faults, board);
	if (w)
		w->users++;
	soft_engine_unlock(e);
	if (!w || w->board != board)
		soft_board_close(board);
	if (!w)
		return -ENOMEM;
	*ret = w;
	return 0;
}

void soft_engine_close_wire(struct soft_engine *e, struct soft_wire *wire)
{
	bool last;

	soft_engine_lock(e);
	last = --wire->users == 0;
	for (struct soft_wire **at = &e->wires; last && *at; at = &(*at)->next) {
		if (*at == wire) {
			*at = wire->next;
			break;
		}
	}
	/* Under the lock: a child forked after it would keep sockets that nobody reads. */
	if (last) {
		if (wire->board)
			(void)soft_board_write(wire->board, wire, pp_clock_monotonic(),
					       /* at_once= */ true);
		soft_link_close(wire->link);
		soft_board_close(wire->board);
		soft_cq_late_drop(&wire->late);
	}
	soft_engine_unlock(e);
	if (!last)
		return;
	free(wire);
	/* The thread may sleep on these sockets: it looks again. */
	if (!e->inherited)
		soft_engine_thread_wake(e);
}

int soft_engine_add_qp(struct soft_engine *e, struct soft_wire *wire, struct soft_qp *qp,
		       struct pp_error *err)
{
	int rc;

	if (e->inherited)
		return pp_error_set(err, -EIO, "the device was opened before fork()");
	if (!wire->link) {
		rc = soft_link_open(&wire->config, &wire->link, err);
		if (rc < 0)
			return rc;
		soft_engine_thread_wake(e);
	}
	if (!wire->config.wire_only)
		soft_lanes_listen(e);
	rc = soft_qp_table_add(&e->table, soft_slot_number(e->slot), wire, qp);
	if (rc < 0)
		return pp_error_set(err, rc, "no queue pair number is free");
	qp->regions = e->regions;
	qp->counters = &wire->counters;
	return 0;
}

void soft_engine_settle(struct soft_engine *e)
{
	pp_ns before = e->next_deadline;

	if (!e->inherited && e->held_until)
		soft_engine_hand_over(e, before, soft_engine_send_ready(e, pp_clock_monotonic()));
}

void soft_engine_remove_qp(struct soft_engine *e, struct soft_qp *qp)
{
	pp_ns before = e->next_deadline;

	soft_engine_unready(e, qp);
	soft_lanes_detach(e, qp);
	soft_qp_table_remove(&e->table, qp);
	soft_engine_window_put(e, qp->window);
	qp->window = qp->wire_window = NULL;
	/* What waited for the window that this one held may go on. */
	if (!e->inherited)
		soft_engine_hand_over(e, before, soft_engine_send_ready(e, pp_clock_monotonic()));
}

void soft_engine_take_back(struct soft_engine *e, const void *base, uint64_t len)
{
	soft_lanes_take_back(e, base, len);
}

void soft_engine_withdraw(struct soft_engine *e, struct soft_qp *qp)
{
	soft_lanes_detach(e, qp);
}

void soft_engine_each_qp(struct soft_engine *e, void (*each)(void *, struct soft_qp *), void *arg)
{
	for (struct soft_qp *qp = e->table.all; qp; qp = qp->table_next)
		each(arg, qp);
}

int soft_engine_path(struct soft_engine *e, struct soft_wire *wire, const struct soft_gid *src,
		     const struct soft_gid *dst, uint32_t entropy, struct soft_path *ret)
{
	if (e->inherited || !wire->link)
		return -EIO;
	return soft_link_path(wire->link, src, dst, entropy, ret);
}

int soft_engine_connect(struct soft_engine *e, struct soft_qp *qp, const struct soft_gid *src,
			const struct soft_gid *dst, uint8_t traffic_class, uint8_t hop_limit,
			uint32_t flow_label)
{
	struct soft_wire *wire = soft_qp_table_wire(&e->table, qp);
	struct soft_window *window;
	struct soft_path path;
	int rc = soft_engine_path(e, wire, src, dst, qp->num, &path);

	if (rc < 0)
		return rc;
	/*
	 * The peer's buffer cannot be asked for: take it to be like ours. The kernel counts about
	 * twice the bytes of a packet, and other senders may be there.
	 */
	window = soft_engine_window_get(e, dst, soft_link_receive_buffer(wire->link) / 4);
	if (!window)
		return -ENOMEM;
	soft_lanes_detach(e, qp);
	/* What is under way (a new address in SQD) counts where its answers will be counted. */
	if (qp->window)
		soft_window_dropped(qp->window, qp->req.bytes_out);
	soft_window_sent(window, qp->req.bytes_out);
	soft_engine_window_put(e, qp->window);
	qp->window = qp->wire_window = window;
	path.traffic_class = traffic_class;
	path.hop_limit = hop_limit;
	path.flow_label = flow_label;
	qp->path = path;
	return 0;
}

void soft_engine_send(struct soft_qp *qp, const struct soft_path *path, const struct soft_packet *p,
		      const struct iovec *pieces, unsigned int num_pieces)
{
	struct soft_wire *wire = soft_wire_of(qp);

	if (qp->jumbo)
		soft_lanes_send(wire->engine, qp, p, pieces, num_pieces);
	else
		soft_link_send(wire->link, path, p, pieces, num_pieces);
}

const struct soft_counters *soft_wire_counters(const struct soft_wire *wire)
{
	return &wire->counters;
}

const struct soft_link_stats *soft_wire_stats(const struct soft_wire *wire)
{
	return wire->link ? soft_link_stats(wire->link) : &wire->no_stats;
}

const struct soft_drops *soft_wire_drops(const struct soft_wire *wire)
{
	return &wire->drops;
}
