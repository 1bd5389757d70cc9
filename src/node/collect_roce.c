/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes RoCE lossless, or not, on each Ethernet port: classification (trust), the map of
 * priorities, PFC, global pause, ECN, and the counters that ethtool shows.
 *
 * All interfaces are asked in one question each for DCB and ethtool. A driver that does not
 * support a question leaves the facts unknown with that reason.
 */
#include <errno.h>
#include <linux/dcbnl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "node/dcb.h"
#include "node/ethtool.h"
#include "node/hca.h"
#include "base/banned.h"

enum { MAX_PORTS = 4096, VALUE_BYTES = 256, PRIORITIES = 8 };

struct roce {
	struct pp_node *node;
	struct pp_answer dcb, ethtool;
};

struct port {
	struct roce *roce;
	struct pp_object *object;
	char netdev[PP_NETDEV_NAME]; /* the physical one: below a bond or VLAN */
	char dir[PP_PATH_MAX];	     /* its directory, "" unknown */
};

static const char DCB[] = "RTM_GETDCB";
static const char ETHTOOL[] = "SIOCETHTOOL";

static void unknown(struct port *p, enum pp_fact_id id, const char *source, const char *why)
{
	pp_fact_unknown(&p->roce->node->facts, p->object, id, source, "%s: %s", source, why);
}

/*
 * DCB, pause and counters belong to the physical interface. The port's own may be a bond or a
 * VLAN; then the one on the PCI function is meant.
 */
static void find_interface(struct roce *roce, struct pp_object *object, struct port *ret)
{
	const struct pp_node *n = roce->node;
	const char *own = pp_fact_str_or(object, PP_F_PORT_NETDEV, "");
	char net[PP_PATH_MAX], dir[PP_PATH_MAX];
	struct pp_names names;

	*ret = (struct port){.roce = roce, .object = object};
	if (!*own)
		return;
	(void)snprintf(ret->netdev, sizeof(ret->netdev), "%s", own);
	if (object->pci >= 0 && (unsigned int)object->pci < n->pci.n &&
	    !pp_path_join(n->pci.dev[object->pci].path, "net", net) &&
	    !pp_source_list(n->src, net, &names)) {
		const char *pick = names.n == 1 ? names.name[0] : NULL;

		for (size_t i = 0; i < names.n; i++)
			if (!strcmp(names.name[i], own))
				pick = names.name[i];
		if (pick && !pp_path_join(net, pick, ret->dir))
			(void)snprintf(ret->netdev, sizeof(ret->netdev), "%s", pick);
		pp_names_done(&names);
	}
	if (!*ret->dir &&
	    (pp_path_join("/sys/class/net", own, dir) || pp_source_real(n->src, dir, ret->dir)))
		ret->dir[0] = '\0';
}

/* Its object in an answer, or NULL with the reason in @why. */
static const json_t *reply(const struct pp_answer *a, const struct port *p, const char *errno_key,
			   char *why, size_t size)
{
	const json_t *o = json_object_get(a->data, p->netdev);
	int64_t error = 0;

	if (!a->answered)
		(void)snprintf(why, size, "%s", a->detail);
	else if (!json_is_object(o))
		(void)snprintf(why, size, "the answer does not name %s", p->netdev);
	else if (pp_answer_i64(o, errno_key, &error) || error < 0 || error > 4095)
		(void)snprintf(why, size, "the answer for %s is not well-formed", p->netdev);
	else if (error == EOPNOTSUPP)
		(void)snprintf(why, size, "not supported by the driver of %s", p->netdev);
	else if (error)
		(void)snprintf(why, size, "%s: %s", p->netdev, pp_errno_name((int)error));
	else
		return o;
	return NULL;
}

static void set_priority_map(struct port *p, const json_t *dcb, const char *why)
{
	const json_t *map = json_object_get(dcb, "priority_tc"), *tc;
	const char *list[PRIORITIES];
	size_t n = json_array_size(map);

	for (size_t i = 0; i < n && n == PRIORITIES; i++) {
		tc = json_array_get(map, i);
		if (!json_is_integer(tc) || json_integer_value(tc) < 0 ||
		    json_integer_value(tc) >= PRIORITIES)
			n = 0;
		else
			list[i] = pp_arena_printf(&p->roce->node->arena, "%zu:%d", i,
						  (int)json_integer_value(tc));
	}
	if (n == PRIORITIES)
		pp_fact_list(&p->roce->node->facts, p->object, PP_F_PORT_PRIO_MAP, list, n, DCB);
	else
		unknown(p, PP_F_PORT_PRIO_MAP, DCB, why);
}

/* The driver's own list of trusted selectors (Linux 6.3); NULL when it has none. */
static const char *trusted_selector(const json_t *dcb)
{
	const json_t *selectors = json_object_get(dcb, "trust");
	const json_t *first = json_array_get(selectors, 0);

	if (!json_is_array(selectors) || (first && !json_is_integer(first)))
		return NULL;
	/* PCP is what remains without a selector: 802.1Q's default. */
	return first && json_integer_value(first) == IEEE_8021QAZ_APP_SEL_DSCP ? "dscp" : "pcp";
}

/*
 * mlx5 has no list of selectors: it trusts DSCP exactly while its APP table holds an entry that
 * maps one (mlx5e_dcbnl_ieee_setapp() and delapp() switch it). OFED shows a file.
 */
static void set_trust(struct port *p, const json_t *dcb, const char *why)
{
	struct pp_facts *f = &p->roce->node->facts;
	const char *driver = pp_fact_str_or(p->object->parent, PP_F_HCA_DRIVER, "");
	const char *word = trusted_selector(dcb);
	char path[PP_PATH_MAX], text[VALUE_BYTES];
	int64_t apps;

	if (word)
		return pp_fact_str(f, p->object, PP_F_PORT_TRUST, word, DCB);
	if (*p->dir && !pp_path_join(p->dir, "qos/trust_state", path) &&
	    !pp_source_text(p->roce->node->src, path, text, sizeof(text)) &&
	    (!strcasecmp(text, "dscp") || !strcasecmp(text, "pcp")))
		return pp_fact_str(f, p->object, PP_F_PORT_TRUST,
				   strcasecmp(text, "dscp") ? "pcp" : "dscp", path);
	if (!strcmp(driver, "mlx5_core") && !pp_answer_i64(dcb, "dscp_apps", &apps) && apps >= 0)
		return pp_fact_str(f, p->object, PP_F_PORT_TRUST, apps ? "dscp" : "pcp", DCB);
	unknown(p, PP_F_PORT_TRUST, DCB, why);
}

static void set_dcb(struct port *p)
{
	char why[320] = "the driver does not report it";
	const json_t *dcb = reply(&p->roce->dcb, p, "errno", why, sizeof(why));
	int64_t mask;

	if (!pp_answer_i64(dcb, "pfc_mask", &mask) && mask >= 0 && mask <= UINT8_MAX)
		pp_fact_int(&p->roce->node->facts, p->object, PP_F_PORT_PFC, mask, DCB);
	else
		unknown(p, PP_F_PORT_PFC, DCB, why);
	set_priority_map(p, dcb, why);
	set_trust(p, dcb, why);
}

static void set_pause(struct port *p)
{
	char why[320] = "the driver does not report it";
	const json_t *o = reply(&p->roce->ethtool, p, "pause_errno", why, sizeof(why));
	static const struct {
		enum pp_fact_id id;
		const char *key;
	} facts[] = {{PP_F_PORT_PAUSE_RX, "pause_rx"}, {PP_F_PORT_PAUSE_TX, "pause_tx"}};
	bool on;

	for (size_t i = 0; i < PP_ARRAY_LEN(facts); i++) {
		if (!pp_answer_bool(o, facts[i].key, &on))
			pp_fact_bool(&p->roce->node->facts, p->object, facts[i].id, on, ETHTOOL);
		else
			unknown(p, facts[i].id, ETHTOOL, why);
	}
}

/* Sum of the statistics that match; -ENOENT when none does, -ERANGE. */
static int sum(json_t *stats, const char *pattern, int64_t *ret)
{
	const char *name;
	json_t *value;
	int64_t total = 0;
	bool any = false;

	json_object_foreach(stats, name, value)
	{
		if (!pp_ethtool_match(pattern, name) || !json_is_integer(value))
			continue;
		if (json_integer_value(value) < 0 ||
		    __builtin_add_overflow(total, (int64_t)json_integer_value(value), &total))
			return -ERANGE;
		any = true;
	}
	if (!any)
		return -ENOENT;
	*ret = total;
	return 0;
}

static void set_statistics(struct port *p)
{
	char why[320] = "";
	const json_t *o = reply(&p->roce->ethtool, p, "stats_errno", why, sizeof(why));
	static const struct {
		enum pp_fact_id id;
		const char *pattern;
	} facts[] = {{PP_F_C_RX_DISCARDS, "rx_discards_phy"},
		     {PP_F_C_OUT_PCI_STALL_RD, "outbound_pci_stalled_rd"},
		     {PP_F_C_OUT_PCI_STALL_WR, "outbound_pci_stalled_wr"},
		     {PP_F_C_RX_PAUSE, "rx_prio#_pause"},
		     {PP_F_C_TX_PAUSE, "tx_prio#_pause"},
		     {PP_F_C_RX_PRIO_DISCARDS, "rx_prio#_discards"}};
	int64_t value = 0;
	int r;

	for (size_t i = 0; i < PP_ARRAY_LEN(facts); i++) {
		r = o ? sum(json_object_get(o, "stats"), facts[i].pattern, &value) : -ENODATA;
		if (!r)
			pp_fact_int(&p->roce->node->facts, p->object, facts[i].id, value, ETHTOOL);
		else if (r == -ENODATA)
			unknown(p, facts[i].id, ETHTOOL, why);
		else
			pp_fact_unknown(&p->roce->node->facts, p->object, facts[i].id, ETHTOOL,
					"%s has no statistic %s", p->netdev, facts[i].pattern);
	}
}

/* Priorities for which OFED's file enable/<priority> says 1. */
static void set_ecn(struct port *p, enum pp_fact_id id, const char *what)
{
	const char *list[PRIORITIES];
	char path[PP_PATH_MAX] = "", text[VALUE_BYTES], name[64];
	size_t n = 0;
	bool on = false;
	int r = *p->dir ? 0 : -ENOENT;

	for (int i = 0; i < PRIORITIES && !r; i++) {
		(void)snprintf(name, sizeof(name), "ecn/%s/enable/%d", what, i);
		r = pp_path_join(p->dir, name, path);
		if (!r)
			r = pp_source_text(p->roce->node->src, path, text, sizeof(text));
		if (!r)
			r = pp_parse_bool(text, &on);
		if (!r && on)
			list[n++] = pp_arena_printf(&p->roce->node->arena, "%d", i);
	}
	if (r)
		unknown(p, id, *path ? path : "/sys/class/net", pp_source_why(r));
	else
		pp_fact_list(&p->roce->node->facts, p->object, id, list, n, p->dir);
}

/* "Global tclass=106", or nothing when none is forced. */
static void set_traffic_class(struct port *p)
{
	static const char prefix[] = "Global tclass=";
	const char *hca = pp_fact_str_or(p->object->parent, PP_F_HCA_NAME, "");
	char path[PP_PATH_MAX] = "", real[PP_PATH_MAX], text[4096], name[64];
	uint64_t class;
	int r;

	(void)snprintf(name, sizeof(name), "tc/%d/traffic_class",
		       (int)pp_fact_int_or(p->object, PP_F_PORT_NUMBER, 0));
	r = pp_path_join("/sys/class/infiniband", hca, path);
	if (!r)
		r = pp_source_real(p->roce->node->src, path, real);
	if (!r)
		r = pp_path_join(real, name, path);
	if (!r)
		r = pp_source_text(p->roce->node->src, path, text, sizeof(text));
	if (r)
		return unknown(p, PP_F_PORT_TC_DEFAULT, path, pp_source_why(r));
	if (strncmp(text, prefix, sizeof(prefix) - 1) != 0) {
		/* Without the first line there may still be rules; no class is forced then. */
		pp_fact_int(&p->roce->node->facts, p->object, PP_F_PORT_TC_DEFAULT, -1, path);
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	if (pp_parse_u64(text + sizeof(prefix) - 1, 0, UINT8_MAX, &class))
		return unknown(p, PP_F_PORT_TC_DEFAULT, path, "not understood");
	pp_fact_int(&p->roce->node->facts, p->object, PP_F_PORT_TC_DEFAULT, (int64_t) class, path);
}

static void set_port(struct port *p)
{
	static const enum pp_fact_id ids[] = {
		PP_F_PORT_TRUST,	 PP_F_PORT_PRIO_MAP, PP_F_PORT_PFC,
		PP_F_PORT_PAUSE_RX,	 PP_F_PORT_PAUSE_TX, PP_F_PORT_ECN_NP,
		PP_F_PORT_ECN_RP,	 PP_F_C_RX_DISCARDS, PP_F_C_OUT_PCI_STALL_RD,
		PP_F_C_OUT_PCI_STALL_WR, PP_F_C_RX_PAUSE,    PP_F_C_TX_PAUSE,
		PP_F_C_RX_PRIO_DISCARDS};

	set_traffic_class(p);
	if (!*p->netdev) {
		for (size_t i = 0; i < PP_ARRAY_LEN(ids); i++)
			pp_fact_unknown(&p->roce->node->facts, p->object, ids[i], NULL,
					"the port's network interface is unknown");
		return;
	}
	set_dcb(p);
	set_pause(p);
	set_statistics(p);
	set_ecn(p, PP_F_PORT_ECN_NP, "roce_np");
	set_ecn(p, PP_F_PORT_ECN_RP, "roce_rp");
}

/* Keys of an answer must not repeat: two ports of a bond may share an interface. */
static void add_name(struct pp_netdevs *netdevs, const char **names, const char *name)
{
	for (size_t i = 0; i < netdevs->n; i++)
		if (!strcmp(names[i], name))
			return;
	names[netdevs->n++] = name;
}

void pp_collect_roce(struct pp_node *n)
{
	size_t most = n->facts.count[PP_PORT] < MAX_PORTS ? n->facts.count[PP_PORT] : MAX_PORTS;
	struct port *PP_AUTO_FREE ports = calloc(most + 1, sizeof(*ports));
	const char **names = pp_arena_array(&n->arena, most + 1, sizeof(*names));
	struct pp_netdevs netdevs = {.name = names};
	struct roce roce = {.node = n};
	struct pp_object *o = NULL;
	size_t count = 0;

	if (!ports || !names) {
		n->arena.failed = true;
		return;
	}
	while (count < most && (o = pp_object_next(&n->facts, PP_PORT, o))) {
		if (strcmp(pp_fact_str_or(o, PP_F_PORT_LINK, "Ethernet"), "Ethernet") != 0)
			continue;
		find_interface(&roce, o, &ports[count]);
		if (*ports[count].netdev)
			add_name(&netdevs, names, ports[count].netdev);
		count++;
	}
	if (netdevs.n && (pp_ask_dcb(n->src, &netdevs, &roce.dcb) ||
			  pp_ask_ethtool(n->src, &netdevs, &roce.ethtool)))
		n->arena.failed = true;
	for (size_t i = 0; i < count && !n->arena.failed; i++)
		set_port(&ports[i]);
	pp_answer_done(&roce.dcb);
	pp_answer_done(&roce.ethtool);
}
