/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only file that knows the CUDA driver's ABI (CUDA 13.0; every entry point used here exists
 * since CUDA 7). cuInit makes no context on any GPU.
 *
 * With MIG on, a process sees one instance and no other GPU; PCI address and attributes are then
 * those of the GPU that the instance is a part of.
 */
#include "node/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/dl.h"
#include "base/banned.h"

static const char LIBRARY[] = "libcuda.so.1";

enum { TEXT_BYTES = 128, MAX_DEVICES = 256 };

/* CUdevice_attribute. */
static const struct {
	const char *member;
	int attribute;
} attributes[] = {
	{"compute_major", 75},	{"compute_minor", 76},	  {"gdr_vmm", 110}, {"gdr", 116},
	{"flush_options", 117}, {"writes_ordering", 118}, {"dmabuf", 124},
};

struct calls {
	struct pp_json *out;
	int (*error_name)(int, const char **);
	int (*driver_version)(int *);
	int (*init)(unsigned int);
	int (*count)(int *);
	int (*get)(int *, int);
	int (*name)(char *, int, int);
	int (*uuid)(unsigned char[16], int);
	int (*bdf)(char *, int, int);
	int (*attribute)(int *, int, int);
};

static const char *error_text(const struct calls *c, int code, char text[TEXT_BYTES])
{
	const char *name = NULL;

	if (!c->error_name || c->error_name(code, &name) || !name)
		name = "CUDA error";
	(void)snprintf(text, TEXT_BYTES, "%s (%d)", name, code);
	return text;
}

/* True for success (0); else the code is the member's reason. */
static bool good(const struct calls *c, const char *member, int code)
{
	char text[TEXT_BYTES];

	if (code)
		pp_dl_missing(c->out, member, "%s", error_text(c, code, text));
	return !code;
}

static int load(struct calls *c, void *lib, struct pp_error *err)
{
	const struct {
		void *to;
		const char *name;
		bool needed;
	} entries[] = {
		{&c->driver_version, "cuDriverGetVersion", true},
		{&c->init, "cuInit", true},
		{&c->count, "cuDeviceGetCount", true},
		{&c->get, "cuDeviceGet", true},
		{&c->bdf, "cuDeviceGetPCIBusId", true},
		{&c->attribute, "cuDeviceGetAttribute", true},
		{&c->error_name, "cuGetErrorName", false},
		{&c->name, "cuDeviceGetName", false},
		/* Not _v2, which gives an instance's under MIG. */
		{&c->uuid, "cuDeviceGetUuid", false},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(entries); i++) {
		void *fn = dlsym(lib, entries[i].name);

		if (!fn && entries[i].needed)
			return pp_error_set(err, -ENOSYS, "this %s has no %s", LIBRARY,
					    entries[i].name);
		*(void **)entries[i].to = fn;
	}
	return 0;
}

static void doing(const char *call, int ordinal)
{
	char text[TEXT_BYTES];

	(void)snprintf(text, sizeof(text), "%s (device %d)", call, ordinal);
	pp_ask_doing(text);
}

static void write_uuid(const struct calls *c, int device)
{
	unsigned char u[16] = {0};
	char text[64] = "GPU-";
	size_t len = 4;

	if (!c->uuid || !good(c, "uuid", c->uuid(u, device)))
		return;
	for (size_t i = 0; i < sizeof(u); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%02x",
					i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	pp_json_str(c->out, "uuid", text);
}

static void write_device(const struct calls *c, int ordinal)
{
	char text[TEXT_BYTES + 1] = "";
	int device = 0, value;

	pp_json_object(c->out, NULL);
	pp_json_i64(c->out, "ordinal", ordinal);
	doing("cuDeviceGet", ordinal);
	if (good(c, "bdf", c->get(&device, ordinal))) {
		doing("cuDeviceGetPCIBusId", ordinal);
		if (good(c, "bdf", c->bdf(text, TEXT_BYTES, device)))
			pp_json_str(c->out, "bdf", text);
		if (c->name && good(c, "name", c->name(text, TEXT_BYTES, device)))
			pp_json_str(c->out, "name", text);
		write_uuid(c, device);
		doing("cuDeviceGetAttribute", ordinal);
		for (size_t i = 0; i < PP_ARRAY_LEN(attributes); i++) {
			value = 0;
			if (good(c, attributes[i].member,
				 c->attribute(&value, attributes[i].attribute, device)))
				pp_json_i64(c->out, attributes[i].member, value);
		}
	}
	pp_json_end_object(c->out);
}

/*
 * The facts are of the machine, not of this process's view: a variable of the caller must neither
 * hide GPUs nor reorder them.
 */
static int whole_machine(void)
{
	return unsetenv("CUDA_VISIBLE_DEVICES") || setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1)
		       ? -errno
		       : 0;
}

/* In the helper. */
static int run(struct pp_json *out, const void *arg, struct pp_error *err)
{
	const struct pp_dl_options *options = arg;
	struct calls c = {.out = out};
	char text[TEXT_BYTES];
	int version = 0, n = 0, r;
	void *lib;

	r = pp_dl_permit(options, LIBRARY, err);
	if (r)
		return r;
	r = whole_machine();
	if (r)
		return pp_error_set(err, r, "the environment cannot be changed");
	r = pp_dl_open(LIBRARY, out, &lib, err);
	if (!r)
		r = load(&c, lib, err);
	if (r)
		return r;
	pp_ask_doing("cuDriverGetVersion");
	if (good(&c, "driver_api", c.driver_version(&version)))
		pp_json_i64(out, "driver_api", version);
	pp_ask_doing("cuInit");
	r = c.init(0);
	if (r)
		return pp_error_set(err, -EIO, "cuInit: %s", error_text(&c, r, text));
	pp_ask_doing("cuDeviceGetCount");
	if (!good(&c, "devices", c.count(&n)))
		return 0;
	pp_json_array(out, "devices");
	for (int i = 0; i < n && i < MAX_DEVICES; i++)
		write_device(&c, i);
	pp_json_end_array(out);
	return 0;
}

static struct pp_question question(const struct pp_dl_options *options)
{
	return (struct pp_question){
		.name = "cuda", .run = run, .arg = options, .deadline = options->deadline};
}

void pp_cuda_ahead(struct pp_source *s, const struct pp_dl_options *options)
{
	const struct pp_question q = question(options);

	pp_ask_ahead(s, &q);
}

int pp_cuda_ask(struct pp_source *s, const struct pp_dl_options *options, struct pp_answer *ret)
{
	const struct pp_question q = question(options);

	return pp_ask(s, &q, ret);
}
