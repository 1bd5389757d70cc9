/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of an RDMA device: <device>/ports/<n>.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "node/ask_verbs.h"
#include "node/hca.h"
#include "node/port_text.h"
#include "base/banned.h"

enum { VALUE_BYTES = 256, MAX_PORT = 255, MAX_PKEYS = 4096, PKEY_GAP = 16 };

/* Text of <dir>/<name>; unknown with the reason when it cannot be read. */
static int attribute(struct pp_hca *h, struct pp_object *port, enum pp_fact_id id, const char *dir,
		     const char *name, char path[PP_PATH_MAX], char text[VALUE_BYTES])
{
	int r = pp_path_join(dir, name, path);

	if (!r)
		r = pp_source_text(h->node->src, path, text, VALUE_BYTES);
	if (r)
		pp_fact_unknown(&h->node->facts, port, id, path, "%s: %s", path, pp_source_why(r));
	return r;
}

static void garbled(struct pp_hca *h, struct pp_object *port, enum pp_fact_id id, const char *path,
		    const char *text)
{
	pp_fact_unknown(&h->node->facts, port, id, path, "%s: not understood: '%.40s'", path, text);
}

static void read_state(struct pp_hca *h, struct pp_object *port, enum pp_fact_id id,
		       const char *dir, const char *name)
{
	char path[PP_PATH_MAX], text[VALUE_BYTES], state[64];

	if (attribute(h, port, id, dir, name, path, text))
		return;
	if (pp_port_state_parse(text, state, sizeof(state)))
		garbled(h, port, id, path, text);
	else
		pp_fact_str(&h->node->facts, port, id, state, path);
}

static void read_lid(struct pp_hca *h, struct pp_object *port, enum pp_fact_id id, const char *dir,
		     const char *name)
{
	char path[PP_PATH_MAX], text[VALUE_BYTES];
	uint64_t lid;

	if (attribute(h, port, id, dir, name, path, text))
		return;
	if (pp_parse_hex(text, UINT32_MAX, &lid))
		garbled(h, port, id, path, text);
	else
		pp_fact_int(&h->node->facts, port, id, (int64_t)lid, path);
}

static void read_rate(struct pp_hca *h, struct pp_object *port, const char *dir)
{
	char path[PP_PATH_MAX], text[VALUE_BYTES];
	int64_t mbps;

	if (attribute(h, port, PP_F_PORT_RATE, dir, "rate", path, text))
		return;
	if (pp_port_rate_parse(text, &mbps))
		garbled(h, port, PP_F_PORT_RATE, path, text);
	else
		pp_fact_int(&h->node->facts, port, PP_F_PORT_RATE, mbps, path);
}

/*
 * Keys that are not 0. Tables are filled from 0 on: like a GID table, one is read until
 * PKEY_GAP empty entries in a row, not to its end.
 */
static void read_pkeys(struct pp_hca *h, struct pp_object *port, const char *dir)
{
	const char *keys[MAX_PKEYS];
	char path[PP_PATH_MAX], text[VALUE_BYTES], name[32];
	unsigned int empty = 0, i, n = 0;
	uint64_t key;
	int r = 0;

	for (i = 0; i < MAX_PKEYS && empty < PKEY_GAP; i++) {
		(void)snprintf(name, sizeof(name), "pkeys/%u", i);
		r = pp_path_join(dir, name, path);
		if (!r)
			r = pp_source_text(h->node->src, path, text, sizeof(text));
		if (r)
			break;
		if (pp_parse_hex(text, UINT16_MAX, &key))
			return garbled(h, port, PP_F_PORT_PKEYS, path, text);
		empty = key ? 0 : empty + 1;
		if (key)
			keys[n++] = pp_arena_printf(&h->node->arena, "0x%04x", (unsigned int)key);
	}
	if (r && (r != -ENOENT || i == 0))
		return pp_fact_unknown(&h->node->facts, port, PP_F_PORT_PKEYS, path, "%s: %s", path,
				       pp_source_why(r));
	if (!pp_path_join(dir, "pkeys", path))
		pp_fact_list(&h->node->facts, port, PP_F_PORT_PKEYS, keys, n, path);
}

/* "Ethernet", "InfiniBand"; *ret_known false when neither could be established. */
static bool read_link_layer(struct pp_hca *h, struct pp_object *port, const char *dir,
			    bool *ret_known)
{
	static const char *const layers[] = {"Ethernet", "InfiniBand", "Unspecified"};
	char path[PP_PATH_MAX], text[VALUE_BYTES];

	*ret_known = false;
	if (attribute(h, port, PP_F_PORT_LINK, dir, "link_layer", path, text))
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(layers); i++) {
		if (strcmp(text, layers[i]) != 0)
			continue;
		pp_fact_str(&h->node->facts, port, PP_F_PORT_LINK, text, path);
		*ret_known = true;
		return i == 0;
	}
	garbled(h, port, PP_F_PORT_LINK, path, text);
	return false;
}

static void set_active_mtu(struct pp_hca *h, struct pp_object *port, int64_t number)
{
	int64_t mtu;

	if (!pp_verbs_active_mtu(h->verbs, number, &mtu))
		pp_fact_int(&h->node->facts, port, PP_F_PORT_ACTIVE_MTU, mtu, "ibv_query_port");
	else
		pp_fact_unknown(&h->node->facts, port, PP_F_PORT_ACTIVE_MTU, "ibv_query_port", "%s",
				h->verbs ? "ibv_query_port gave none" : h->verbs_why);
}

static void read_port(struct pp_hca *h, const char *ports, uint64_t number)
{
	struct pp_facts *f = &h->node->facts;
	char dir[PP_PATH_MAX], name[32], netdev[PP_NETDEV_NAME] = "";
	struct pp_object *port;
	bool ethernet, known;

	(void)snprintf(name, sizeof(name), "%u", (unsigned int)number);
	if (pp_path_join(ports, name, dir))
		return;
	port = pp_object_add(f, PP_PORT,
			     pp_arena_printf(&h->node->arena, "%s/%s", h->object->id, name));
	if (!port)
		return;
	port->parent = h->object;
	port->pci = h->object->pci;
	port->name = pp_arena_printf(&h->node->arena, "%s/%s", h->name, name);
	pp_fact_int(f, port, PP_F_PORT_NUMBER, (int64_t)number, dir);
	read_state(h, port, PP_F_PORT_STATE, dir, "state");
	read_state(h, port, PP_F_PORT_PHYS, dir, "phys_state");
	read_rate(h, port, dir);
	ethernet = read_link_layer(h, port, dir, &known);
	read_lid(h, port, PP_F_PORT_LID, dir, "lid");
	read_lid(h, port, PP_F_PORT_SM_LID, dir, "sm_lid");
	read_pkeys(h, port, dir);
	/* A port of unknown kind is read as Ethernet: what it lacks becomes unknown. */
	pp_port_read_gids(h, port, dir, ethernet || !known, netdev);
	pp_port_read_netdev(h, port, (int64_t)number, ethernet || !known, netdev);
	set_active_mtu(h, port, (int64_t)number);
	pp_port_read_counters(h, port, dir, ethernet || !known);
}

/* Port directories are numbers; sysfs has no order, people expect theirs. */
static unsigned int port_numbers(const struct pp_names *names, bool present[MAX_PORT + 1])
{
	unsigned int n = 0;
	uint64_t number;

	for (size_t i = 0; i < names->n; i++) {
		if (pp_parse_u64(names->name[i], 1, MAX_PORT, &number) || present[number])
			continue;
		present[number] = true;
		n++;
	}
	return n;
}

void pp_hca_read_ports(struct pp_hca *h)
{
	struct pp_facts *f = &h->node->facts;
	bool present[MAX_PORT + 1] = {false};
	char path[PP_PATH_MAX];
	struct pp_names names;
	unsigned int n;
	int r = pp_path_join(h->dir, "ports", path);

	if (!r)
		r = pp_source_list(h->node->src, path, &names);
	if (r)
		return pp_fact_unknown(f, h->object, PP_F_HCA_PORTS, path, "%s: %s", path,
				       pp_source_why(r));
	n = port_numbers(&names, present);
	pp_names_done(&names);
	pp_fact_int(f, h->object, PP_F_HCA_PORTS, n, path);
	for (uint64_t i = 1; i <= MAX_PORT; i++)
		if (present[i])
			read_port(h, path, i);
}
