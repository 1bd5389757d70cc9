/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that were learned from the places where they are known to stand, and are then replaced
 * wherever they stand alone.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"

#include "bundle/scrub_map.h"
#include "base/banned.h"

enum { EVERYWHERE_MIN = 3 };

/* Words that say nothing of anybody, and would take evidence with them. */
static const char *const common[] = {
	"admin",   "alpine", "amd",    "arch",	  "auto",   "bin",     "bond",	    "boot",
	"build",   "built",  "centos", "class",	  "cloud",  "cluster", "compute",   "cpu",
	"cuda",	   "daemon", "data",   "debian",  "dev",    "device",  "driver",    "ens",
	"eth",	   "fedora", "gdr",    "gpu",	  "hca",    "head",    "home",	    "host",
	"hpc",	   "intel",  "kernel", "lib",	  "linux",  "local",   "localhost", "login",
	"made",	   "master", "mlx",    "mlx4",	  "mlx5",   "mpi",     "nccl",	    "net",
	"nic",	   "node",   "nobody", "none",	  "null",   "numa",    "nvidia",    "ofed",
	"openmpi", "pci",    "port",   "proc",	  "rdma",   "redhat",  "roce",	    "rocky",
	"root",	   "run",    "server", "slurm",	  "switch", "sys",     "system",    "test",
	"tmp",	   "ubuntu", "ucx",    "unknown", "user",   "usr",     "var",	    "verbs",
	"version", "worker"};

static bool is_common(const char *word, size_t len)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(common); i++)
		if (strlen(common[i]) == len && !strncasecmp(common[i], word, len))
			return true;
	return false;
}

static const char *make(struct pp_scrub_map *m, enum pp_scrub_class class, const char *word,
			size_t len)
{
	char text[PP_SCRUB_WORD_LEN_MAX];
	uint64_t h;

	memcpy(text, word, len);
	text[len] = '\0';
	for (size_t i = 0; class != PP_SCRUB_SERIAL && i < len; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] = (char)(text[i] + ('a' - 'A'));
	h = pp_scrub_hash(m, (char)('A' + class), text, len);
	switch (class) {
	case PP_SCRUB_HOST:
		return pp_arena_printf(&m->arena, "node-%06x", (unsigned int)(h & 0xffffff));
	case PP_SCRUB_DOMAIN:
		return pp_arena_printf(&m->arena, "d%06x.example", (unsigned int)(h & 0xffffff));
	case PP_SCRUB_USER:
		return pp_arena_printf(&m->arena, "user-%06x", (unsigned int)(h & 0xffffff));
	case PP_SCRUB_SERIAL:
		pp_scrub_shape(m, text, len);
		break;
	}
	return pp_arena_strn(&m->arena, text, len);
}

static void note_first(struct pp_scrub_map *m, char c)
{
	unsigned char lower = (unsigned char)tolower((unsigned char)c);
	unsigned char upper = (unsigned char)toupper((unsigned char)c);

	m->first[lower / 64] |= (uint64_t)1 << lower % 64;
	m->first[upper / 64] |= (uint64_t)1 << upper % 64;
}

const char *pp_scrub_learn(struct pp_scrub_map *m, enum pp_scrub_class class, const char *word,
			   size_t len, bool everywhere)
{
	struct pp_scrub_word fresh = {.class = class, .len = len};
	size_t at = m->n_words;

	if (!len || len >= PP_SCRUB_WORD_LEN_MAX)
		return "scrubbed";
	for (size_t i = 0; i < m->n_words; i++)
		if (m->words[i].len == len && !strncasecmp(m->words[i].from, word, len))
			return m->words[i].to;
	fresh.from = pp_arena_strn(&m->arena, word, len);
	fresh.to = make(m, class, word, len);
	fresh.everywhere = everywhere && len >= EVERYWHERE_MIN && !is_common(word, len);
	/* A word that is not learned would stay wherever it was not told by its place. */
	if (m->arena.failed || m->n_words == PP_SCRUB_WORDS_MAX) {
		m->failed = true;
		return "scrubbed";
	}
	note_first(m, word[0]);
	while (at && m->words[at - 1].len < len) {
		m->words[at] = m->words[at - 1];
		at--;
	}
	m->words[at] = fresh;
	m->n_words++;
	return fresh.to;
}

const struct pp_scrub_word *pp_scrub_word_at(const struct pp_scrub_map *m, const char *text,
					     size_t len)
{
	unsigned char c = len ? (unsigned char)text[0] : 0;

	if (!(m->first[c / 64] >> c % 64 & 1))
		return NULL;
	for (size_t i = 0; i < m->n_words; i++)
		if (m->words[i].everywhere && m->words[i].len <= len &&
		    !strncasecmp(m->words[i].from, text, m->words[i].len))
			return &m->words[i];
	return NULL;
}
