/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State and rate of every port: LINK_STATE, LINK_SPEED. Three short files a port.
 *
 * A port that was seen and is there no more is a state too, and the one that matters most.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ports.h"
#include "daemon/watch.h"
#include "node/port_text.h"
#include "base/banned.h"

enum { VALUE = 128 };

struct link {
	struct pp_watch_ports ports;
};

static int text_of(struct pp_watch_context *at, const struct pp_watch_port *p, const char *name,
		   char ret[VALUE])
{
	char path[PP_PATH_MAX];
	int r = pp_path_join(p->dir, name, path);

	return r ? r : pp_source_text(at->source, path, ret, VALUE);
}

static int state_of(struct pp_watch_context *at, const struct pp_watch_port *p,
		    struct pp_looks *into)
{
	char text[VALUE], raw[2 * VALUE], logical[64], physical[64] = "";
	int r = text_of(at, p, "state", text);

	if (r)
		return pp_look_unknown(into, PP_SIGNAL_LINK_STATE, p->object, "%s/state: %s",
				       p->dir, pp_source_why(r));
	if (pp_port_state_parse(text, logical, sizeof(logical)))
		return pp_look_unknown(into, PP_SIGNAL_LINK_STATE, p->object,
				       "%s/state: not understood: '%.40s'", p->dir, text);
	(void)snprintf(raw, sizeof(raw), "%s", text);
	if (!text_of(at, p, "phys_state", text) &&
	    !pp_port_state_parse(text, physical, sizeof(physical)))
		(void)snprintf(raw + strlen(raw), sizeof(raw) - strlen(raw), "; %s", text);
	return pp_look_state(into, PP_SIGNAL_LINK_STATE, p->object, raw, "%s%s%s", logical,
			     *physical ? ", " : "", physical);
}

/* A port that is down has whatever rate its driver makes up: only an active one is told. */
static int speed_of(struct pp_watch_context *at, const struct pp_watch_port *p,
		    struct pp_looks *into)
{
	char text[VALUE], state[VALUE];
	int64_t mbps;
	int r = text_of(at, p, "rate", text);

	if (!text_of(at, p, "state", state) && !strstr(state, "ACTIVE"))
		return 0;
	if (r)
		return pp_look_unknown(into, PP_SIGNAL_LINK_SPEED, p->object, "%s/rate: %s", p->dir,
				       pp_source_why(r));
	if (pp_port_rate_parse(text, &mbps))
		return pp_look_unknown(into, PP_SIGNAL_LINK_SPEED, p->object,
				       "%s/rate: not understood: '%.40s'", p->dir, text);
	return pp_look_state(into, PP_SIGNAL_LINK_SPEED, p->object, text, "%.10g Gb/s",
			     (double)mbps / 1000);
}

/* The hca's own PCI Express link; those above it are of watch_facts.c. */
static int pcie_of(struct pp_watch_context *at, const struct pp_watch_port *p,
		   struct pp_looks *into)
{
	const char *end = strstr(p->dir, "/infiniband/");
	char path[PP_PATH_MAX], speed[VALUE], width[VALUE], object[sizeof(p->hca) + 32], *port;
	int mts, lanes;

	(void)snprintf(object, sizeof(object), "%.48s", p->object);
	port = strstr(object, " port ");
	if (!end || !port || !p->pci)
		return 0;
	(void)snprintf(port, 6, " pcie");
	for (int i = 0; i < 2; i++) {
		int r = (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)(end - p->dir), p->dir,
					 i ? "current_link_width" : "current_link_speed") >=
					sizeof(path)
				? -ENAMETOOLONG
				: pp_source_text(at->source, path, i ? width : speed, VALUE);

		if (r)
			return pp_look_unknown(into, PP_SIGNAL_LINK_SPEED, object, "%s: %s", path,
					       pp_source_why(r));
	}
	mts = pp_pci_speed_parse(speed);
	lanes = pp_pci_width_parse(width);
	if (mts <= 0 || lanes <= 0)
		return pp_look_unknown(into, PP_SIGNAL_LINK_SPEED, object,
				       "not understood: '%.40s', '%.40s'", speed, width);
	return pp_look_state(into, PP_SIGNAL_LINK_SPEED, object, speed, "%.10g GT/s x%d",
			     (double)mts / 1000, lanes);
}

/* Ports of one hca follow one another. */
static bool is_first(const struct pp_watch_ports *all, size_t i)
{
	return !i || strcmp(all->port[i].hca, all->port[i - 1].hca) != 0;
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	struct link *l = pp_watch_state(state, sizeof(*l));
	int r = l ? pp_watch_ports_read(at->source, &l->ports) : -ENOMEM;

	for (size_t i = 0; !r && i < l->ports.n; i++) {
		const struct pp_watch_port *p = &l->ports.port[i];

		if (p->gone) {
			r = pp_look_state(into, PP_SIGNAL_LINK_STATE, p->object, NULL,
					  PP_OBJECT_GONE);
			continue;
		}
		r = state_of(at, p, into);
		if (!r)
			r = speed_of(at, p, into);
		if (!r && is_first(&l->ports, i))
			r = pcie_of(at, p, into);
	}
	if (!r && l->ports.why[0])
		r = pp_looks_add(into,
				 &(struct pp_look){
					 .kind = PP_SIGNAL_LINK_STATE,
					 .object = "node",
					 .unknown = l->ports.why,
					 .yet = l->ports.none ? PP_LOOK_NONE : PP_LOOK_NOTHING,
				 });
	return r ? pp_error_set(err, r, "watching links: %s", pp_source_why(r)) : 0;
}

static void end(void *state)
{
	struct link *l = state;

	if (l)
		pp_watch_ports_done(&l->ports);
	free(l);
}

const struct pp_watcher pp_watch_link = {
	.name = "link", .period_ms = 5000, .look = look, .end = end};
