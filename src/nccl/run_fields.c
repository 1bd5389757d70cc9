/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_fields.h"

#include "base/compiler.h"
#include "base/banned.h"

static const char *registration_name(unsigned int i)
{
	return pp_registration_name((enum pp_registration)i);
}

static const char *arm_name(unsigned int i)
{
	return pp_nccl_arm_name((enum pp_nccl_arm)i);
}

static const char *path_name(unsigned int i)
{
	return pp_nccl_path_name((enum pp_nccl_path)i);
}

static const char *mechanism_name(unsigned int i)
{
	return pp_nccl_mechanism_name((enum pp_nccl_mechanism)i);
}

static const char *claim_name(unsigned int i)
{
	return pp_nccl_claim_name((enum pp_nccl_claim)i);
}

static const char *coverage_name(unsigned int i)
{
	return pp_nccl_coverage_name((enum pp_nccl_coverage)i);
}

static const char *origin_name(unsigned int i)
{
	static const char *const names[] = {[PP_NCCL_FROM_USER] = "user",
					    [PP_NCCL_FROM_CONF] = "nccl.conf",
					    [PP_NCCL_FROM_LOGGING] = "logging",
					    [PP_NCCL_FROM_ARM] = "arm"};

	return names[i];
}

static const char *presence_name(unsigned int i)
{
	static const char *const names[] = {[PP_NCCL_PRESENCE_UNKNOWN] = "unknown",
					    [PP_NCCL_ABSENT] = "absent",
					    [PP_NCCL_PRESENT] = "present"};

	return names[i];
}

static const struct pp_run_words registrations = {registration_name, PP_OBSERVED_WAYS},
				 arms = {arm_name, PP_NCCL_ARMS},
				 paths = {path_name, PP_NCCL_PATH_MIXED + 1},
				 mechanisms = {mechanism_name, PP_NCCL_MECHANISM_NONE + 1},
				 claims = {claim_name, PP_NCCL_PROVEN + 1},
				 coverages = {coverage_name, PP_NCCL_COVER_ALL + 1},
				 origins = {origin_name, PP_NCCL_FROM_ARM + 1},
				 presences = {presence_name, PP_NCCL_PRESENT + 1};

#define SIZE_OF(object, member) sizeof(((struct object *)0)->member)
#define PLAIN(object, key_, type_, member)                                                   \
	{                                                                                    \
		.key = (key_), .type = PP_RUN_##type_, .at = offsetof(struct object, member) \
	}
#define TEXT(object, key_, member)                                                        \
	{                                                                                 \
		.key = (key_), .type = PP_RUN_STR, .at = offsetof(struct object, member), \
		.size = SIZE_OF(object, member)                                           \
	}
#define GUARDED(object, key_, type_, member, known)                                           \
	{                                                                                     \
		.key = (key_), .type = PP_RUN_##type_, .at = offsetof(struct object, member), \
		.guard = offsetof(struct object, known) + 1                                   \
	}
#define WORD(object, key_, member, words_)                                                 \
	{                                                                                  \
		.key = (key_), .type = PP_RUN_WORD, .at = offsetof(struct object, member), \
		.words = &(words_)                                                         \
	}
#define OBJECT(object, key_, member, table)                                                  \
	{                                                                                    \
		.key = (key_), .type = PP_RUN_OBJECT, .at = offsetof(struct object, member), \
		.of = &(table)                                                               \
	}
#define EACH(object, key_, member, table)                                                  \
	{                                                                                  \
		.key = (key_), .type = PP_RUN_EACH, .at = offsetof(struct object, member), \
		.words = &registrations, .of = &(table)                                    \
	}
#define LIST(object, key_, type_, member, counter, table, max)                                \
	{                                                                                     \
		.key = (key_), .type = PP_RUN_##type_, .at = offsetof(struct object, member), \
		.count = offsetof(struct object, counter), .of = &(table), .size = (max)      \
	}
#define TABLE(fields, size)                            \
	{                                              \
		(fields), PP_ARRAY_LEN(fields), (size) \
	}

static const struct pp_run_field setting_fields[] = {
	TEXT(pp_nccl_run_setting, "name", name),
	TEXT(pp_nccl_run_setting, "value", value),
	TEXT(pp_nccl_run_setting, "was", was),
	TEXT(pp_nccl_run_setting, "why", why),
	TEXT(pp_nccl_run_setting, "undo", undo),
	WORD(pp_nccl_run_setting, "from", from, origins),
	PLAIN(pp_nccl_run_setting, "nodes", U32, nodes),
};
static const struct pp_run_table setting_table =
	TABLE(setting_fields, sizeof(struct pp_nccl_run_setting));

static const struct pp_run_field port_fields[] = {
	TEXT(pp_traffic_port, "hca", hca),
	PLAIN(pp_traffic_port, "port", U32, port),
	PLAIN(pp_traffic_port, "sent_bytes", U64, sent),
	PLAIN(pp_traffic_port, "received_bytes", U64, received),
	PLAIN(pp_traffic_port, "simulated", BOOL, simulated),
};
static const struct pp_run_table port_table = TABLE(port_fields, sizeof(struct pp_traffic_port));

static const struct pp_run_field gpu_fields[] = {
	TEXT(pp_traffic_gpu, "gpu", bdf),
	GUARDED(pp_traffic_gpu, "pcie_sent_bytes", BYTES, sent, known),
	GUARDED(pp_traffic_gpu, "pcie_received_bytes", BYTES, received, known),
	PLAIN(pp_traffic_gpu, "sampled", BOOL, sampled),
	TEXT(pp_traffic_gpu, "why", why),
};
static const struct pp_run_table gpu_table = TABLE(gpu_fields, sizeof(struct pp_traffic_gpu));

static const struct pp_run_field memory_fields[] = {
	GUARDED(pp_traffic_host, "read_bytes", BYTES, read, known),
	GUARDED(pp_traffic_host, "written_bytes", BYTES, written, known),
	GUARDED(pp_traffic_host, "from_devices_bytes", BYTES, io_in, io_known),
	GUARDED(pp_traffic_host, "to_devices_bytes", BYTES, io_out, io_known),
	TEXT(pp_traffic_host, "why", why),
};
static const struct pp_run_table memory_table =
	TABLE(memory_fields, sizeof(struct pp_traffic_host));

static const struct pp_run_field traffic_fields[] = {
	PLAIN(pp_traffic, "window_ns", I64, window),
	LIST(pp_traffic, "ports", LIST, port, n_ports, port_table, PP_TRAFFIC_PORTS),
	TEXT(pp_traffic, "why_no_ports", why_ports),
	LIST(pp_traffic, "gpus", LIST, gpu, n_gpus, gpu_table, PP_TRAFFIC_GPUS),
	TEXT(pp_traffic, "why_no_gpus", why_gpus),
	OBJECT(pp_traffic, "host_memory", host, memory_table),
};
static const struct pp_run_table traffic_table = TABLE(traffic_fields, sizeof(struct pp_traffic));

/* One number for each way. */
static const struct pp_run_field regions_fields[] = {
	{.key = "regions", .type = PP_RUN_U64},
};
static const struct pp_run_table regions_table = TABLE(regions_fields, sizeof(uint64_t));

static const struct pp_run_field registered_fields[] = {
	EACH(pp_nccl_run_registered, "registered", made, regions_table),
	PLAIN(pp_nccl_run_registered, "gpu_way_unknown", U64, gpu_unknown),
	TEXT(pp_nccl_run_registered, "why", why),
	{.key = "known",
	 .type = PP_RUN_KNOWN,
	 .at = offsetof(struct pp_nccl_run_registered, why),
	 .size = SIZE_OF(pp_nccl_run_registered, why)},
};
static const struct pp_run_table registered_table =
	TABLE(registered_fields, sizeof(struct pp_nccl_run_registered));

static const struct pp_run_field way_fields[] = {
	PLAIN(pp_observed_way, "regions", U64, made),
	PLAIN(pp_observed_way, "bytes", U64, bytes),
};
static const struct pp_run_table way_table = TABLE(way_fields, sizeof(struct pp_observed_way));

static const struct pp_run_field refused_fields[] = {
	TEXT(pp_observed_error, "call", call),
	PLAIN(pp_observed_error, "errno", INT, error),
	PLAIN(pp_observed_error, "times", U64, times),
};
static const struct pp_run_table refused_table =
	TABLE(refused_fields, sizeof(struct pp_observed_error));

static const struct pp_run_field device_fields[] = {
	{.key = "hca", .type = PP_RUN_STR, .size = SIZE_OF(pp_observed, device[0])},
};
static const struct pp_run_table device_table =
	TABLE(device_fields, SIZE_OF(pp_observed, device[0]));

static const struct pp_run_field observed_fields[] = {
	TEXT(pp_observed, "host", host),
	TEXT(pp_observed, "program", program),
	PLAIN(pp_observed, "pid", I64, pid),
	EACH(pp_observed, "registered", way, way_table),
	OBJECT(pp_observed, "unknown", unknown, way_table),
	PLAIN(pp_observed, "deregistered", U64, gone),
	PLAIN(pp_observed, "questions", U64, probes),
	PLAIN(pp_observed, "queue_pairs", U64, queue_pairs),
	LIST(pp_observed, "refused", LIST, error, n_errors, refused_table, PP_OBSERVED_ERRORS),
	LIST(pp_observed, "hcas", LIST, device, n_devices, device_table, PP_OBSERVED_DEVICES),
	TEXT(pp_observed, "exporter", exporter),
	PLAIN(pp_observed, "malformed_lines", U64, malformed),
};
static const struct pp_run_table observed_table =
	TABLE(observed_fields, sizeof(struct pp_observed));

static const struct pp_run_field node_fields[] = {
	TEXT(pp_nccl_run_node, "id", id),
	TEXT(pp_nccl_run_node, "host", host),
	PLAIN(pp_nccl_run_node, "ranks", U32_OR, ranks),
	PLAIN(pp_nccl_run_node, "wait_status", INT, status),
	PLAIN(pp_nccl_run_node, "timed_out", BOOL, timed_out),
	PLAIN(pp_nccl_run_node, "interrupted", BOOL, interrupted),
	TEXT(pp_nccl_run_node, "died", died),
	PLAIN(pp_nccl_run_node, "cpu_seconds", DOUBLE_OR, cpu_seconds),
	OBJECT(pp_nccl_run_node, "traffic", traffic, traffic_table),
	TEXT(pp_nccl_run_node, "expected_hca", expected_hca),
	PLAIN(pp_nccl_run_node, "expected_port", U32_OR, expected_port),
	OBJECT(pp_nccl_run_node, "library", library, registered_table),
	OBJECT(pp_nccl_run_node, "kernel", kernel, registered_table),
	GUARDED(pp_nccl_run_node, "peermem_moved", BOOL, peermem_moved, peermem_known),
	WORD(pp_nccl_run_node, "peermem", peermem, presences),
	TEXT(pp_nccl_run_node, "nccl_library", mapped),
	PLAIN(pp_nccl_run_node, "nccl_libraries", U32_OR, n_mapped),
	PLAIN(pp_nccl_run_node, "was_observed", BOOL, was_observed),
	OBJECT(pp_nccl_run_node, "observed", observed, observed_table),
	PLAIN(pp_nccl_run_node, "log_bytes", U64, log_bytes),
	PLAIN(pp_nccl_run_node, "log_dropped_bytes", U64, log_dropped),
	PLAIN(pp_nccl_run_node, "simulated", BOOL, simulated),
};
static const struct pp_run_table node_table = TABLE(node_fields, sizeof(struct pp_nccl_run_node));

static const struct pp_run_field ends_fields[] = {
	PLAIN(pp_nccl_ends, "gdr", U32, gdr),
	PLAIN(pp_nccl_ends, "staged", U32, staged),
	PLAIN(pp_nccl_ends, "socket", U32, socket),
	PLAIN(pp_nccl_ends, "nvlink", U32, nvlink),
	PLAIN(pp_nccl_ends, "gdr_sends", U32, gdr_sends),
	PLAIN(pp_nccl_ends, "staged_sends", U32, staged_sends),
	PLAIN(pp_nccl_ends, "within_host", U32, within),
	PLAIN(pp_nccl_ends, "unpaired", U32, unpaired),
	PLAIN(pp_nccl_ends, "ambiguous", U32, ambiguous),
	PLAIN(pp_nccl_ends, "unknown_hosts", U32, unknown_hosts),
	PLAIN(pp_nccl_ends, "ll_only", U32, ll),
	PLAIN(pp_nccl_ends, "unknown_network", U32, unknown_net),
	PLAIN(pp_nccl_ends, "unknown_width", U32, unknown_width),
	PLAIN(pp_nccl_ends, "narrow", U32, narrow),
};
static const struct pp_run_table ends_table = TABLE(ends_fields, sizeof(struct pp_nccl_ends));

static const struct pp_run_field why_fields[] = {
	TEXT(pp_nccl_why, "text", text),
};
static const struct pp_run_table why_table = TABLE(why_fields, sizeof(struct pp_nccl_why));

static const struct pp_run_field judgement_fields[] = {
	WORD(pp_nccl_judgement, "path", path, paths),
	WORD(pp_nccl_judgement, "expected_path", expected_path, paths),
	WORD(pp_nccl_judgement, "mechanism", mechanism, mechanisms),
	WORD(pp_nccl_judgement, "claim_gdr", claim_gdr, claims),
	WORD(pp_nccl_judgement, "claim_mechanism", claim_mechanism, claims),
	WORD(pp_nccl_judgement, "coverage", coverage, coverages),
	PLAIN(pp_nccl_judgement, "ranks", U64, ranks),
	PLAIN(pp_nccl_judgement, "ranks_seen", U64, ranks_seen),
	TEXT(pp_nccl_judgement, "missing", missing),
	TEXT(pp_nccl_judgement, "version", version),
	PLAIN(pp_nccl_judgement, "version_by_format", BOOL, version_by_format),
	PLAIN(pp_nccl_judgement, "simulated", BOOL, simulated),
	OBJECT(pp_nccl_judgement, "ends", ends, ends_table),
	LIST(pp_nccl_judgement, "why", LIST, why, n_why, why_table, PP_NCCL_MAX_WHY),
	TEXT(pp_nccl_judgement, "next", next),
};
static const struct pp_run_table judgement_table =
	TABLE(judgement_fields, sizeof(struct pp_nccl_judgement));

static const struct pp_run_field speed_fields[] = {
	PLAIN(pp_nccl_run_speed, "known", BOOL, known),
	TEXT(pp_nccl_run_speed, "collective", collective),
	PLAIN(pp_nccl_run_speed, "large_bytes", U64, large_bytes),
	PLAIN(pp_nccl_run_speed, "small_bytes", U64, small_bytes),
	PLAIN(pp_nccl_run_speed, "large_busbw_gb_per_s", DOUBLE_OR, large_busbw_gbps),
	PLAIN(pp_nccl_run_speed, "small_us", DOUBLE_OR, small_us),
	PLAIN(pp_nccl_run_speed, "payload_bytes", U64_OR, payload_bytes),
	PLAIN(pp_nccl_run_speed, "rows_wrong", U64, wrong),
	PLAIN(pp_nccl_run_speed, "rows_unchecked", U64, unchecked),
};
static const struct pp_run_table speed_table =
	TABLE(speed_fields, sizeof(struct pp_nccl_run_speed));

static const struct pp_run_field run_fields[] = {
	WORD(pp_nccl_run, "arm", arm, arms),
	PLAIN(pp_nccl_run, "started_ns", I64, started),
	PLAIN(pp_nccl_run, "took_ns", I64, took),
	TEXT(pp_nccl_run, "command", command),
	TEXT(pp_nccl_run, "nccl_library", library),
	TEXT(pp_nccl_run, "nccl_version", library_version),
	LIST(pp_nccl_run, "settings", LIST, setting, n_settings, setting_table,
	     PP_NCCL_RUN_SETTINGS),
	LIST(pp_nccl_run, "nodes", OWNED, node, n_nodes, node_table, PP_NCCL_RUN_NODES),
	PLAIN(pp_nccl_run, "nodes_missing", U32, missing),
	TEXT(pp_nccl_run, "missing_why", missing_why),
	OBJECT(pp_nccl_run, "judgement", judgement, judgement_table),
	TEXT(pp_nccl_run, "networks", networks),
	TEXT(pp_nccl_run, "in_network", in_network),
	TEXT(pp_nccl_run, "root_error", root_error),
	OBJECT(pp_nccl_run, "speed", speed, speed_table),
	PLAIN(pp_nccl_run, "simulated", BOOL, simulated),
};
const struct pp_run_table pp_run_table = TABLE(run_fields, sizeof(struct pp_nccl_run));
