/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer "rdma-resources" to structures: hostile, since a recording may hold anything.
 */
#include "trace/resource.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/resource_parts.h"
#include "trace/surface_report.h"
#include "base/banned.h"

enum { DEVICES_MAX = 4096 };

static int by_place(const void *va, const void *vb)
{
	const struct pp_resource *a = va, *b = vb;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* -ENOENT when absent, -EBADMSG when it is no such number. */
static int get_u32(const json_t *object, const char *key, uint32_t *ret)
{
	const json_t *v = json_object_get(object, key);
	json_int_t n = json_integer_value(v);

	if (!v)
		return -ENOENT;
	if (!json_is_integer(v) || n < 0 || n > UINT32_MAX)
		return -EBADMSG;
	*ret = (uint32_t)n;
	return 0;
}

/* True and filled when @object is one. */
static bool read_object(const json_t *object, struct pp_resource *r)
{
	int parent = get_u32(object, "parent", &r->parent);
	int lkey = get_u32(object, "lkey", &r->lkey), rkey = get_u32(object, "rkey", &r->rkey);
	const char *kernel = pp_answer_str(object, "kernel");
	int64_t length;

	if (get_u32(object, "id", &r->id) || parent == -EBADMSG || lkey == -EBADMSG ||
	    rkey == -EBADMSG || get_u32(object, "tid", &r->tid) == -EBADMSG)
		return false;
	r->has_parent = !parent;
	r->has_keys = !lkey && !rkey;
	if (kernel)
		(void)snprintf(r->kernel_user, sizeof(r->kernel_user), "%s", kernel);
	r->has_length = !pp_answer_i64(object, "length", &length);
	if (r->has_length)
		r->length = (uint64_t)length;
	return true;
}

static size_t count_objects(const json_t *devices)
{
	const json_t *device;
	size_t i, n = 0;

	json_array_foreach(devices, i, device)
	{
		for (unsigned int k = 0; k < PP_RESOURCE_KINDS; k++)
			n += json_array_size(json_object_get(device, pp_resource_words[k].name));
	}
	return n;
}

static void read_kind(const json_t *list, struct pp_resource *as, struct pp_resources *ret)
{
	const json_t *object;
	size_t i, taken = 0;

	json_array_foreach(list, i, object)
	{
		struct pp_resource *r = &ret->item[ret->n];

		*r = *as;
		if (taken == PP_RESOURCES_MAX)
			pp_surface_cut(&ret->resources, "more %s than %d",
				       pp_resource_words[as->kind].listed, PP_RESOURCES_MAX);
		else if (!read_object(object, r))
			pp_surface_cut(&ret->resources, "%s of %s are malformed in the answer",
				       pp_resource_words[as->kind].listed,
				       ret->device[as->device].name);
		else
			taken++, ret->n++;
	}
}

static void read_device(const json_t *device, struct pp_resources *ret)
{
	struct pp_resource_device *d = &ret->device[ret->n_devices];
	const char *name = pp_answer_str(device, "name"), *fault;
	struct pp_resource as = {.device = (uint16_t)ret->n_devices};

	if (!name || !*name || get_u32(device, "index", &d->index)) {
		pp_surface_cut(&ret->resources, "a device is malformed in the answer");
		return;
	}
	(void)snprintf(d->name, sizeof(d->name), "%s", name);
	ret->n_devices++;
	for (unsigned int k = 0; k < PP_RESOURCE_KINDS; k++) {
		as.kind = (enum pp_resource_kind)k;
		fault = pp_answer_str(json_object_get(device, "faults"), pp_resource_words[k].name);
		if (fault)
			pp_surface_cut(&ret->resources, "%s of %s: %.80s",
				       pp_resource_words[k].listed, d->name, fault);
		if (!json_is_array(json_object_get(device, pp_resource_words[k].name)))
			pp_surface_cut(&ret->resources, "%s of %s are not in the answer",
				       pp_resource_words[k].listed, d->name);
		read_kind(json_object_get(device, pp_resource_words[k].name), &as, ret);
	}
}

/* A dump may list an object twice, when others went while it was read. */
static void drop_twins(struct pp_resources *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (!n || by_place(&r->item[n - 1], &r->item[i]))
			r->item[n++] = r->item[i];
	r->n = n;
}

static bool is(const struct pp_answer *a, const char *key, bool without)
{
	bool yes = without;

	(void)pp_answer_bool(a->data, key, &yes);
	return yes;
}

/* The answer's own words of what is not seen; false: there are no objects to read. */
static bool read_state(const struct pp_answer *a, struct pp_resources *ret)
{
	const char *call = pp_answer_str(a->data, "call");
	int64_t error;
	bool core;

	if (!pp_surface_answered(&ret->resources, a))
		return false;
	if (pp_answer_bool(a->data, "core", &core)) {
		pp_surface_set(
			&ret->resources, PP_SURFACE_REFUSED,
			"whether this kernel has an RDMA core cannot be told: no /sys/class");
		return false;
	}
	if (!core) {
		pp_surface_set(&ret->resources, PP_SURFACE_ABSENT, "no RDMA core is loaded");
		return false;
	}
	if (!pp_answer_i64(a->data, "errno", &error)) {
		error = error > 0 && error < 4096 ? -error : -EIO;
		pp_surface_set(&ret->resources, pp_surface_of_error((int)error), "%.80s: %s",
			       call ? call : "netlink", pp_errno_name((int)error));
		return false;
	}
	if (!json_is_array(json_object_get(a->data, "devices"))) {
		pp_surface_set(&ret->resources, PP_SURFACE_CUT, "the answer lists no devices");
		return false;
	}
	return true;
}

/* What hides whole devices or owners. */
static void read_limits(const struct pp_answer *a, struct pp_resources *ret)
{
	const json_t *hidden = json_object_get(a->data, "hidden");
	const char *name = json_string_value(json_array_get(hidden, 0));

	if (name)
		pp_surface_cut(&ret->resources,
			       "%zu RDMA devices belong to other network namespaces (%.60s)",
			       json_array_size(hidden), name);
	if (is(a, "cut", false))
		pp_surface_cut(&ret->resources, "not every device was asked");
	if (!is(a, "first_pid_namespace", false))
		pp_surface_cut(&ret->resources,
			       "read in a PID namespace of its own: owners outside are not named, "
			       "and older kernels list nothing of theirs");
	if (!ret->n_devices && ret->resources.state == PP_SURFACE_READ)
		pp_surface_set(&ret->resources, PP_SURFACE_ABSENT, "no RDMA device");
}

static void read_keys(const struct pp_answer *a, struct pp_resources *ret)
{
	size_t regions = 0, with = 0;
	bool may = is(a, "privileged", false) && is(a, "first_user_namespace", false);

	ret->keys = ret->resources;
	for (size_t i = 0; i < ret->n; i++) {
		regions += ret->item[i].kind == PP_RESOURCE_MR;
		with += ret->item[i].kind == PP_RESOURCE_MR && ret->item[i].has_keys;
	}
	if (!ret->n_devices || (regions && with == regions))
		return;
	if (!may)
		pp_surface_set(&ret->keys, PP_SURFACE_REFUSED,
			       "keys are for CAP_NET_ADMIN in the first user namespace");
	else if (with)
		pp_surface_cut(&ret->keys, "%zu of %zu regions have no keys", regions - with,
			       regions);
	else if (regions)
		pp_surface_set(&ret->keys, PP_SURFACE_ABSENT, "this kernel shows no keys");
}

int pp_resources_read(const struct pp_answer *a, struct pp_resources *ret)
{
	const json_t *devices = json_object_get(a->data, "devices"), *device;
	size_t n = count_objects(devices), n_devices = json_array_size(devices), i;

	*ret = (struct pp_resources){0};
	if (!read_state(a, ret)) {
		ret->keys = ret->resources;
		return 0;
	}
	if (n_devices > DEVICES_MAX) {
		n_devices = DEVICES_MAX;
		pp_surface_cut(&ret->resources, "more devices than %d", DEVICES_MAX);
	}
	ret->device = calloc(n_devices + 1, sizeof(*ret->device));
	/* One more: an object is read in place before it is known to be one. */
	ret->item = calloc(n + 1, sizeof(*ret->item));
	if (!ret->device || !ret->item) {
		pp_resources_done(ret);
		return -ENOMEM;
	}
	json_array_foreach(devices, i, device)
	{
		if (i < n_devices)
			read_device(device, ret);
	}
	qsort(ret->item, ret->n, sizeof(*ret->item), by_place);
	drop_twins(ret);
	read_limits(a, ret);
	read_keys(a, ret);
	return 0;
}

void pp_resources_done(struct pp_resources *r)
{
	free(r->device);
	free(r->item);
	r->device = NULL;
	r->item = NULL;
	r->n = r->n_devices = 0;
}

const struct pp_resource *pp_resource_find(const struct pp_resources *r, uint16_t device,
					   enum pp_resource_kind kind, uint32_t id)
{
	const struct pp_resource key = {.device = device, .kind = kind, .id = id};

	return r->n ? bsearch(&key, r->item, r->n, sizeof(*r->item), by_place) : NULL;
}

uint32_t pp_resource_thread(const struct pp_resources *r, const struct pp_resource *mr,
			    enum pp_resource_kind *ret_by)
{
	const struct pp_resource *o = mr;

	while (o) {
		if (o->tid) {
			*ret_by = o->kind;
			return o->tid;
		}
		if (!o->has_parent || o->kind == PP_RESOURCE_CTX)
			break;
		o = pp_resource_find(r, o->device,
				     o->kind == PP_RESOURCE_PD ? PP_RESOURCE_CTX : PP_RESOURCE_PD,
				     o->parent);
	}
	return 0;
}
