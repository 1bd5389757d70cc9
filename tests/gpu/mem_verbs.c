/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registering a GPU's memory with the device that libibverbs lists first, and writing from one
 * piece of it to another through two queue pairs of this process.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/traffic.h"
#include "mem/cuda.h"
#include "mem/registration.h"
#include "mem_probe.h"

enum { MIB = 1 << 20, CHUNK = MIB };

static struct pp_verbs v;
static struct pp_endpoint end;

static const struct pp_registration_options by_dmabuf = {
	.how = PP_REGISTERED_DMABUF,
	.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

static void show(const struct pp_registered *r)
{
	for (unsigned int i = 0; i < r->n_attempts; i++)
		fact("  %s(%s): %d %s, %lld us, BAR1 used %lld -> %lld KiB", r->attempt[i].call,
		     r->attempt[i].arguments, r->attempt[i].error, r->attempt[i].name,
		     (long long)r->attempt[i].took / 1000,
		     (long long)r->attempt[i].bar1_before >> 10,
		     (long long)r->attempt[i].bar1_after >> 10);
}

static bool reg(struct pp_memory *m, struct pp_registered *ret, const char *what)
{
	struct pp_error err = {0};
	int r = pp_register(&v, end.pd, m, &by_dmabuf, ret, &err);

	check(!r, "%s registers by dmabuf with %u key(s), simulated %d, flush '%s': %s", what,
	      ret->n, ret->simulated, ret->flush, r ? err.text : "good");
	show(ret);
	return !r;
}

static bool loop(void)
{
	struct pp_address a, b;
	struct pp_error err = {0};

	pp_endpoint_address(&end, 0, &a);
	pp_endpoint_address(&end, 1, &b);
	return check(!pp_endpoint_connect(&end, 0, &b, &err) &&
			     !pp_endpoint_connect(&end, 1, &a, &err),
		     "two queue pairs are connected %s", err.text);
}

/* Slots of CHUNK bytes: from the one memory to the same place of the other. */
static unsigned int slots(const struct pp_registered *from, const struct pp_registered *to,
			  size_t size, struct pp_slot *slot)
{
	unsigned int n = 0;

	for (uint64_t at = 0; at < size; at += CHUNK, n++) {
		const struct pp_key *k = pp_registered_key(from, at, CHUNK),
				    *l = pp_registered_key(to, at, CHUNK);

		if (!k || !l)
			return 0;
		slot[n] = (struct pp_slot){.local = k->address + at - k->start,
					   .lkey = k->lkey,
					   .remote = l->address + at - l->start,
					   .rkey = l->rkey};
	}
	return n;
}

static bool transfer(const struct pp_registered *from, const struct pp_registered *to, size_t size,
		     const char *what)
{
	struct pp_slot *slot = calloc(size / CHUNK, sizeof(*slot));
	struct pp_traffic_done done = {0};
	struct pp_error err = {0};
	struct pp_traffic t = {.endpoint = &end, .slots = slot, .size = CHUNK, .depth = 4};
	bool good = slot != NULL;

	if (good)
		t.n_slots = slots(from, to, size, slot);
	t.messages = t.n_slots;
	good = check(good && t.n_slots, "%s: every MiB lies under one key", what) &&
	       check(!pp_traffic_send(&t, &done, &err), "%s: written: %s", what, err.text);
	if (good)
		fact("%s: %llu bytes in %lld us, %.2f GB/s", what, (unsigned long long)done.bytes,
		     (long long)done.took / 1000, (double)done.bytes / (double)done.took);
	pp_traffic_done_free(&done);
	free(slot);
	return good;
}

/* Fill, poison, write, flush, check: 20 times with another seed each. */
static void carry(const char *gpu, struct pp_memory_options options, const char *what)
{
	struct pp_memory *from, *to;
	static struct pp_registered a, b;
	struct pp_memory_checked c = {0};
	struct pp_error err = {0};
	const char *did = "";
	bool good;

	options.gpu = gpu;
	from = memory_new(&options);
	to = memory_new(&options);
	good = from && to && reg(from, &a, what) && reg(to, &b, what);
	for (uint64_t seed = 1; good && seed <= 20; seed++) {
		good = !pp_memory_fill(from, 0, from->size, seed, &err) &&
		       !pp_memory_fill(to, 0, to->size, ~seed, &err) &&
		       transfer(&a, &b, from->size, what) && !pp_memory_flush(to, &did, &err) &&
		       !pp_memory_check(to, 0, to->size, seed, 0, &c, &err);
		good = check(good && !c.wrong, "%s: %llu of %llu bytes wrong, first at %llu %s",
			     what, (unsigned long long)c.wrong, (unsigned long long)c.bytes,
			     (unsigned long long)c.first, err.text);
	}
	if (from && to) {
		check(!pp_unregister(&a, &err) && !pp_unregister(&b, &err), "%s: unregistered %s",
		      what, err.text);
	}
	pp_memory_free(from);
	pp_memory_free(to);
}

/* What our own client must never do: the region is of the allocation's beginning. */
static bool reg_at_the_beginning(struct pp_memory *m, struct pp_registered *ret)
{
	const struct pp_memory_segment *s = &m->segment[0];
	int (*told)(int, uint64_t, uint64_t) = NULL, fd = -1;
	struct ibv_mr *mr = NULL;

	*(void **)&told = dlsym(v.library, "peerpath_soft_dmabuf_range");
	if (!m->cuda->call.handle_for_range(&fd, s->base, s->size, PP_CUDA_DMABUF_FD, 0) &&
	    (!told || !told(fd, s->base, s->size)))
		mr = v.reg_dmabuf(end.pd, /* offset= */ 0, s->length, m->at, fd, by_dmabuf.access);
	if (fd >= 0)
		(void)close(fd);
	if (!mr)
		return false;
	*ret = (struct pp_registered){.verbs = &v, .n = 1, .mr = {mr}};
	ret->key[0] = (struct pp_key){
		.length = s->length, .address = m->at, .lkey = mr->lkey, .rkey = mr->rkey};
	return true;
}

/* The checks are able to fail: a wrong offset, and a second segment that nobody wrote. */
static void caught(const char *gpu, struct pp_memory_options options, bool wrong_offset)
{
	const char *what = wrong_offset ? "wrong offset" : "second segment left out";
	struct pp_memory *from, *to;
	static struct pp_registered a, b;
	struct pp_memory_checked c = {0};
	struct pp_error err = {0};
	bool good;

	options.gpu = gpu;
	from = memory_new(&options);
	to = memory_new(&options);
	good = from && to && reg(from, &a, what) &&
	       (wrong_offset ? check(reg_at_the_beginning(to, &b), "%s: registered", what)
			     : reg(to, &b, what));
	good = good && !pp_memory_fill(from, 0, from->size, 1, &err) &&
	       !pp_memory_fill(to, 0, to->size, 2, &err) &&
	       transfer(&a, &b, wrong_offset ? from->size : b.key[0].length, what) &&
	       !pp_memory_check(to, 0, to->size, 1, 0, &c, &err);
	check(good && c.wrong > 0 && c.first == (wrong_offset ? 0 : b.key[0].length),
	      "%s is caught: %llu bytes wrong, first at %llu %s", what, (unsigned long long)c.wrong,
	      (unsigned long long)c.first, err.text);
	if (good)
		(void)(pp_unregister(&a, &err) || pp_unregister(&b, &err));
	pp_memory_free(from);
	pp_memory_free(to);
}

static void time_registration(const char *gpu)
{
	struct pp_memory *m = memory_new(&(struct pp_memory_options){
		.kind = PP_MEMORY_CUDA, .gpu = gpu, .size = (size_t)1 << 30});
	static struct pp_registered r;
	struct pp_error err = {0};
	pp_ns start;

	for (int i = 0; m && i < 5; i++) {
		start = pp_clock_monotonic();
		if (pp_register(&v, end.pd, m, &by_dmabuf, &r, &err)) {
			check(false, "1 GiB by dmabuf: %s", err.text);
			break;
		}
		fact("1 GiB registered by dmabuf in %lld us",
		     (long long)(pp_clock_monotonic() - start) / 1000);
		start = pp_clock_monotonic();
		(void)pp_unregister(&r, &err);
		fact("1 GiB deregistered in %lld us",
		     (long long)(pp_clock_monotonic() - start) / 1000);
	}
	pp_memory_free(m);
}

/* Other ways are refused by the software device; what they say is looked at by a person. */
static void other_ways(const char *gpu)
{
	static const enum pp_registration how[] = {PP_REGISTERED_PEERMEM,
						   PP_REGISTERED_DATA_DIRECT};
	struct pp_memory *m = memory_new(
		&(struct pp_memory_options){.kind = PP_MEMORY_CUDA, .gpu = gpu, .size = MIB});
	struct pp_registration_options options = by_dmabuf;
	static struct pp_registered r;
	struct pp_error err = {0};

	for (size_t i = 0; m && i < PP_ARRAY_LEN(how); i++) {
		options.how = how[i];
		if (pp_register(&v, end.pd, m, &options, &r, &err)) {
			fact("by %s: %s", pp_registration_name(how[i]), err.text);
			continue;
		}
		fact("by %s: registered", pp_registration_name(how[i]));
		(void)pp_unregister(&r, &err);
	}
	pp_memory_free(m);
}

static bool first_device(char *to, size_t size)
{
	int n = 0;
	struct ibv_device **list = v.get_device_list(&n);
	/* The software device's loopback is its last. */
	const char *name = list && n > 0 ? v.get_device_name(list[n - 1]) : NULL;

	if (name)
		(void)snprintf(to, size, "%s", name);
	if (list)
		v.free_device_list(list);
	return name != NULL;
}

bool verbs(const char *gpu)
{
	char device[64];
	struct pp_endpoint_options options = {
		.device = device, .gid_index = -1, .qps = 2, .depth = 16};
	struct pp_error err = {0};

	if (pp_verbs_load(&v, &err) || !first_device(device, sizeof(device)))
		return false;
	fact("device %s, software %d", device, pp_verbs_are_software(&v));
	if (!check(!pp_endpoint_open(&v, &options, &end, &err), "%s opened %s", device, err.text) ||
	    !loop())
		return true;
	carry(gpu, (struct pp_memory_options){.kind = PP_MEMORY_CUDA, .size = 16 * MIB}, "cuda");
	carry(gpu,
	      (struct pp_memory_options){
		      .kind = PP_MEMORY_CUDA, .size = 16 * MIB, .inside = 2 * MIB + 70001},
	      "cuda inside an allocation");
	carry(gpu,
	      (struct pp_memory_options){
		      .kind = PP_MEMORY_CUDA_VMM, .size = 15 * MIB, .segments = 2, .inside = MIB},
	      "cuda-vmm, two segments");
	caught(gpu,
	       (struct pp_memory_options){
		       .kind = PP_MEMORY_CUDA, .size = 4 * MIB, .inside = 2 * MIB},
	       /* wrong_offset= */ true);
	caught(gpu,
	       (struct pp_memory_options){
		       .kind = PP_MEMORY_CUDA_VMM, .size = 4 * MIB, .segments = 2},
	       /* wrong_offset= */ false);
	time_registration(gpu);
	other_ways(gpu);
	pp_endpoint_close(&end);
	return true;
}
