/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/result_fields.h"

#include "base/compiler.h"
#include "base/banned.h"

/* Far above any real run; what a document may not exceed. */
enum {
	NODES_MAX = 4096,
	PAIRS_MAX = 16384,
	CELLS_MAX = 65536,
	SAMPLES_MAX = 16384,
	ATTEMPTS_MAX = 1024,
	NEGATIVES_MAX = 64,
	COUNTERS_MAX = 1024,
	EVIDENCE_MAX = 1024,
	SURFACES_MAX = 64
};

static const char *operation_name(unsigned int i)
{
	return pp_operation_name((enum pp_operation)i);
}

static const char *rung_name(unsigned int i)
{
	return pp_rung_name((enum pp_rung)i);
}

static const char *measure_name(unsigned int i)
{
	return pp_measure_name((enum pp_measure)i);
}

static const char *pattern_name(unsigned int i)
{
	return pp_pattern_name((enum pp_pattern)i);
}

static const char *state_name(unsigned int i)
{
	return pp_bench_state_name((enum pp_bench_state)i);
}

static const char *memory_name(unsigned int i)
{
	return pp_memory_kind_name((enum pp_memory_kind)i);
}

static const char *about_name(unsigned int i)
{
	return pp_about_name((enum pp_about)i);
}

static const char *witness_name(unsigned int i)
{
	return pp_witness_name((enum pp_witness)i);
}

static const char *scope_name(unsigned int i)
{
	return pp_scope_name((enum pp_scope)i);
}

static const char *claim_name(unsigned int i)
{
	return pp_claim_name((enum pp_claim)i);
}

static const struct pp_field_words operations = {operation_name, PP_OPERATIONS},
				   rungs = {rung_name, PP_RUNGS},
				   measures = {measure_name, PP_MEASURES},
				   patterns = {pattern_name, PP_INCAST + 1},
				   states = {state_name, PP_BENCH_NOT_REACHED + 1},
				   memories = {memory_name, PP_MEMORY_SIM + 1},
				   abouts = {about_name, PP_OUTCOME + 1},
				   witnesses = {witness_name, PP_BY_MEASUREMENT + 1},
				   scopes = {scope_name, PP_OF_JOB + 1},
				   claims = {claim_name, PP_REFUTED + 1};

#define PLAIN(object, key_, type_, member)                                                     \
	{                                                                                      \
		.key = (key_), .type = PP_FIELD_##type_, .at = offsetof(struct object, member) \
	}
#define WORD(object, key_, member, words_)                                                   \
	{                                                                                    \
		.key = (key_), .type = PP_FIELD_WORD, .at = offsetof(struct object, member), \
		.words = &(words_)                                                           \
	}
#define LIST(object, key_, type_, member, table, limit)                                         \
	{                                                                                       \
		.key = (key_), .type = PP_FIELD_##type_, .at = offsetof(struct object, member), \
		.count = offsetof(struct object, n_##member), .of = (table), .max = (limit)     \
	}
#define PLACED(object, key_, type_, member, table)                                              \
	{                                                                                       \
		.key = (key_), .type = PP_FIELD_##type_, .at = offsetof(struct object, member), \
		.of = (table)                                                                   \
	}
#define TABLE(fields, object)                                         \
	{                                                             \
		(fields), PP_ARRAY_LEN(fields), sizeof(struct object) \
	}

static const struct pp_result_field node_fields[] = {
	PLAIN(pp_bench_node, "id", STR, id),
	PLAIN(pp_bench_node, "host", STR, host),
	PLAIN(pp_bench_node, "address", STR, address),
	PLAIN(pp_bench_node, "peerpath", STR, version),
	PLAIN(pp_bench_node, "software_fingerprint", STR, fingerprint),
	PLAIN(pp_bench_node, "topology_class", STR, topology),
	PLAIN(pp_bench_node, "busy", STR, busy),
	PLAIN(pp_bench_node, "simulated", BOOL, simulated),
	PLAIN(pp_bench_node, "arrival_skew_us", DOUBLE_OR, arrival_skew),
};
static const struct pp_field_table node_table = TABLE(node_fields, pp_bench_node);

static const struct pp_result_field end_fields[] = {
	PLAIN(pp_bench_end, "node", UINT, node),
	PLAIN(pp_bench_end, "device", STR, device),
	PLAIN(pp_bench_end, "hca", STR, hca),
	PLAIN(pp_bench_end, "driver", STR, driver),
	PLAIN(pp_bench_end, "port", UINT, port),
	PLAIN(pp_bench_end, "gid_index", INT_OR, gid_index),
	PLAIN(pp_bench_end, "gid", STR, gid),
	PLAIN(pp_bench_end, "gid_type", STR, gid_type),
	PLAIN(pp_bench_end, "netdev", STR, netdev),
	PLAIN(pp_bench_end, "link_layer", STR, link_layer),
	PLAIN(pp_bench_end, "gpu", STR, gpu),
	PLAIN(pp_bench_end, "gpu_uuid", STR, gpu_uuid),
	PLAIN(pp_bench_end, "gpu_name", STR, gpu_name),
	PLAIN(pp_bench_end, "distance", STR, distance),
	PLAIN(pp_bench_end, "route", STR, route),
	PLAIN(pp_bench_end, "numa_node", INT_OR, numa),
	PLAIN(pp_bench_end, "cpus", STR, cpus),
	PLAIN(pp_bench_end, "port_mbit_per_s", I64_OR, port_mbps),
	PLAIN(pp_bench_end, "hca_pci_mb_per_s", I64_OR, pci_mbytes),
	PLAIN(pp_bench_end, "gpu_pci_mb_per_s", I64_OR, gpu_pci_mbytes),
	PLAIN(pp_bench_end, "mtu_bytes", UINT, mtu),
	PLAIN(pp_bench_end, "traffic_class", INT_OR, traffic_class),
	PLAIN(pp_bench_end, "priority", INT_OR, priority),
	PLAIN(pp_bench_end, "simulated", BOOL, simulated),
};
static const struct pp_field_table end_table = TABLE(end_fields, pp_bench_end);

static const struct pp_result_field attempt_fields[] = {
	PLAIN(pp_bench_attempt, "end", UINT, end),
	PLAIN(pp_bench_attempt, "how", STR, how),
	PLAIN(pp_bench_attempt, "call", STR, call),
	PLAIN(pp_bench_attempt, "arguments", STR, arguments),
	PLAIN(pp_bench_attempt, "error", INT, error),
	PLAIN(pp_bench_attempt, "error_is_cuda", BOOL, cuda),
	PLAIN(pp_bench_attempt, "took_ns", I64, took),
	PLAIN(pp_bench_attempt, "bar1_before_bytes", I64_OR, bar1_before),
	PLAIN(pp_bench_attempt, "bar1_after_bytes", I64_OR, bar1_after),
};
static const struct pp_field_table attempt_table = TABLE(attempt_fields, pp_bench_attempt);

static const struct pp_result_field negative_fields[] = {
	PLAIN(pp_bench_negative, "kind", STR, kind),
	PLAIN(pp_bench_negative, "run", BOOL, run),
	PLAIN(pp_bench_negative, "refused", BOOL, refused),
	PLAIN(pp_bench_negative, "status", STR, status),
};
static const struct pp_field_table negative_table = TABLE(negative_fields, pp_bench_negative);

static const struct pp_result_field sighting_fields[] = {
	PLAIN(pp_bench_sighting, "surface", STR, surface),
	PLAIN(pp_bench_sighting, "registration", STR, registration),
	PLAIN(pp_bench_sighting, "sufficient", BOOL, sufficient),
	PLAIN(pp_bench_sighting, "raw", STR, raw),
};
static const struct pp_field_table sighting_table = TABLE(sighting_fields, pp_bench_sighting);

static const struct pp_result_field missing_fields[] = {
	PLAIN(pp_bench_missing, "surface", STR, surface),
	PLAIN(pp_bench_missing, "state", STR, state),
	PLAIN(pp_bench_missing, "why", STR, why),
	PLAIN(pp_bench_missing, "how", STR, how),
};
static const struct pp_field_table missing_table = TABLE(missing_fields, pp_bench_missing);

static const struct pp_result_field evidence_fields[] = {
	PLAIN(pp_bench_evidence, "end", UINT, end),
	WORD(pp_bench_evidence, "about", about, abouts),
	WORD(pp_bench_evidence, "witness", witness, witnesses),
	WORD(pp_bench_evidence, "scope", scope, scopes),
	PLAIN(pp_bench_evidence, "registration", STR, registration),
	WORD(pp_bench_evidence, "state", state, claims),
	PLAIN(pp_bench_evidence, "gpu_memory", BOOL, gpu_memory),
	PLAIN(pp_bench_evidence, "other_memory", BOOL, other),
	PLAIN(pp_bench_evidence, "of_regions", I64_OR, of_regions),
	PLAIN(pp_bench_evidence, "pid", I64_OR, pid),
	PLAIN(pp_bench_evidence, "comm", STR, comm),
	PLAIN(pp_bench_evidence, "hca", STR, hca),
	PLAIN(pp_bench_evidence, "bdf", STR, bdf),
	PLAIN(pp_bench_evidence, "mrn", I64_OR, mrn),
	PLAIN(pp_bench_evidence, "lkey", I64_OR, lkey),
	PLAIN(pp_bench_evidence, "length_bytes", I64_OR, length),
	PLAIN(pp_bench_evidence, "exporter", STR, exporter),
	PLAIN(pp_bench_evidence, "importer", STR, importer),
	PLAIN(pp_bench_evidence, "buffer_inode", I64_OR, inode),
	LIST(pp_bench_evidence, "sightings", LIST, sightings, &sighting_table, SURFACES_MAX),
	LIST(pp_bench_evidence, "missing", LIST, missing, &missing_table, SURFACES_MAX),
	PLAIN(pp_bench_evidence, "why", STR, why),
	PLAIN(pp_bench_evidence, "simulated", BOOL, simulated),
	PLAIN(pp_bench_evidence, "looked", TIME_OR, looked),
	PLAIN(pp_bench_evidence, "took_ns", I64_OR, took_ns),
};
const struct pp_field_table pp_result_evidence = TABLE(evidence_fields, pp_bench_evidence);

static const struct pp_result_field rung_fields[] = {
	WORD(pp_bench_rung, "rung", rung, rungs),
	WORD(pp_bench_rung, "state", state, states),
	PLAIN(pp_bench_rung, "why", STR, why),
	PLAIN(pp_bench_rung, "error", INT, error),
	PLAIN(pp_bench_rung, "status", INT, status),
	PLAIN(pp_bench_rung, "end", UINT, end),
	PLAIN(pp_bench_rung, "call", STR, call),
	WORD(pp_bench_rung, "memory", memory, memories),
	PLAIN(pp_bench_rung, "registration", STR, registration),
	PLAIN(pp_bench_rung, "flush", STR, flush),
	PLAIN(pp_bench_rung, "offset", STR, offset),
	PLAIN(pp_bench_rung, "link", STRS_OR, link),
	PLAIN(pp_bench_rung, "simulated", BOOL, simulated),
	LIST(pp_bench_rung, "attempts", LIST, attempts, &attempt_table, ATTEMPTS_MAX),
	LIST(pp_bench_rung, "negatives", LIST, negatives, &negative_table, NEGATIVES_MAX),
	LIST(pp_bench_rung, "evidence", LIST_OR, evidence, &pp_result_evidence, EVIDENCE_MAX),
};
static const struct pp_field_table rung_table = TABLE(rung_fields, pp_bench_rung);

static const struct pp_result_field counter_fields[] = {
	PLAIN(pp_bench_counter, "end", UINT, end),
	PLAIN(pp_bench_counter, "name", STR, name),
	PLAIN(pp_bench_counter, "delta", I64, delta),
};
static const struct pp_field_table counter_table = TABLE(counter_fields, pp_bench_counter);

/* The measure comes before the samples, whose key depends on it. */
static const struct pp_result_field cell_fields[] = {
	WORD(pp_bench_cell, "rung", rung, rungs),
	WORD(pp_bench_cell, "operation", op, operations),
	WORD(pp_bench_cell, "measure", measure, measures),
	PLAIN(pp_bench_cell, "size_bytes", U64, size),
	PLAIN(pp_bench_cell, "qps", UINT, qps),
	PLAIN(pp_bench_cell, "depth", UINT, depth),
	PLAIN(pp_bench_cell, "together", BOOL, together),
	WORD(pp_bench_cell, "state", state, states),
	PLAIN(pp_bench_cell, "why", STR, why),
	PLAIN(pp_bench_cell, "error", INT, error),
	PLAIN(pp_bench_cell, "status", INT, status),
	PLAIN(pp_bench_cell, "end", UINT, end),
	{.key = "samples",
	 .type = PP_FIELD_SAMPLES,
	 .at = offsetof(struct pp_bench_cell, sample),
	 .count = offsetof(struct pp_bench_cell, n_samples),
	 .max = SAMPLES_MAX},
	PLAIN(pp_bench_cell, "p50_us", DOUBLE_ZERO, p50),
	PLAIN(pp_bench_cell, "p99_us", DOUBLE_ZERO, p99),
	PLAIN(pp_bench_cell, "p999_us", DOUBLE_ZERO, p999),
	PLAIN(pp_bench_cell, "moved_bytes", U64, bytes),
	PLAIN(pp_bench_cell, "messages", U64, messages),
	PLAIN(pp_bench_cell, "cpu_s_per_gb", DOUBLES_OR, cpu_seconds_per_gb),
	PLAIN(pp_bench_cell, "copies", U64, copies),
	PLAIN(pp_bench_cell, "checked_bytes", U64, checked),
	PLAIN(pp_bench_cell, "wrong_bytes", U64, wrong),
	PLAIN(pp_bench_cell, "first_wrong_offset_bytes", U64, first_wrong),
	PLAIN(pp_bench_cell, "arrival_skew_us", DOUBLE_OR, arrival_skew),
	LIST(pp_bench_cell, "counters", LIST, counters, &counter_table, COUNTERS_MAX),
	PLAIN(pp_bench_cell, "gpu_lowest_mhz", I64S_OR, gpu_mhz),
	PLAIN(pp_bench_cell, "throttle", STRS, throttle),
};
static const struct pp_field_table cell_table = TABLE(cell_fields, pp_bench_cell);

static const struct pp_result_field pair_fields[] = {
	PLAIN(pp_bench_pair, "name", STR, name),
	PLAIN(pp_bench_pair, "rail", UINT, rail),
	PLACED(pp_bench_pair, "ends", TWO, end, &end_table),
	PLACED(pp_bench_pair, "rungs", RUNGS, rung, &rung_table),
	LIST(pp_bench_pair, "cells", LIST, cells, &cell_table, CELLS_MAX),
};
static const struct pp_field_table pair_table = TABLE(pair_fields, pp_bench_pair);

static const struct pp_result_field bench_fields[] = {
	PLAIN(pp_bench, "peerpath", STR, version),
	PLAIN(pp_bench, "started", TIME_OR, started),
	PLAIN(pp_bench, "took_ns", I64, took),
	PLAIN(pp_bench, "simulated", BOOL, simulated),
	PLAIN(pp_bench, "whole", BOOL, whole),
	PLAIN(pp_bench, "ended", STR, ended),
	WORD(pp_bench, "pattern", pattern, patterns),
	PLAIN(pp_bench, "repeats", UINT, repeats),
	PLAIN(pp_bench, "second_witness", STR, second),
	LIST(pp_bench, "nodes", LIST, nodes, &node_table, NODES_MAX),
	LIST(pp_bench, "pairs", LIST, pairs, &pair_table, PAIRS_MAX),
};
const struct pp_field_table pp_result_table = TABLE(bench_fields, pp_bench);

const char *pp_result_samples_key(const struct pp_bench_cell *cell)
{
	return cell->measure == PP_LATENCY ? "samples_us" : "samples_mb_per_s";
}
