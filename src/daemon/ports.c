/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bdf.h"
#include "base/parse.h"
#include "base/banned.h"

static const char CLASS[] = "/sys/class/infiniband", CLASSES[] = "/sys/class";
enum { MAX_PORT = 255 };

static bool same(const struct pp_names *a, const struct pp_names *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->name[i], b->name[i]) != 0)
			return false;
	return true;
}

/* ".../0000:17:00.0/infiniband/mlx5_0" -> its PCI function. */
static bool function_of(const char *dir, char ret[PP_BDF_TEXT])
{
	const char *at = strstr(dir, "/infiniband/"), *from = at;
	char name[32];
	struct pp_bdf bdf;

	while (from && from > dir && from[-1] != '/')
		from--;
	if (!from || (size_t)(at - from) >= sizeof(name))
		return false;
	(void)memcpy(name, from, (size_t)(at - from));
	name[at - from] = '\0';
	if (pp_bdf_parse_kernel(name, &bdf))
		return false;
	(void)pp_bdf_format(&bdf, ret);
	return true;
}

/* The interface of the first GID: what the kernel itself says the port sends by. */
static void netdev_of(struct pp_source *s, struct pp_watch_port *p)
{
	char path[PP_PATH_MAX], text[64];

	if (pp_path_join(p->dir, "link_layer", path) ||
	    pp_source_text(s, path, text, sizeof(text)) || strcmp(text, "Ethernet") != 0)
		return;
	p->ethernet = true;
	if (!pp_path_join(p->dir, "gid_attrs/ndevs/0", path) &&
	    !pp_source_text(s, path, text, sizeof(text)) && !strchr(text, '/'))
		(void)snprintf(p->netdev, sizeof(p->netdev), "%s", text);
}

static struct pp_watch_port *find(struct pp_watch_ports *p, const char *object)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->port[i].object, object))
			return &p->port[i];
	return NULL;
}

static int add(struct pp_source *s, struct pp_watch_ports *all, const char *hca, const char *dir,
	       uint64_t number)
{
	struct pp_watch_port one = {0}, *known, *grown;
	char path[PP_PATH_MAX], bdf[PP_BDF_TEXT];

	if ((size_t)snprintf(path, sizeof(path), "%s/ports/%u", dir, (unsigned int)number) >=
	    sizeof(path))
		return 0;
	(void)snprintf(one.hca, sizeof(one.hca), "%s", hca);
	one.pci = function_of(dir, bdf);
	(void)snprintf(one.object, sizeof(one.object), "%s port %u", one.pci ? bdf : one.hca,
		       (unsigned int)number);
	one.dir = strdup(path);
	if (!one.dir)
		return -ENOMEM;
	netdev_of(s, &one);
	known = find(all, one.object);
	if (known) {
		free(known->dir);
		*known = one;
		return 0;
	}
	grown = all->n < PP_WATCH_PORTS ? reallocarray(all->port, all->n + 1, sizeof(*grown))
					: NULL;
	if (!grown) {
		free(one.dir);
		return all->n < PP_WATCH_PORTS ? -ENOMEM : 0;
	}
	all->port = grown;
	all->port[all->n++] = one;
	return 0;
}

static int add_device(struct pp_source *s, struct pp_watch_ports *all, const char *hca)
{
	char link[PP_PATH_MAX], dir[PP_PATH_MAX], path[PP_PATH_MAX];
	struct pp_names names;
	uint64_t number;
	int r = 0;

	if (pp_path_join(CLASS, hca, link) || pp_source_real(s, link, dir) ||
	    pp_path_join(dir, "ports", path) || pp_source_list(s, path, &names))
		return 0;
	for (size_t i = 0; !r && i < names.n; i++)
		if (!pp_parse_u64(names.name[i], 1, MAX_PORT, &number))
			r = add(s, all, hca, dir, number);
	pp_names_done(&names);
	return r;
}

/*
 * A class without a device has no directory until its module is loaded: then what the directory
 * above it lists without it is evidence. What cannot be listed is none.
 */
static int list_devices(struct pp_source *s, struct pp_names *ret)
{
	struct pp_names classes = {0};
	int above, r = pp_source_list(s, CLASS, ret);

	if (r != -ENOENT)
		return r;
	above = pp_source_list(s, CLASSES, &classes);
	pp_names_done(&classes);
	*ret = (struct pp_names){0};
	return above;
}

int pp_watch_ports_read(struct pp_source *s, struct pp_watch_ports *p)
{
	struct pp_names now = {0};
	int r = list_devices(s, &now);

	p->why[0] = '\0';
	if (r == -ENOMEM)
		return r;
	p->none = !r && !now.n;
	if (r)
		(void)snprintf(p->why, sizeof(p->why), "%s: %s", CLASS, pp_source_why(r));
	else if (p->none)
		(void)snprintf(p->why, sizeof(p->why), "%s: there is no RDMA device", CLASS);
	/* What cannot be listed is not known to be gone; only what is listed without it is. */
	if (r || (p->listed && same(&now, &p->devices))) {
		pp_names_done(&now);
		return 0;
	}
	for (size_t i = 0; i < p->n; i++)
		p->port[i].gone = true;
	r = 0;
	for (size_t i = 0; !r && i < now.n; i++)
		r = add_device(s, p, now.name[i]);
	pp_names_done(&p->devices);
	p->devices = now;
	p->listed = true;
	p->generation++;
	return r;
}

void pp_watch_ports_done(struct pp_watch_ports *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->port[i].dir);
	free(p->port);
	pp_names_done(&p->devices);
	*p = (struct pp_watch_ports){0};
}
