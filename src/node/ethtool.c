/* SPDX-License-Identifier: Apache-2.0 */
#include "node/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { MAX_STATS = 1 << 16 };

/* Names of mlx5 (Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst). */
static const char *const wanted[] = {
	"rx_discards_phy",	   "rx_prio#_pause",	      "tx_prio#_pause",
	"rx_prio#_discards",	   "rx_prio#_buf_discard",    "rx_prio#_cong_discard",
	"outbound_pci_stalled_rd", "outbound_pci_stalled_wr",
};

bool pp_ethtool_match(const char *pattern, const char *name)
{
	size_t digits;

	for (; *pattern; pattern++) {
		if (*pattern == '#') {
			digits = strspn(name, "0123456789");
			if (!digits)
				return false;
			name += digits;
		} else if (*pattern != *name++) {
			return false;
		}
	}
	return !*name;
}

bool pp_ethtool_wanted(const char *name)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(wanted); i++)
		if (pp_ethtool_match(wanted[i], name))
			return true;
	return false;
}

/* ioctl(SIOCETHTOOL): 0 or -errno. */
static int call(int fd, const char *netdev, void *command)
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, netdev, strlen(netdev) + 1);
	request.ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
}

static void pause_of(struct pp_json *data, int fd, const char *netdev)
{
	struct ethtool_pauseparam pause = {.cmd = ETHTOOL_GPAUSEPARAM};
	int r;

	pp_ask_doing("ETHTOOL_GPAUSEPARAM");
	r = call(fd, netdev, &pause);
	pp_json_i64(data, "pause_errno", -r);
	if (r)
		return;
	pp_json_bool(data, "pause_rx", pause.rx_pause);
	pp_json_bool(data, "pause_tx", pause.tx_pause);
}

static int stats_count(int fd, const char *netdev, uint32_t *ret)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_STATS}};
	int r = call(fd, netdev, &set);

	if (r)
		return r;
	if (!set.info.sset_mask || !set.count)
		return -EOPNOTSUPP;
	if (set.count > MAX_STATS)
		return -EFBIG;
	*ret = set.count;
	return 0;
}

struct stats {
	struct ethtool_gstrings *names;
	struct ethtool_stats *values;
	uint32_t n;
};

static void stats_done(struct stats *s)
{
	free(s->names);
	free(s->values);
}

static int read_stats(int fd, const char *netdev, struct stats *s)
{
	int r = stats_count(fd, netdev, &s->n);

	if (r)
		return r;
	s->names = calloc(1, sizeof(*s->names) + (size_t)s->n * ETH_GSTRING_LEN);
	s->values = calloc(1, sizeof(*s->values) + (size_t)s->n * sizeof(s->values->data[0]));
	if (!s->names || !s->values)
		return -ENOMEM;
	*s->names = (struct ethtool_gstrings){
		.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = s->n};
	*s->values = (struct ethtool_stats){.cmd = ETHTOOL_GSTATS, .n_stats = s->n};
	r = call(fd, netdev, s->names);
	if (!r)
		r = call(fd, netdev, s->values);
	/* The set may have changed between the calls: the driver says how many it wrote. */
	if (!r && s->names->len < s->n)
		s->n = s->names->len;
	if (!r && s->values->n_stats < s->n)
		s->n = s->values->n_stats;
	return r;
}

static void each_wanted(const struct stats *s, pp_ethtool_each *each, void *arg)
{
	char name[ETH_GSTRING_LEN + 1] = "";

	for (uint32_t i = 0; i < s->n; i++) {
		memcpy(name, s->names->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		/* Beyond 63 bits is no count of anything, and would spoil the whole answer. */
		if (pp_ethtool_wanted(name) && s->values->data[i] <= INT64_MAX)
			each(arg, name, (int64_t)s->values->data[i]);
	}
}

static void write_one(void *arg, const char *name, int64_t value)
{
	pp_json_i64(arg, name, value);
}

static int stats_of(struct pp_json *data, int fd, const char *netdev)
{
	struct stats PP_CLEANUP(stats_done) s = {.n = 0};
	int r;

	pp_ask_doing("ETHTOOL_GSTATS");
	r = read_stats(fd, netdev, &s);
	if (r)
		return r;
	pp_json_object(data, "stats");
	each_wanted(&s, write_one, data);
	pp_json_end_object(data);
	return 0;
}

int pp_ethtool_stats(const char *netdev, pp_ethtool_each *each, void *arg)
{
	struct stats PP_CLEANUP(stats_done) s = {.n = 0};
	int PP_AUTO_CLOSE fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = strlen(netdev) < IF_NAMESIZE ? read_stats(fd, netdev, &s) : -ENODEV;
	if (!r)
		each_wanted(&s, each, arg);
	return r;
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct pp_netdevs *netdevs = arg;
	int PP_AUTO_CLOSE fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return pp_error_set(err, -errno, "socket: %s", pp_errno_name(errno));
	for (size_t i = 0; i < netdevs->n; i++) {
		if (strlen(netdevs->name[i]) >= IF_NAMESIZE)
			continue;
		pp_json_object(data, netdevs->name[i]);
		pause_of(data, fd, netdevs->name[i]);
		pp_json_i64(data, "stats_errno", -stats_of(data, fd, netdevs->name[i]));
		pp_json_end_object(data);
	}
	return 0;
}

int pp_ask_ethtool(struct pp_source *s, const struct pp_netdevs *netdevs, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "ethtool", .run = run, .arg = netdevs};

	return pp_ask(s, &q, ret);
}
