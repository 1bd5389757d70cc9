/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/token.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "rdma/channel.h"
#include "rdma/launch.h"
#include "base/banned.h"

int pp_token_check(const char *token, struct pp_error *err)
{
	size_t len = strlen(token);

	if (len < PP_CHANNEL_TOKEN_LEAST)
		return pp_error_set(err, -EINVAL, "the token has %zu characters; at least %d", len,
				    PP_CHANNEL_TOKEN_LEAST);
	if (len > PP_TOKEN_MOST)
		return pp_error_set(err, -EINVAL, "the token has more than %d characters",
				    PP_TOKEN_MOST);
	for (size_t i = 0; i < len; i++)
		if (token[i] <= ' ' || token[i] == 0x7f)
			return pp_error_set(err, -EINVAL,
					    "the token has a blank or control character inside");
	return 0;
}

int pp_token_parse(const char *bytes, size_t len, char ret[PP_TOKEN_MOST + 1], struct pp_error *err)
{
	char text[PP_TOKEN_MOST + 64], *token;
	int r;

	if (len >= sizeof(text))
		return pp_error_set(err, -EINVAL, "the token has more than %d characters",
				    PP_TOKEN_MOST);
	if (memchr(bytes, '\0', len))
		return pp_error_set(err, -EINVAL, "the token has a zero byte");
	memcpy(text, bytes, len);
	text[len] = '\0';
	token = pp_trim(text);
	r = pp_token_check(token, err);
	if (!r)
		(void)snprintf(ret, PP_TOKEN_MOST + 1, "%s", token);
	sodium_memzero(text, sizeof(text));
	return r;
}

static int refuse(const char *path, int code, struct pp_error *err)
{
	return pp_error_set(err, code, "token file %s: %s", path, strerror(-code));
}

int pp_token_read(const char *path, char ret[PP_TOKEN_MOST + 1], struct pp_error *err)
{
	/* A pipe nobody writes into must not hold us up. */
	int fd PP_AUTO_CLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char bytes[PP_TOKEN_MOST + 64];
	struct stat st;
	ssize_t n;
	int r;

	if (fd < 0 || fstat(fd, &st))
		return refuse(path, -errno, err);
	if (!S_ISREG(st.st_mode))
		return pp_error_set(err, -EINVAL, "token file %s is no regular file", path);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return pp_error_set(err, -EACCES,
				    "token file %s is open to others (mode %03o): chmod 600 %s",
				    path, (unsigned int)st.st_mode & 0777, path);
	n = read(fd, bytes, sizeof(bytes));
	if (n < 0)
		return refuse(path, -errno, err);
	r = pp_token_parse(bytes, (size_t)n, ret, err);
	sodium_memzero(bytes, sizeof(bytes));
	return r ? pp_error_prefix(err, "token file %s", path), r : 0;
}

int pp_token_draw(char ret[PP_TOKEN_MOST + 1], struct pp_error *err)
{
	uint8_t bytes[PP_TOKEN_DRAWN / 2];

	if (sodium_init() < 0)
		return pp_error_set(err, -EIO, "no random numbers");
	randombytes_buf(bytes, sizeof(bytes));
	(void)sodium_bin2hex(ret, PP_TOKEN_DRAWN + 1, bytes, sizeof(bytes));
	sodium_memzero(bytes, sizeof(bytes));
	return 0;
}

void pp_token_derive(const struct pp_launch *launch, unsigned int user, char ret[PP_TOKEN_MOST + 1])
{
	uint8_t hash[PP_TOKEN_DRAWN / 2];
	char text[512];
	int n = snprintf(text, sizeof(text), "peerpath job token 1\n%s\n%s\n%u\n%u\n%s", launch->by,
			 launch->job, launch->size, user, launch->coordinator);

	(void)crypto_generichash(hash, sizeof(hash), (const uint8_t *)text, (size_t)n, NULL, 0);
	(void)sodium_bin2hex(ret, PP_TOKEN_DRAWN + 1, hash, sizeof(hash));
}

int pp_token_find(const char *file, const struct pp_launch *launch, char ret[PP_TOKEN_MOST + 1],
		  struct pp_error *err)
{
	const char *given = secure_getenv("PEERPATH_TOKEN");

	if (file)
		return pp_token_read(file, ret, err);
	if (given)
		return pp_token_parse(given, strlen(given), ret, err);
	if (!launch)
		return -ENOENT;
	pp_token_derive(launch, getuid(), ret);
	return 0;
}
