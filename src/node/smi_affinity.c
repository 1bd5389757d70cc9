/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the cells of a row: CPUs and NUMA nodes, under up to three titles. */
#include "node/smi_text.h"

#include <ctype.h>
#include <string.h>

#include "base/banned.h"

enum { TITLES = 3, FIELDS = 8 };

static const struct {
	const char *text;
	unsigned int bit;
} title_table[TITLES] = {
	{"CPU Affinity", PP_SMI_TITLE_CPU},
	{"NUMA Affinity", PP_SMI_TITLE_NUMA},
	{"GPU NUMA ID", PP_SMI_TITLE_GPU_NUMA},
};

unsigned int pp_smi_title(const char **text, const char *end)
{
	for (unsigned int i = 0; i < TITLES; i++) {
		if (!pp_smi_starts(*text, end, title_table[i].text))
			continue;
		*text += strlen(title_table[i].text);
		return title_table[i].bit;
	}
	return 0;
}

static const char *keep(struct pp_arena *a, const char *text, const char *end)
{
	text = pp_smi_skip_blanks(text, end);
	while (end > text && isblank((unsigned char)end[-1]))
		end--;
	return text < end ? pp_arena_strn(a, text, (size_t)(end - text)) : NULL;
}

/*
 * Affinity as the driver prints it: CPUs, nodes, an empty column, the GPU's own node; "N/A" may
 * bring one more empty column. So the last field is the GPU's own node, and the first that is not
 * empty after the CPUs is the node.
 */
static void affinity_tabs(struct pp_arena *a, unsigned int titles, const char *text,
			  const char *end, struct pp_smi_dev *d)
{
	const char *field[FIELDS] = {0}, *stop;
	unsigned int n = 0, last;

	for (text = memchr(text, '\t', (size_t)(end - text)); text && n < FIELDS; text = stop) {
		stop = memchr(text + 1, '\t', (size_t)(end - text - 1));
		field[n++] = keep(a, text + 1, stop ? stop : end);
	}
	if (!n)
		return;
	last = n;
	d->cpus = field[0];
	if (titles & PP_SMI_TITLE_GPU_NUMA && n > 1)
		d->gpu_numa = field[--last];
	for (unsigned int i = 1; i < last && !d->numa; i++)
		d->numa = field[i];
}

/* Blanks: with fewer fields than titles only the GPU's own node, always printed, is certain. */
static void affinity_blanks(struct pp_arena *a, unsigned int titles, const char *text,
			    const char *end, struct pp_smi_dev *d)
{
	const char *field[TITLES] = {0}, *stop;
	unsigned int n = 0, want = 0;

	for (unsigned int i = 0; i < TITLES; i++)
		want += (titles & title_table[i].bit) != 0;
	for (text = pp_smi_skip_blanks(text, end); text < end && n < TITLES;
	     text = pp_smi_skip_blanks(stop, end)) {
		for (stop = text; stop < end && !isblank((unsigned char)*stop);)
			stop++;
		field[n++] = keep(a, text, stop);
	}
	if (n == want) {
		d->cpus = field[0];
		d->numa = field[1];
		d->gpu_numa = field[2];
	} else if (n && titles & PP_SMI_TITLE_GPU_NUMA) {
		d->gpu_numa = field[n - 1];
	}
}

void pp_smi_affinity(struct pp_arena *a, unsigned int titles, const char *text, const char *end,
		     struct pp_smi_dev *d)
{
	if (memchr(text, '\t', (size_t)(end - text)))
		affinity_tabs(a, titles, text, end, d);
	else
		affinity_blanks(a, titles, text, end, d);
}
