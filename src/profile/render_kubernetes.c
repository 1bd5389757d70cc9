/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile for Kubernetes: values of the GPU Operator's chart, a resource of the Network Operator,
 * the variables of a pod. What lies on the node below the operators stays with its image.
 */
#include <string.h>

#include "profile/render_parts.h"
#include "base/banned.h"

static void indent(struct pp_buf *ret, unsigned int depth)
{
	for (unsigned int i = 0; i < depth; i++)
		pp_buf_str(ret, "  ");
}

/* Bytes of "a.b." that the dotted names have in common. */
static size_t common(const char *a, const char *b)
{
	size_t kept = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '.')
			kept = i + 1;
	return kept;
}

static unsigned int depth_of(const char *key, size_t len)
{
	unsigned int n = 0;

	for (size_t i = 0; i < len; i++)
		n += key[i] == '.';
	return n;
}

static bool is_plain(const char *value)
{
	return !strcmp(value, "true") || !strcmp(value, "false");
}

/* One value below those of its parents that the one before did not name. */
static void value(const struct pp_profile_value *v, const char *last, unsigned int base,
		  struct pp_buf *ret)
{
	size_t shared = common(v->key, last);
	unsigned int depth = base + depth_of(v->key, shared);
	const char *at = v->key + shared;

	for (const char *dot; (dot = strchr(at, '.')); at = dot + 1) {
		indent(ret, depth++);
		pp_buf_printf(ret, "%.*s:\n", (int)(dot - at), at);
	}
	indent(ret, depth);
	if (is_plain(v->value))
		pp_buf_printf(ret, "%s: %s\n", at, v->value);
	else
		pp_buf_printf(ret, "%s: \"%s\"\n", at, v->value);
}

static unsigned int values(const struct pp_profile *p, const char *operator_name,
			   struct pp_buf *ret)
{
	const char *last = "";
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->n_values; i++)
		if (p->value[i].value && !strcmp(p->value[i].operator_name, operator_name)) {
			value(&p->value[i], last, 0, ret);
			last = p->value[i].key;
			n++;
		}
	for (unsigned int i = 0; i < p->n_values; i++)
		if (!p->value[i].value && !strcmp(p->value[i].operator_name, operator_name))
			pp_buf_printf(ret, "# %s: %s\n", p->value[i].key, p->value[i].why);
	return n;
}

static void network(const struct pp_profile *p, struct pp_buf *ret)
{
	struct pp_buf PP_AUTO_BUF body = PP_BUF(PP_PROFILE_BYTES);

	pp_buf_str(ret, "---\n# Network Operator: kubectl apply\n");
	if (values(p, "network-operator", &body))
		pp_buf_str(ret, "apiVersion: mellanox.com/v1alpha1\nkind: NicClusterPolicy\n"
				"metadata:\n  name: nic-cluster-policy\n");
	else
		pp_buf_str(ret, "# nothing to set\n");
	pp_buf_str(ret, pp_buf_text(&body));
}

static void lines(const char *text, struct pp_buf *ret)
{
	size_t len;

	for (; *text; text += len + (text[len] != '\0')) {
		size_t key = strcspn(text, "=\n");

		len = strcspn(text, "\n");
		if (key < len && text[0] != '#')
			pp_buf_printf(ret, "  - name: %.*s\n    value: \"%.*s\"\n", (int)key, text,
				      (int)(len - key - 1), text + key + 1);
	}
}

static void environment(const struct pp_profile *p, struct pp_buf *ret)
{
	struct pp_buf PP_AUTO_BUF body = PP_BUF(PP_PROFILE_BYTES);

	for (unsigned int i = 0; i < p->n_files; i++)
		if (p->file[i].spot->assigns)
			lines(p->file[i].text, &body);
	pp_buf_str(
		ret,
		"---\n# Of the pods' containers. They also need RDMA devices and memory that may "
		"be locked\n# (securityContext.capabilities.add: [IPC_LOCK], or the "
		"runtime's limit).\n");
	pp_buf_str(ret, body.len ? "env:\n" : "env: []\n");
	pp_buf_str(ret, pp_buf_text(&body));
}

void pp_render_kubernetes(const struct pp_profile *p, struct pp_buf *ret)
{
	pp_buf_printf(ret, "# peerpath profile %s: %s\n# SHA-256 %s\n", p->name, p->title,
		      p->sha256);
	pp_buf_str(ret, "# GPU Operator: helm upgrade --reuse-values -f\n");
	(void)values(p, "gpu-operator", ret);
	network(p, ret);
	environment(p, ret);
}
