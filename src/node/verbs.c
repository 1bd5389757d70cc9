/* SPDX-License-Identifier: Apache-2.0 */
#include "node/verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "node/ask.h"
#include "base/banned.h"

static const struct {
	const char *name, *version;
	size_t offset;
	bool optional;
} symbols[] = {
	{"ibv_get_device_list", "IBVERBS_1.1", offsetof(struct pp_verbs, get_device_list)},
	{"ibv_free_device_list", "IBVERBS_1.1", offsetof(struct pp_verbs, free_device_list)},
	{"ibv_get_device_name", "IBVERBS_1.1", offsetof(struct pp_verbs, get_device_name)},
	{"ibv_open_device", "IBVERBS_1.1", offsetof(struct pp_verbs, open_device)},
	{"ibv_close_device", "IBVERBS_1.1", offsetof(struct pp_verbs, close_device)},
	{"ibv_query_device", "IBVERBS_1.1", offsetof(struct pp_verbs, query_device)},
	{"ibv_query_port", "IBVERBS_1.1", offsetof(struct pp_verbs, query_port)},
	{"ibv_alloc_pd", "IBVERBS_1.1", offsetof(struct pp_verbs, alloc_pd)},
	{"ibv_dealloc_pd", "IBVERBS_1.1", offsetof(struct pp_verbs, dealloc_pd)},
	{"ibv_reg_mr", "IBVERBS_1.1", offsetof(struct pp_verbs, reg_memory)},
	{"ibv_dereg_mr", "IBVERBS_1.1", offsetof(struct pp_verbs, dereg_mr)},
	{"ibv_reg_mr_iova2", "IBVERBS_1.8", offsetof(struct pp_verbs, reg_iova2), true},
	{"ibv_reg_dmabuf_mr", "IBVERBS_1.12", offsetof(struct pp_verbs, reg_dmabuf), true},
	{"ibv_query_gid", "IBVERBS_1.1", offsetof(struct pp_verbs, query_gid)},
	{"_ibv_query_gid_ex", "IBVERBS_1.11", offsetof(struct pp_verbs, query_gid_ex), true},
	{"ibv_query_pkey", "IBVERBS_1.1", offsetof(struct pp_verbs, query_pkey)},
	{"ibv_create_comp_channel", "IBVERBS_1.0", offsetof(struct pp_verbs, create_channel)},
	{"ibv_destroy_comp_channel", "IBVERBS_1.0", offsetof(struct pp_verbs, destroy_channel)},
	{"ibv_create_cq", "IBVERBS_1.1", offsetof(struct pp_verbs, create_cq)},
	{"ibv_destroy_cq", "IBVERBS_1.1", offsetof(struct pp_verbs, destroy_cq)},
	{"ibv_get_cq_event", "IBVERBS_1.1", offsetof(struct pp_verbs, get_cq_event)},
	{"ibv_ack_cq_events", "IBVERBS_1.1", offsetof(struct pp_verbs, ack_cq_events)},
	{"ibv_create_qp", "IBVERBS_1.1", offsetof(struct pp_verbs, create_qp)},
	{"ibv_modify_qp", "IBVERBS_1.1", offsetof(struct pp_verbs, modify_qp)},
	{"ibv_query_qp", "IBVERBS_1.1", offsetof(struct pp_verbs, query_qp)},
	{"ibv_destroy_qp", "IBVERBS_1.1", offsetof(struct pp_verbs, destroy_qp)},
	{"ibv_get_async_event", "IBVERBS_1.1", offsetof(struct pp_verbs, get_async_event)},
	{"ibv_ack_async_event", "IBVERBS_1.1", offsetof(struct pp_verbs, ack_async_event)},
	{"ibv_event_type_str", "IBVERBS_1.1", offsetof(struct pp_verbs, event_text)},
	{"ibv_wc_status_str", "IBVERBS_1.1", offsetof(struct pp_verbs, status_text)},
};

int pp_verbs_load(struct pp_verbs *ret, struct pp_error *err)
{
	struct pp_verbs v = {0};
	void *function;

	pp_ask_doing("dlopen libibverbs.so.1");
	v.library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!v.library)
		return pp_error_set(err, -ENOENT, "%s", dlerror());
	for (size_t i = 0; i < PP_ARRAY_LEN(symbols); i++) {
		function = dlvsym(v.library, symbols[i].name, symbols[i].version);
		if (!function && !symbols[i].optional)
			return pp_error_set(err, -ENOSYS, "libibverbs.so.1 lacks %s@%s",
					    symbols[i].name, symbols[i].version);
		memcpy((char *)&v + symbols[i].offset, &function, sizeof(function));
	}
	*ret = v;
	return 0;
}

struct ibv_device *pp_verbs_find(const struct pp_verbs *v, struct ibv_device **list,
				 const char *name)
{
	const char *its;

	for (size_t i = 0; list[i]; i++) {
		its = v->get_device_name(list[i]);
		if (its && !strcmp(its, name))
			return list[i];
	}
	return NULL;
}

int pp_verbs_mtu(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0;
}
