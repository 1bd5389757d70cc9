/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a line names, and settings.
 */
#include "judge/field_words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_call(const char *p, size_t len)
{
	static const char *const prefixes[] = {
		"ibv_",	 "mlx5dv_",   "rdma_",	"fi_",	   "nvidia_p2p_", "cuMem",    "cudaMem",
		"cuda",	 "cuPointer", "efadv_", "ib_umem", "ib_reg",	  "gdr_",     "gds_",
		"mlock", "doca_",     "nccl",	"shmget",  "shm_open",	  "wrap_ibv_"};
	size_t n;

	for (size_t i = 0; i < PP_ARRAY_LEN(prefixes); i++) {
		n = strlen(prefixes[i]);
		if (len >= n && !memcmp(p, prefixes[i], n))
			return true;
	}
	return false;
}

/* NAME=value, NAME set by environment to value, NAME set to value, NAME: value. */
static void read_setting(struct pp_fields *f, const char *name, size_t len)
{
	static const char *const links[] = {" set by environment to ",
					    " set by plugin to ",
					    " set to ",
					    "=",
					    ": ",
					    " = ",
					    "':'",
					    "\":\"",
					    "\": \""};
	const char *end = f->text + f->len, *at = name + len, *stop;
	char pair[PP_FIELD_WORD];
	size_t n;
	int written;

	for (size_t i = 0; i < PP_ARRAY_LEN(links); i++) {
		n = strlen(links[i]);
		if ((size_t)(end - at) <= n || memcmp(at, links[i], n) != 0)
			continue;
		at += n;
		while (at < end && (*at == '"' || *at == '\''))
			at++;
		for (stop = at; stop < end && !strchr(" \t\"';,&)", *stop); stop++)
			;
		while (stop > at && stop[-1] == '.')
			stop--;
		written = snprintf(pair, sizeof(pair), "%.*s:%.*s", (int)len, name,
				   (int)(stop - at < 100 ? stop - at : 100), at);
		if (written > 0)
			pp_fields_add_word(f, PP_FIELD_ENV, pair, strlen(pair));
		return;
	}
}

static bool is_setting(const char *p, size_t len)
{
	static const char *const prefixes[] = {
		"NCCL_", "UCX_",  "FI_", "NVSHMEM_", "OFI_NCCL_", "PYTORCH_", "TORCH_", "RCCL_",
		"OMPI_", "MLX5_", "LD_", "MC_",	     "RDMAV_",	  "IBV_",     "GLOO_",	"NVreg_"};
	size_t n;

	for (size_t i = 0; i < PP_ARRAY_LEN(prefixes); i++) {
		n = strlen(prefixes[i]);
		if (len > n && !memcmp(p, prefixes[i], n))
			return true;
	}
	return false;
}

void pp_field_read_names(struct pp_fields *f)
{
	static const char firsts[] = "imrfncegdswNUFOPTRMLIG"; /* of the prefixes above */
	const char *end = f->text + f->len, *p = f->text, *start;

	while (p < end) {
		if (!is_name(*p)) {
			p++;
			continue;
		}
		for (start = p; p < end && is_name(*p); p++)
			;
		if (p - start < 5 || !memchr(firsts, *start, sizeof(firsts) - 1))
			continue;
		if (is_call(start, (size_t)(p - start)))
			pp_fields_add_word(f, PP_FIELD_CALL, start, (size_t)(p - start));
		else if (is_setting(start, (size_t)(p - start)))
			read_setting(f, start, (size_t)(p - start));
	}
}
