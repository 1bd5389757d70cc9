/* SPDX-License-Identifier: Apache-2.0 */
#include "node/environment.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/banned.h"

enum { MAX_NAME = 128, MAX_VALUE = 8192, MAX_VARIABLES = 1024 };

/* A name, or with '*' at its end a prefix. */
static const char *const allowed[] = {
	"APPTAINER_CONTAINER",
	"CONDA_PREFIX",
	"CUDA_DEVICE_ORDER",
	"CUDA_VISIBLE_DEVICES",
	"FI_*",
	"HOME",
	"LD_LIBRARY_PATH",
	"LD_PRELOAD",
	"NCCL_*",
	"NVIDIA_*",
	"NVSHMEM_*",
	"OMPI_COMM_WORLD_*",
	"PATH",
	"PEERPATH_*",
	"PMIX_RANK",
	"PMI_*",
	"PYTORCH_ALLOC_CONF",
	"PYTORCH_CUDA_ALLOC_CONF",
	"SINGULARITY_CONTAINER",
	"SLURM_JOB_ID",
	"SLURM_NTASKS",
	"SLURM_PROCID",
	"UCX_*",
	"VIRTUAL_ENV",
	"container",
};

bool pp_environment_allowed(const char *name)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(allowed); i++) {
		size_t len = strlen(allowed[i]);
		bool prefix = allowed[i][len - 1] == '*';

		if (prefix ? !strncmp(name, allowed[i], len - 1) : !strcmp(name, allowed[i]))
			return true;
	}
	return false;
}

bool pp_environment_secret(const char *name)
{
	static const char *const words[] = {"TOKEN", "KEY", "SECRET", "PASS", "CRED"};
	size_t len = strlen(name);

	/* An InfiniBand partition key is a number of the fabric, no secret. */
	if (len >= 5 && !strcmp(name + len - 5, "_PKEY"))
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

static bool is_name(const char *text, size_t len)
{
	if (!len || len >= MAX_NAME)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	char name[MAX_NAME], value[MAX_VALUE];
	int64_t redacted = 0;
	int n = 0;

	(void)arg;
	(void)err;
	pp_json_object(data, "variables");
	for (char **e = environ; *e && n < MAX_VARIABLES; e++) {
		size_t len = strcspn(*e, "=");

		if (!(*e)[len] || !is_name(*e, len))
			continue;
		memcpy(name, *e, len);
		name[len] = '\0';
		/* Of a name that comes twice, programs see the first. */
		if (!pp_environment_allowed(name) || getenv(name) != *e + len + 1)
			continue;
		n++;
		if (pp_environment_secret(name)) {
			redacted++;
			continue;
		}
		(void)snprintf(value, sizeof(value), "%s", *e + len + 1);
		pp_sanitize(value, false);
		pp_json_str(data, name, value);
	}
	pp_json_end_object(data);
	pp_json_i64(data, "redacted", redacted);
	return 0;
}

/* A recorded answer is somebody's file: only names and text that this program would have put. */
static json_t *clean(const json_t *variables)
{
	json_t *out = json_object(), *value;
	char text[MAX_VALUE];
	const char *name;

	/* jansson's iteration takes no const object; it changes nothing */
	json_object_foreach((json_t *)(uintptr_t)variables, name, value)
	{
		if (!out || !json_is_string(value) || !is_name(name, strlen(name)) ||
		    !pp_environment_allowed(name))
			continue;
		(void)snprintf(text, sizeof(text), "%s", json_string_value(value));
		pp_sanitize(text, false);
		(void)json_object_set_new(out, name, json_string_nocheck(text));
	}
	return out;
}

int pp_environment_ask(struct pp_source *s, struct pp_environment *ret)
{
	const struct pp_question q = {.name = "environment", .run = run};
	struct pp_answer a;
	int r = pp_ask(s, &q, &a);

	*ret = (struct pp_environment){0};
	if (r)
		return r;
	ret->known = a.answered && json_is_object(json_object_get(a.data, "variables"));
	ret->variables = clean(json_object_get(a.data, "variables"));
	if (!ret->known)
		(void)snprintf(ret->why, sizeof(ret->why), "environment: %.200s",
			       a.answered ? "no variables in the answer" : a.detail);
	(void)pp_answer_i64(a.data, "redacted", &ret->redacted);
	pp_answer_done(&a);
	return ret->variables ? 0 : -ENOMEM;
}

void pp_environment_done(struct pp_environment *env)
{
	json_decref(env->variables);
	env->variables = NULL;
}

const char *pp_environment_get(const struct pp_environment *env, const char *name)
{
	return env->known ? pp_answer_str(env->variables, name) : NULL;
}
