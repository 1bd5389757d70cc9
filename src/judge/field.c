/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/field_words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

/* What libraries print for an errno; 524 is the kernel's ENOTSUPP, which libc does not know. */
const struct pp_errno_word pp_errno_words[PP_ERRNO_WORDS] = {
	{1, "EPERM", "operation not permitted"},
	{2, "ENOENT", "no such file or directory"},
	{2, NULL, "unknown symbol in module"},
	{3, "ESRCH", "module has wrong symbol version"},
	{5, "EIO", "input/output error"},
	{6, "ENXIO", "no such device or address"},
	{7, "E2BIG", "argument list too long"},
	{8, "ENOEXEC", "exec format error"},
	{8, NULL, "invalid module format"},
	{9, "EBADF", "bad file descriptor"},
	{11, "EAGAIN", "resource temporarily unavailable"},
	{12, "ENOMEM", "cannot allocate memory"},
	{13, "EACCES", "permission denied"},
	{14, "EFAULT", "bad address"},
	{16, "EBUSY", "device or resource busy"},
	{17, "EEXIST", "file exists"},
	{19, "ENODEV", "no such device"},
	{22, "EINVAL", "invalid argument"},
	{22, NULL, "invalid parameters"},
	{24, "EMFILE", "too many open files"},
	{28, "ENOSPC", "no space left on device"},
	{38, "ENOSYS", "function not implemented"},
	{61, "ENODATA", "no data available"},
	{71, "EPROTO", "protocol error"},
	{92, "ENOPROTOOPT", "protocol not available"},
	{93, "EPROTONOSUPPORT", "protocol not supported"},
	{95, "EOPNOTSUPP", "operation not supported"},
	{98, "EADDRINUSE", "address already in use"},
	{99, "EADDRNOTAVAIL", "cannot assign requested address"},
	{100, "ENETDOWN", "network is down"},
	{101, "ENETUNREACH", "network is unreachable"},
	{103, "ECONNABORTED", "software caused connection abort"},
	{104, "ECONNRESET", "connection reset by peer"},
	{110, "ETIMEDOUT", "connection timed out"},
	{111, "ECONNREFUSED", "connection refused"},
	{113, "EHOSTUNREACH", "no route to host"},
	{112, "EHOSTDOWN", "host is down"},
	{116, "ESTALE", "stale file handle"},
	{121, "EREMOTEIO", "remote i/o error"},
	{524, "ENOTSUPP", "unknown error 524"},
};

/* enum ibv_wc_status, and ibv_wc_status_str(). */
const struct pp_status_word pp_status_words[PP_STATUS_WORDS] = {
	{"SUCCESS", "wc success"},
	{"LOC_LEN_ERR", "local length error"},
	{"LOC_QP_OP_ERR", "local qp operation error"},
	{"LOC_EEC_OP_ERR", "local ee context operation error"},
	{"LOC_PROT_ERR", "local protection error"},
	{"WR_FLUSH_ERR", "work request flushed error"},
	{"MW_BIND_ERR", "memory bind error"},
	{"BAD_RESP_ERR", "bad response error"},
	{"LOC_ACCESS_ERR", "local access error"},
	{"REM_INV_REQ_ERR", "remote invalid request error"},
	{"REM_ACCESS_ERR", "remote access error"},
	{"REM_OP_ERR", "remote operation error"},
	{"RETRY_EXC_ERR", "transport retry counter exceeded"},
	{"RNR_RETRY_EXC_ERR", "rnr retry counter exceeded"},
};

static const char *const names[PP_FIELDS] = {
	[PP_FIELD_CALL] = "call",     [PP_FIELD_ERRNO] = "errno", [PP_FIELD_STATUS] = "status",
	[PP_FIELD_VENDOR] = "vendor", [PP_FIELD_XID] = "xid",	  [PP_FIELD_ENV] = "env",
	[PP_FIELD_DRIVER] = "driver", [PP_FIELD_OP] = "op",	  [PP_FIELD_PROVIDER] = "provider",
};

static const struct {
	int64_t syndrome, status;
} syndromes[] = {
	{0x01, 1}, {0x02, 2}, {0x04, 4},  {0x05, 5},  {0x06, 6},  {0x10, 7},
	{0x11, 8}, {0x12, 9}, {0x13, 10}, {0x14, 11}, {0x15, 12}, {0x16, 13},
};

int64_t pp_field_syndrome_status(int64_t syndrome)
{
	for (size_t i = 0; i < sizeof(syndromes) / sizeof(syndromes[0]); i++)
		if (syndromes[i].syndrome == syndrome)
			return syndromes[i].status;
	return -1;
}

/* "synd 0x15": how UCX shows a status; NULL when mlx5 has no syndrome for it. */
static const char *syndrome_spelling(int64_t status, char buf[64])
{
	for (size_t i = 0; i < sizeof(syndromes) / sizeof(syndromes[0]); i++) {
		if (syndromes[i].status != status)
			continue;
		(void)snprintf(buf, 64, "synd 0x%" PRIx64, (uint64_t)syndromes[i].syndrome);
		return buf;
	}
	return NULL;
}

bool pp_field_is_word(enum pp_field f)
{
	return f == PP_FIELD_CALL || f == PP_FIELD_ENV || !pp_field_is_literal(f);
}

bool pp_field_is_literal(enum pp_field f)
{
	return f != PP_FIELD_DRIVER && f != PP_FIELD_OP && f != PP_FIELD_PROVIDER;
}

const char *pp_field_name(enum pp_field f)
{
	return names[f];
}

int pp_field_parse(const char *name, size_t len, enum pp_field *ret)
{
	for (unsigned int i = 0; i < PP_FIELDS; i++) {
		if (strlen(names[i]) != len || memcmp(names[i], name, len) != 0)
			continue;
		*ret = (enum pp_field)i;
		return 0;
	}
	return -EINVAL;
}

const char *pp_field_status_text(int64_t status)
{
	return status >= 0 && status < (int64_t)PP_STATUS_WORDS ? pp_status_words[status].text
								: NULL;
}

int pp_field_number(enum pp_field f, const char *text, int64_t *ret)
{
	uint64_t hex;

	if (!pp_parse_i64(text, 0, INT32_MAX, ret))
		return 0;
	if (!strncmp(text, "0x", 2) && !pp_parse_hex(text, INT32_MAX, &hex)) {
		*ret = (int64_t)hex;
		return 0;
	}
	for (size_t i = 0; f == PP_FIELD_ERRNO && i < PP_ERRNO_WORDS; i++) {
		if (!pp_errno_words[i].name || strcmp(text, pp_errno_words[i].name) != 0)
			continue;
		*ret = pp_errno_words[i].code;
		return 0;
	}
	for (size_t i = 0; f == PP_FIELD_STATUS && i < PP_STATUS_WORDS; i++) {
		if (strcmp(text, pp_status_words[i].name) != 0)
			continue;
		*ret = (int64_t)i;
		return 0;
	}
	return -EINVAL;
}

/* Name and texts of an errno, one after another; NULL past the last. */
static const char *errno_spelling(int64_t value, unsigned int i)
{
	unsigned int n = 0;

	for (size_t k = 0; k < PP_ERRNO_WORDS; k++) {
		if (pp_errno_words[k].code != value)
			continue;
		if (pp_errno_words[k].name && n++ == i)
			return pp_errno_words[k].name;
		if (n++ == i)
			return pp_errno_words[k].text;
	}
	return NULL;
}

const char *pp_field_spelling(enum pp_field f, int64_t value, unsigned int i, char buf[64])
{
	(void)snprintf(buf, 64, "%" PRId64, value);
	if (i == 0)
		return buf;
	if (f == PP_FIELD_VENDOR) {
		(void)snprintf(buf, 64, "0x%" PRIx64, (uint64_t)value);
		return i == 1 ? buf : NULL;
	}
	if (f == PP_FIELD_STATUS && pp_field_status_text(value) && i <= 2)
		return i == 1 ? pp_status_words[value].name : pp_status_words[value].text;
	if (f == PP_FIELD_STATUS && i == 3)
		return syndrome_spelling(value, buf);
	return f == PP_FIELD_ERRNO ? errno_spelling(value, i - 1) : NULL;
}
