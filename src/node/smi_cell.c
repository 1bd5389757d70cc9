/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of nvidia-smi's matrix: words, comparison, which NIC is near. */
#include "node/smi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const char *const names[] = {
	[PP_SMI_NONE] = "unknown", [PP_SMI_SELF] = "X",	 [PP_SMI_PIX] = "PIX",
	[PP_SMI_PXB] = "PXB",	   [PP_SMI_PHB] = "PHB", [PP_SMI_NODE] = "NODE",
	[PP_SMI_SYS] = "SYS",
};

static const char old_sys[] = "SOC";

bool pp_smi_cell_equal(struct pp_smi_cell a, struct pp_smi_cell b)
{
	return a.class == b.class && a.nvlinks == b.nvlinks;
}

const char *pp_smi_cell_text(struct pp_smi_cell c, char text[PP_SMI_CELL_TEXT])
{
	if (c.class == PP_SMI_NV)
		(void)snprintf(text, PP_SMI_CELL_TEXT, "NV%u", c.nvlinks);
	else
		(void)snprintf(text, PP_SMI_CELL_TEXT, "%s", names[c.class]);
	return text;
}

static bool scan_nvlinks(const char **text, const char *end, struct pp_smi_cell *ret)
{
	const char *p = *text + 2;
	unsigned int n = 0, digits = 0;

	for (; p < end && isdigit((unsigned char)*p) && digits < 3; p++, digits++)
		n = n * 10 + (unsigned int)(*p - '0');
	if (!digits || n > UINT8_MAX)
		return false;
	*ret = (struct pp_smi_cell){PP_SMI_NV, (uint8_t)n};
	*text = p;
	return true;
}

static bool scan_word(const char **text, const char *end, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(end - *text) < len || memcmp(*text, word, len) != 0)
		return false;
	*text += len;
	return true;
}

bool pp_smi_cell_scan(const char **text, const char *end, struct pp_smi_cell *ret)
{
	const char *p = *text;
	enum pp_smi_class class = PP_SMI_NONE;

	while (p < end && isblank((unsigned char)*p))
		p++;
	if (end - p > 2 && p[0] == 'N' && p[1] == 'V') {
		if (!scan_nvlinks(&p, end, ret))
			return false;
		*text = p;
		return true;
	}
	for (unsigned int i = PP_SMI_SELF; i <= PP_SMI_SYS && class == PP_SMI_NONE; i++)
		if (names[i] && scan_word(&p, end, names[i]))
			class = i;
	if (class == PP_SMI_NONE && scan_word(&p, end, old_sys))
		class = PP_SMI_SYS;
	if (class == PP_SMI_NONE)
		return false;
	*ret = (struct pp_smi_cell){(uint8_t) class, 0};
	*text = p;
	return true;
}

enum pp_smi_class pp_smi_nearest(const struct pp_smi *s, unsigned int gpu)
{
	enum pp_smi_class best = PP_SMI_NONE;
	struct pp_smi_cell c;

	for (unsigned int i = 0; i < s->n; i++) {
		c = pp_smi_at(s, gpu, i);
		if (!s->dev[i].is_gpu && (best == PP_SMI_NONE || c.class < best))
			best = c.class;
	}
	return best;
}

void pp_smi_done(struct pp_smi *s)
{
	pp_arena_done(&s->arena);
	*s = (struct pp_smi){.n = 0};
}
