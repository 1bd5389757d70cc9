/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/abi/text.h"

#include "base/compiler.h"
#include "soft/abi/export.h"
#include "base/banned.h"

static const char *word(const char *const *words, size_t n, long value)
{
	if (value < 0 || (size_t)value >= n || !words[value])
		return "unknown";
	return words[value];
}

/* Tools print these and scripts match them: the words are rdma-core's. */
const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const words[] = {
		"success",
		"local length error",
		"local QP operation error",
		"local EE context operation error",
		"local protection error",
		"Work Request Flushed Error",
		"memory management operation error",
		"bad response error",
		"local access error",
		"remote invalid request error",
		"remote access error",
		"remote operation error",
		"transport retry counter exceeded",
		"RNR retry counter exceeded",
		"local RDD violation error",
		"remote invalid RD request",
		"aborted error",
		"invalid EE context number",
		"invalid EE context state",
		"fatal error",
		"response timeout error",
		"general error",
		"TM error",
		"TM software rendezvous",
	};

	return word(words, PP_ARRAY_LEN(words), (long)status);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const words[] = {
		"CQ error",
		"local work queue catastrophic error",
		"invalid request local work queue error",
		"local access violation work queue error",
		"communication established",
		"send queue drained",
		"path migrated",
		"path migration request error",
		"local catastrophic error",
		"port active",
		"port error",
		"LID change",
		"P_Key change",
		"SM change",
		"SRQ catastrophic error",
		"SRQ limit reached",
		"last WQE reached",
		"client reregistration",
		"GID table change",
		"WQ fatal",
		"Device link speed change",
	};

	return word(words, PP_ARRAY_LEN(words), (long)event);
}

const char *ibv_node_type_str(enum ibv_node_type node_type)
{
	static const char *const words[] = {
		NULL,
		"InfiniBand channel adapter",
		"InfiniBand switch",
		"InfiniBand router",
		"iWARP NIC",
		"usNIC",
		"usNIC UDP",
		"unspecified",
	};

	return word(words, PP_ARRAY_LEN(words), (long)node_type);
}

const char *ibv_port_state_str(enum ibv_port_state port_state)
{
	static const char *const words[] = {
		"no state change (NOP)", "down", "init", "armed", "active", "active defer",
	};

	return word(words, PP_ARRAY_LEN(words), (long)port_state);
}

const char *soft_wr_opcode_text(enum ibv_wr_opcode opcode)
{
	static const char *const words[] = {
		"rdma-write",
		"rdma-write-with-imm",
		"send",
		"send-with-imm",
		"rdma-read",
		"atomic-cmp-and-swp",
		"atomic-fetch-and-add",
		"local-inv",
		"bind-mw",
		"send-with-inv",
		"tso",
		"driver1",
		NULL,
		NULL,
		"flush",
		"atomic-write",
	};

	return word(words, PP_ARRAY_LEN(words), (long)opcode);
}
