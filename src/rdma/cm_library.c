/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/cm_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

#define MEMBER(name) offsetof(struct pp_cm_library, name)

static const struct {
	const char *name, *version;
	size_t offset;
} symbols[] = {
	{"rdma_create_event_channel", "RDMACM_1.0", MEMBER(create_channel)},
	{"rdma_destroy_event_channel", "RDMACM_1.0", MEMBER(destroy_channel)},
	{"rdma_create_id", "RDMACM_1.0", MEMBER(create_id)},
	{"rdma_destroy_id", "RDMACM_1.0", MEMBER(destroy_id)},
	{"rdma_bind_addr", "RDMACM_1.0", MEMBER(bind)},
	{"rdma_listen", "RDMACM_1.0", MEMBER(listen)},
	{"rdma_resolve_addr", "RDMACM_1.0", MEMBER(resolve_address)},
	{"rdma_resolve_route", "RDMACM_1.0", MEMBER(resolve_route)},
	{"rdma_connect", "RDMACM_1.0", MEMBER(connect)},
	{"rdma_accept", "RDMACM_1.0", MEMBER(accept)},
	{"rdma_reject", "RDMACM_1.0", MEMBER(reject)},
	{"rdma_establish", "RDMACM_1.2", MEMBER(establish)},
	{"rdma_disconnect", "RDMACM_1.0", MEMBER(disconnect)},
	{"rdma_init_qp_attr", "RDMACM_1.2", MEMBER(qp_attributes)},
	{"rdma_get_cm_event", "RDMACM_1.0", MEMBER(get_event)},
	{"rdma_ack_cm_event", "RDMACM_1.0", MEMBER(ack_event)},
	{"rdma_event_str", "RDMACM_1.0", MEMBER(event_text)},
	{"rdma_get_src_port", "RDMACM_1.0", MEMBER(source_port)},
};

int pp_cm_library_load(struct pp_cm_library *ret, struct pp_error *err)
{
	struct pp_cm_library l = {0};
	void *function;

	l.library = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!l.library)
		return pp_error_set(err, -ENOENT, "-R needs librdmacm: %s", dlerror());
	for (size_t i = 0; i < PP_ARRAY_LEN(symbols); i++) {
		function = dlvsym(l.library, symbols[i].name, symbols[i].version);
		if (!function)
			return pp_error_set(err, -ENOSYS,
					    "librdmacm.so.1 lacks %s@%s: -R needs a newer one",
					    symbols[i].name, symbols[i].version);
		memcpy((char *)&l + symbols[i].offset, &function, sizeof(function));
	}
	*ret = l;
	return 0;
}
