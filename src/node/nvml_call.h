/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling NVML: the only file that knows its ABI (API version 13, as of driver R580; every entry
 * point and structure used here is older). No entry point is taken for granted: a missing one or
 * an error code makes one member of the answer absent.
 */
#ifndef PP_NODE_NVML_CALL_H
#define PP_NODE_NVML_CALL_H

#include "base/json.h"

#define PP_NVML_LIBRARY "libnvidia-ml.so.1"

enum { PP_NVML_TEXT = 128 };

enum {
	NVML_SUCCESS = 0,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_CLOCK_SM = 1,
	NVML_FIELD_LINK_COUNT = 91,
};

typedef void *nvml_device;

struct nvml_pci {
	char legacy_id[16];
	unsigned int domain, bus, device, ids, subsystem;
	char id[32]; /* "00000000:3B:00.0" */
};

/* Of the GPU's memory, and of BAR1. */
struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_addressing {
	unsigned int version, value;
};

struct nvml_field {
	unsigned int id, scope;
	long long timestamp, latency_us;
	int type, result;
	union {
		unsigned int u32;
		unsigned long long u64;
	} value;
};

struct nvml_fabric {
	unsigned int version;
	unsigned char cluster[16];
	int status;
	unsigned int clique;
	unsigned char state;
	unsigned int health;
};

/* How NVML tells the version of a structure: its size, and the number in the top byte. */
#define NVML_STRUCT(type, number) ((unsigned int)sizeof(type) | (number) << 24)

/* One conversation: the library, the device it is about, and where the members go. */
struct pp_nvml {
	void *lib;
	struct pp_json *out; /* borrowed */
	nvml_device device;
	int gpu; /* NVML index, -1 while no device is meant */
};

/* The entry point, announced as the call about to be made; NULL when the library has none. */
void *pp_nvml_entry(const struct pp_nvml *t, const char *name);
/* The same; a missing one becomes the member's reason. */
void *pp_nvml_entry_for(const struct pp_nvml *t, const char *member, const char *name);
/* True for success; else the code becomes the member's reason. */
bool pp_nvml_good(const struct pp_nvml *t, const char *member, int code);
/* "NVML_ERROR_NOT_SUPPORTED (3)"; returns @text. */
const char *pp_nvml_error(int code, char text[PP_NVML_TEXT]);

#endif
