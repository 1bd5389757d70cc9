/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of a process: its making and end, and what a fork leaves of it.
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

static const pp_ns LAST_TRAINS = 10 * PP_MILLISECOND;

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
	if (current) {
		pthread_mutex_unlock(&current->lock);
		/* What a GPU's thread left meanwhile is the engine's thread's: other handlers may
		 * still hold the allocator. */
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load(&current->gpus.over))
			soft_engine_thread_wake(current);
	}
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
		soft_gpus_inherited(e);
		soft_reader_inherited(e);
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

	/* First: what a lane has page-locked its GPU lets go. */
	soft_engine_lock(e);
	soft_lanes_done(e);
	soft_engine_unlock(e);
	/* A child has neither their threads nor any business with CUDA. */
	if (!e->inherited)
		soft_gpus_done(e);
	for (struct soft_wire *w = e->wires; w; w = next) {
		next = w->next;
		soft_cq_late_drop(&w->late);
		soft_writer_end(w, e->inherited);
		soft_link_close(w->link);
		soft_board_close(w->board);
		free(w);
	}
	soft_reader_free(e);
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
static bool processors(cpu_set_t *ret)
{
	return sched_getaffinity(0, sizeof(*ret), ret) == 0 && CPU_COUNT(ret) > 2;
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
	e->processors = processors(&e->affinity);
	soft_gpus_init(&e->gpus);
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
	if (last && !e->inherited) {
		soft_engine_thread_stop(e);
		soft_reader_stop(e);
	}
	if (last)
		engine_free(e);
	pthread_mutex_unlock(&making);
}

/*
 * A process that ends without closing its devices leaves its last counts on their boards, too. A
 * lock that is held then may be held for good.
 */
__attribute__((destructor)) static void last_words(void)
{
	struct soft_engine *e = NULL;

	if (pthread_mutex_trylock(&making))
		return;
	if (current && !current->inherited && !pthread_mutex_trylock(&current->lock))
		e = current;
	for (struct soft_wire *w = e ? e->wires : NULL; w; w = w->next) {
		/* Acknowledges behind bulk, whose completions the application has seen. */
		soft_writer_drain(w, LAST_TRAINS);
		if (w->board)
			(void)soft_board_write(w->board, w, pp_clock_monotonic(),
					       /* at_once= */ true);
	}
	if (e)
		soft_engine_unlock(e);
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
	bool far = e->mover.regions || e->gpus.mapper;

	pthread_mutex_unlock(&e->lock);
	/* Who had copies for the engine and found it locked has left them to us. */
	if (far)
		soft_gpus_deliver(e);
}

bool soft_engine_inherited(const struct soft_engine *e)
{
	return e->inherited;
}

unsigned int soft_engine_slot(const struct soft_engine *e)
{
	return e->slot ? soft_slot_number(e->slot) : 0;
}

int soft_engine_add_region(struct soft_engine *e, struct soft_region *region)
{
	int rc = soft_regions_add(e->regions, region);

	if (!rc && region->copier)
		e->mover.regions++;
	return rc;
}

struct soft_regions *soft_engine_regions(struct soft_engine *e)
{
	return e->regions;
}
