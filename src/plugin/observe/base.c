/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's errno. This library has another libc, whose errno is another variable; the
 * program's is where its own libc's __errno_location() says. That function is looked up in the hash
 * table of the loaded object: asking the linker (dlsym) from inside a verb could take its lock.
 */
#include <string.h>

#include "plugin/observe/observe.h"

#include "base/banned.h"

static struct link_map *libc;
static int *(*location)(void);

void observe_base_seen(struct link_map *map)
{
	libc = map;
}

struct tables {
	const Elf64_Sym *symbols;
	const char *names;
	const uint32_t *hash; /* DT_GNU_HASH */
};

/* The linker may or may not have added the load address to what the file says. */
static const void *at(const struct link_map *map, Elf64_Addr value)
{
	return (const void *)(value < map->l_addr ? map->l_addr + value : value);
}

static bool find_tables(const struct link_map *map, struct tables *ret)
{
	*ret = (struct tables){0};
	for (const Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			ret->symbols = at(map, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			ret->names = at(map, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			ret->hash = at(map, d->d_un.d_ptr);
	}
	return ret->symbols && ret->names && ret->hash;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* Header: buckets, first symbol that is hashed, bloom words (of 64 bits), shift. */
static uintptr_t find(const struct link_map *map, const char *name)
{
	struct tables t;
	uint32_t h = hash_of(name), index;
	const uint32_t *buckets, *chain;

	if (!find_tables(map, &t) || !t.hash[0])
		return 0;
	buckets = t.hash + 4 + t.hash[2] * 2;
	chain = buckets + t.hash[0];
	index = buckets[h % t.hash[0]];
	if (index < t.hash[1])
		return 0;
	for (;; index++) {
		uint32_t seen = chain[index - t.hash[1]];

		if ((seen | 1) == (h | 1) && !strcmp(t.names + t.symbols[index].st_name, name))
			return map->l_addr + t.symbols[index].st_value;
		if (seen & 1)
			return 0; /* the chain's end */
	}
}

int observe_base_errno(void)
{
	if (!location && libc)
		location = (int *(*)(void))find(libc, "__errno_location");
	return location ? *location() : 0;
}
