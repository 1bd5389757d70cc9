/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records. A descriptor that stays open could be closed by the program and be somebody else's file
 * a moment later, so the file is opened for each record: some microseconds, beside a registration.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "plugin/observe/observe.h"

#include "base/banned.h"

enum { FOLDER_BYTES = 3072, ROOM_FOR_END = 32 };

static char folder[FOLDER_BYTES], host[65];

bool observe_line_setup(void)
{
	const char *wanted = getenv("PEERPATH_OBSERVE");

	if (!wanted || *wanted != '/' || strlen(wanted) >= sizeof(folder))
		return false;
	(void)snprintf(folder, sizeof(folder), "%s", wanted);
	if (gethostname(host, sizeof(host) - 1) || !*host || strchr(host, '/'))
		(void)snprintf(host, sizeof(host), "localhost");
	return true;
}

uint64_t observe_now(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* All of it or nothing. */
static void append(struct observe_line *l, const char *text, size_t len)
{
	if (l->cut || len > sizeof(l->text) - ROOM_FOR_END - l->len) {
		l->cut = true;
		return;
	}
	memcpy(l->text + l->len, text, len);
	l->len += len;
}

static void member(struct observe_line *l, const char *key, const char *value)
{
	char text[512];
	int n = snprintf(text, sizeof(text), ", \"%s\": %s", key, value);

	if (n < 0 || (size_t)n >= sizeof(text))
		l->cut = true;
	else
		append(l, text, (size_t)n);
}

void observe_line_number(struct observe_line *l, const char *key, int64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	member(l, key, text);
}

void observe_line_hex(struct observe_line *l, const char *key, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "\"0x%llx\"", (unsigned long long)value);
	member(l, key, text);
}

void observe_line_true(struct observe_line *l, const char *key)
{
	member(l, key, "true");
}

/* What is no plain ASCII becomes '?': a record is always well-formed. */
void observe_line_text(struct observe_line *l, const char *key, const char *value)
{
	char text[400] = "\"";
	size_t n = 1;

	for (; *value && n < sizeof(text) - 2; value++)
		text[n++] = *value < 0x20 || *value == 0x7f || *value == '"' || *value == '\\'
				    ? '?'
				    : *value;
	text[n++] = '"';
	text[n] = '\0';
	member(l, key, text);
}

void observe_line_start(struct observe_line *l, const char *call)
{
	int n = snprintf(l->text, sizeof(l->text), "{\"call\": \"%s\"", call);

	l->len = n > 0 ? (size_t)n : 0;
	l->cut = false;
	observe_line_number(l, "pid", getpid());
	observe_line_number(l, "tid", syscall(SYS_gettid));
	observe_line_number(l, "at_ns", (int64_t)observe_now());
}

/* The file's first record says whose it is. */
static void introduce(int fd)
{
	struct observe_line l;
	char program[256] = "";
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[n > 0 ? n : 0] = '\0';
	observe_line_start(&l, "start");
	observe_line_text(&l, "schema", "peerpath.observation/1");
	observe_line_text(&l, "host", host);
	observe_line_text(&l, "program", program);
	observe_line_text(&l, "not_seen", "DevX, verbs made inline by a provider");
	append(&l, "}\n", 2);
	(void)!write(fd, l.text, l.len);
}

void observe_line_write(struct observe_line *l)
{
	char path[sizeof(folder) + sizeof(host) + 32];
	int fd;

	if (l->cut)
		memcpy(l->text + l->len, ", \"cut\": true", 13), l->len += 13;
	memcpy(l->text + l->len, "}\n", 2);
	l->len += 2;
	(void)snprintf(path, sizeof(path), "%s/%s-%ld.jsonl", folder, host, (long)getpid());
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		introduce(fd);
	else if (errno == EEXIST)
		fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	(void)!write(fd, l->text, l->len);
	(void)close(fd);
}
