/* SPDX-License-Identifier: Apache-2.0 */
#include "node/ask_verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "node/verbs.h"
#include "base/banned.h"

enum { MAX_PORTS = 255 };

static int library(struct pp_json *data, const void *arg, struct pp_error *err)
{
	struct pp_verbs v;
	struct link_map *map = NULL;
	char *PP_AUTO_FREE real = NULL;
	int r = pp_verbs_load(&v, err);

	(void)arg;
	if (r)
		return r;
	if (!dlinfo(v.library, RTLD_DI_LINKMAP, &map) && map->l_name) {
		pp_json_str(data, "path", map->l_name);
		real = realpath(map->l_name, NULL);
		if (real)
			pp_json_str(data, "real", real);
	}
	pp_json_bool(data, "reg_dmabuf_mr", v.reg_dmabuf != NULL);
	return 0;
}

static int load_and_list(struct pp_verbs *v, struct ibv_device ***ret, struct pp_error *err)
{
	int r = pp_verbs_load(v, err), n = 0;

	if (r)
		return r;
	pp_ask_doing("ibv_get_device_list");
	errno = 0;
	*ret = v->get_device_list(&n);
	if (*ret)
		return 0;
	return pp_error_set(err, errno ? -errno : -EIO, "ibv_get_device_list: %s",
			    pp_errno_name(errno ? errno : EIO));
}

/* One entry of "devices" for each device that the library lists. */
typedef void per_device(struct pp_json *data, const struct pp_verbs *v, struct ibv_device *device);

static int each_device(struct pp_json *data, per_device *write, struct pp_error *err)
{
	struct ibv_device **list = NULL;
	struct pp_verbs v;
	int r = load_and_list(&v, &list, err);

	if (r)
		return r;
	pp_json_array(data, "devices");
	for (size_t i = 0; list && list[i]; i++)
		write(data, &v, list[i]);
	pp_json_end_array(data);
	v.free_device_list(list);
	return 0;
}

static void name(struct pp_json *data, const struct pp_verbs *v, struct ibv_device *device)
{
	pp_json_str(data, NULL, v->get_device_name(device));
}

static int list_devices(struct pp_json *data, const void *arg, struct pp_error *err)
{
	(void)arg;
	return each_device(data, name, err);
}

static void query_ports(struct pp_json *data, const struct pp_verbs *v, struct ibv_context *context,
			unsigned int ports)
{
	struct ibv_port_attr port;

	pp_json_array(data, "ports");
	for (unsigned int i = 1; i <= ports && i <= MAX_PORTS; i++) {
		port = (struct ibv_port_attr){0};
		pp_ask_doing("ibv_query_port");
		if (v->query_port(context, (uint8_t)i, &port))
			continue;
		pp_json_object(data, NULL);
		pp_json_i64(data, "port", i);
		pp_json_i64(data, "state", port.state);
		pp_json_i64(data, "active_mtu", pp_verbs_mtu(port.active_mtu));
		pp_json_i64(data, "max_msg_bytes", port.max_msg_sz);
		pp_json_end_object(data);
	}
	pp_json_end_array(data);
}

static void query(struct pp_json *data, const struct pp_verbs *v, struct ibv_device *device)
{
	struct ibv_context *context;
	struct ibv_device_attr attr = {0};

	pp_json_object(data, NULL);
	pp_json_str(data, "name", v->get_device_name(device));
	pp_ask_doing("ibv_open_device");
	errno = 0;
	context = v->open_device(device);
	pp_json_i64(data, "open_errno", context ? 0 : errno ? errno : EIO);
	if (context) {
		pp_ask_doing("ibv_query_device");
		if (!v->query_device(context, &attr)) {
			attr.fw_ver[sizeof(attr.fw_ver) - 1] = '\0';
			pp_json_str(data, "fw_ver", attr.fw_ver);
			pp_json_i64(data, "vendor_part_id", attr.vendor_part_id);
			/* mlx5 says 2^64-1, which no reader of JSON integers takes. */
			pp_json_u64(data, "max_mr_size",
				    attr.max_mr_size > INT64_MAX ? INT64_MAX : attr.max_mr_size);
			pp_json_i64(data, "max_mr", attr.max_mr);
			query_ports(data, v, context, attr.phys_port_cnt);
		}
		pp_ask_doing("ibv_close_device");
		(void)v->close_device(context);
	}
	pp_json_end_object(data);
}

static int query_devices(struct pp_json *data, const void *arg, struct pp_error *err)
{
	(void)arg;
	return each_device(data, query, err);
}

int pp_ask_verbs_library(struct pp_source *s, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "verbs", .run = library};

	return pp_ask(s, &q, ret);
}

int pp_ask_verbs_list(struct pp_source *s, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "verbs-list", .run = list_devices};

	return pp_ask(s, &q, ret);
}

int pp_ask_verbs_devices(struct pp_source *s, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "verbs-devices", .run = query_devices};

	return pp_ask(s, &q, ret);
}

const json_t *pp_verbs_device(const struct pp_answer *a, const char *device)
{
	const json_t *d;
	const char *name;
	size_t i;

	json_array_foreach(json_object_get(a->data, "devices"), i, d)
	{
		name = pp_answer_str(d, "name");
		if (name && !strcmp(name, device))
			return d;
	}
	return NULL;
}

int pp_verbs_active_mtu(const json_t *device, int64_t port, int64_t *ret)
{
	const json_t *p;
	int64_t number, mtu;
	size_t i;

	json_array_foreach(json_object_get(device, "ports"), i, p)
	{
		if (pp_answer_i64(p, "port", &number) || number != port ||
		    pp_answer_i64(p, "active_mtu", &mtu) || mtu < 256 || mtu > 4096)
			continue;
		*ret = mtu;
		return 0;
	}
	return -ENOENT;
}
