/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two digests that make nodes comparable.
 *
 * Software fingerprint: SHA-256 over "key=value" lines of the software tuple; an unknown part
 * counts as "unknown" and is named in digest.software_missing.
 *
 * Topology class: SHA-256 over a canonical text of the wiring: the tree of bridges that lead to a
 * GPU or an hca, each endpoint with its ids, children sorted by their own text, host bridges
 * grouped by socket, and the NVLinks of each GPU. No bus number, name or NUMA number enters, so
 * machines wired alike agree. VFs are software and stay out.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "node/node.h"
#include "base/banned.h"

enum { MAX_TEXT = 4 << 20 };

const enum pp_fact_id pp_software_tuple[] = {
	PP_F_KERNEL_RELEASE,	 PP_F_KERNEL_ARCH,	 PP_F_OS_ID,	       PP_F_OS_VERSION,
	PP_F_NVIDIA_VERSION,	 PP_F_NVIDIA_FLAVOUR,	 PP_F_PEERMEM_LOADED,  PP_F_RDMA_STACK,
	PP_F_RDMA_STACK_VERSION, PP_F_IBVERBS_VERSION,	 PP_F_CUDA_DRIVER,     PP_F_NCCL_VERSION,
	PP_F_UCX_VERSION,	 PP_F_LIBFABRIC_VERSION, PP_F_CONTAINER_IMAGE, PP_FACTS,
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void set_digest(struct pp_node *n, enum pp_fact_id id, const struct pp_buf *text)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];

	if (text->failed) {
		pp_fact_unknown(&n->facts, n->self, id, NULL, "%s", strerrordesc_np(-text->failed));
		return;
	}
	(void)crypto_hash_sha256(hash, (const unsigned char *)pp_buf_text(text), text->len);
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	pp_fact_str(&n->facts, n->self, id, hex, NULL);
}

/*
 * Firmware belongs to the tuple: one line per (type, firmware), sorted, without repeats. False
 * when a part of it is not known.
 */
static bool firmware_lines(struct pp_node *n, struct pp_buf *text)
{
	bool whole = true;
	unsigned int count = n->facts.count[PP_HCA], k = 0;
	const char **lines = pp_arena_array(&n->arena, count ? count : 1, sizeof(*lines));
	struct pp_object *o = NULL;

	if (!lines)
		return false;
	while ((o = pp_object_next(&n->facts, PP_HCA, o)) && k < count) {
		whole &= pp_fact_str_or(o, PP_F_HCA_FW, NULL) != NULL;
		lines[k++] = pp_arena_printf(&n->arena, "hca %s firmware=%s\n",
					     pp_fact_str_or(o, PP_F_HCA_VENDOR, "unknown"),
					     pp_fact_str_or(o, PP_F_HCA_FW, "unknown"));
	}
	qsort(lines, k, sizeof(*lines), by_text);
	for (unsigned int i = 0; i < k; i++)
		if (!i || strcmp(lines[i], lines[i - 1]) != 0)
			pp_buf_str(text, lines[i]);
	return whole;
}

static void software(struct pp_node *n)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(MAX_TEXT);
	const char *missing[PP_ARRAY_LEN(pp_software_tuple)];
	const struct pp_fact *fact;
	char value[512];
	size_t n_missing = 0;

	for (const enum pp_fact_id *id = pp_software_tuple; *id != PP_FACTS; id++) {
		fact = pp_fact_get(n->self, *id);
		if (!fact || !fact->known)
			missing[n_missing++] = pp_fact_table[*id].key;
		pp_buf_printf(&text, "%s=%s\n", pp_fact_table[*id].key,
			      fact && fact->known ? pp_fact_text(fact, value, sizeof(value))
						  : "unknown");
	}
	if (!firmware_lines(n, &text))
		missing[n_missing++] = pp_fact_table[PP_F_HCA_FW].key;
	if (!pp_fact_str_or(n->self, PP_F_KERNEL_RELEASE, NULL))
		pp_fact_unknown(&n->facts, n->self, PP_F_SOFTWARE_FINGERPRINT, NULL,
				"kernel.release is not known");
	else
		set_digest(n, PP_F_SOFTWARE_FINGERPRINT, &text);
	pp_fact_list(&n->facts, n->self, PP_F_SOFTWARE_MISSING, missing, n_missing, NULL);
}

/* Which functions lie on the way to a GPU or an hca (themselves included), VFs apart. */
static bool *mark_paths(struct pp_node *n)
{
	bool *on_path = pp_arena_array(&n->arena, n->pci.n ? n->pci.n : 1, sizeof(*on_path));

	for (unsigned int i = 0; on_path && i < n->pci.n; i++) {
		const struct pp_pci_dev *d = &n->pci.dev[i];

		if (d->is_virtual > 0 || (!pp_pci_is_gpu(d) && !pp_pci_is_hca(d)))
			continue;
		for (int k = (int)i; k >= 0 && !on_path[k]; k = n->pci.dev[k].parent)
			on_path[k] = true;
	}
	return on_path;
}

/*
 * Canonical texts of all functions on a path, children before parents: deepest first. Children
 * are gathered per parent in one pass over the functions sorted by (depth, parent, text).
 */
struct part {
	const struct pp_pci_dev *dev;
	int index;
	const char *text; /* NULL until made */
};

static int by_place(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->dev->depth != y->dev->depth)
		return x->dev->depth > y->dev->depth ? -1 : 1;
	if (x->dev->parent != y->dev->parent)
		return x->dev->parent < y->dev->parent ? -1 : 1;
	return x->dev->host_bridge - y->dev->host_bridge;
}

static int by_part_text(const void *a, const void *b)
{
	return strcmp(((const struct part *)a)->text, ((const struct part *)b)->text);
}

static const char *endpoint_text(struct pp_node *n, const struct pp_pci_dev *d, const char *inside)
{
	return pp_arena_printf(&n->arena, "%c%04x:%04x(%s)",
			       pp_pci_is_gpu(d)	  ? 'G'
			       : pp_pci_is_hca(d) ? 'H'
						  : 'B',
			       d->vendor, d->device, inside);
}

/* Concatenation of the sorted texts of parts[0..count). */
static const char *join(struct pp_node *n, struct part *parts, size_t count)
{
	struct pp_buf PP_AUTO_BUF b = PP_BUF(MAX_TEXT);

	qsort(parts, count, sizeof(*parts), by_part_text);
	for (size_t i = 0; i < count; i++)
		pp_buf_str(&b, parts[i].text);
	if (b.failed)
		n->arena.failed = true;
	return pp_arena_str(&n->arena, pp_buf_text(&b));
}

/* Package of a function's NUMA node; -1 when it has none. */
static int socket_of(const struct pp_node *n, const struct pp_pci_dev *d)
{
	if (d->numa < 0 || (unsigned int)d->numa >= n->pci.n_node_package)
		return -1;
	return n->pci.node_package[d->numa];
}

static int by_index(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

/* Parts of equal index become one part, "P{...}"; returns how many remain. */
static size_t group(struct pp_node *n, struct part *parts, size_t count, char letter)
{
	size_t out = 0, end;

	qsort(parts, count, sizeof(*parts), by_index);
	for (size_t i = 0; i < count; i = end) {
		for (end = i; end < count && parts[end].index == parts[i].index; end++)
			continue;
		parts[out] = (struct part){
			parts[i].dev, parts[i].index,
			pp_arena_printf(&n->arena, "%c{%s}", letter, join(n, parts + i, end - i))};
		out++;
	}
	return out;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void nvlinks_text(struct pp_node *n, struct pp_buf *text)
{
	int64_t *total = pp_arena_array(&n->arena, n->n_gpus ? n->n_gpus : 1, sizeof(*total));

	if (!n->nvlinks || !total)
		return;
	for (unsigned int i = 0; i < n->n_gpus; i++)
		for (unsigned int k = 0; k < n->n_gpus; k++)
			total[i] += k == i ? 0 : n->nvlinks[i * n->n_gpus + k];
	qsort(total, n->n_gpus, sizeof(*total), by_value);
	for (unsigned int i = 0; i < n->n_gpus; i++)
		pp_buf_printf(text, "NV%lld\n", (long long)total[i]);
}

/* What the class is made of, and could not be read: the reason, or NULL. */
static const char *why_unknown(struct pp_node *n, const bool *on_path)
{
	const struct pp_pci_dev *d;
	char bdf[PP_BDF_TEXT];
	bool any = false;

	for (unsigned int i = 0; i < n->pci.n; i++) {
		d = &n->pci.dev[i];
		any |= on_path[i];
		if (!on_path[i])
			continue;
		(void)pp_bdf_format(&d->bdf, bdf);
		if (d->host_bridge < 0)
			return pp_arena_printf(&n->arena,
					       "the place of %s in the tree is not known", bdf);
		if (!d->vendor || !d->device)
			return pp_arena_printf(&n->arena, "vendor and device of %s are not known",
					       bdf);
		if (d->numa == PP_UNREADABLE || (d->numa >= 0 && socket_of(n, d) < 0))
			return pp_arena_printf(&n->arena, "the socket of %s is not known", bdf);
	}
	for (unsigned int i = 0; n->nvlinks && i < n->n_gpus * n->n_gpus; i++)
		if (n->nvlinks[i] < 0 && i % (n->n_gpus + 1) != 0)
			return "the NVLinks between the GPUs are not known";
	if (!n->nvlinks && n->facts.count[PP_GPU] > 1)
		return "the NVLinks between the GPUs are not known";
	return any ? NULL : "there is no GPU and no hca whose wiring could be told";
}

/* Text of the tree below each host bridge; returns the parts that hang directly on one. */
static struct part *tops(struct pp_node *n, const bool *on_path, size_t *ret_count)
{
	struct part *parts = pp_arena_array(&n->arena, n->pci.n + 1, sizeof(*parts));
	const char **inside = pp_arena_array(&n->arena, n->pci.n + 1, sizeof(*inside));
	size_t count = 0, i, end = 0;

	if (!parts || !inside)
		return NULL;
	for (i = 0; i < n->pci.n; i++)
		if (on_path[i])
			parts[count++] = (struct part){&n->pci.dev[i], (int)i, NULL};
	qsort(parts, count, sizeof(*parts), by_place);
	for (i = 0; i < count; i = end) {
		int parent = parts[i].dev->parent;

		for (end = i; end < count && parts[end].dev->parent == parent; end++)
			parts[end].text = endpoint_text(
				n, parts[end].dev,
				inside[parts[end].index] ? inside[parts[end].index] : "");
		if (parent < 0)
			break;
		inside[parent] = join(n, parts + i, end - i);
	}
	*ret_count = count - i;
	return parts + i;
}

static void topology(struct pp_node *n)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(MAX_TEXT);
	bool *on_path = mark_paths(n);
	const char *why = n->pci.why;
	struct part *parts;
	size_t count = 0;

	if (!on_path)
		return;
	why = why ? why : why_unknown(n, on_path);
	if (why) {
		pp_fact_unknown(&n->facts, n->self, PP_F_TOPOLOGY_CLASS, "/sys/bus/pci/devices",
				"%s", why);
		return;
	}
	parts = tops(n, on_path, &count);
	if (!parts)
		return;
	for (size_t i = 0; i < count; i++)
		parts[i].index = parts[i].dev->host_bridge;
	count = group(n, parts, count, 'P');
	for (size_t i = 0; i < count; i++)
		parts[i].index = socket_of(n, parts[i].dev);
	count = group(n, parts, count, 'S');
	pp_buf_str(&text, join(n, parts, count));
	nvlinks_text(n, &text);
	set_digest(n, PP_F_TOPOLOGY_CLASS, &text);
}

void pp_collect_digests(struct pp_node *n)
{
	software(n);
	topology(n);
}
