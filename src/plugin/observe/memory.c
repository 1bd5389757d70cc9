/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose memory an address is, without asking a driver: from the process's own map. CUDA keeps its
 * device addresses reserved in it: mappings that the processor may not touch, or of NVIDIA's device
 * files; memory that both may touch (managed) is one of /dev/nvidia-uvm.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/observe/observe.h"

#include "base/banned.h"

enum { PIECE = 4096, LINE = 160 };

/* Reads a file of /proc line by line; a longer line is cut. */
struct lines {
	int fd;
	char piece[PIECE];
	size_t at, len;
};

static bool next_line(struct lines *f, char line[LINE])
{
	size_t n = 0;

	for (;;) {
		if (f->at == f->len) {
			ssize_t got = read(f->fd, f->piece, sizeof(f->piece));

			if (got <= 0)
				return false; /* a line without an end is none */
			f->at = 0;
			f->len = (size_t)got;
		}
		if (f->piece[f->at] == '\n')
			break;
		if (n < LINE - 1)
			line[n++] = f->piece[f->at];
		f->at++;
	}
	f->at++;
	line[n] = '\0';
	return true;
}

static const char *take_hex(const char *text, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;

	for (*ret = 0; *text && (digit = strchr(digits, *text)); text++)
		*ret = *ret << 4 | (uint64_t)(digit - digits);
	return text;
}

/* @rights: "rw-p", @path: of the mapping, "" none. */
static const char *kind_of(const char *rights, const char *path)
{
	bool readable = rights[0] == 'r';

	if (!strncmp(path, "/dev/nvidia-uvm", 15))
		return readable ? "managed" : "gpu";
	if (!strncmp(path, "/dev/nvidia", 11))
		return "gpu";
	return readable ? "host" : "reserved";
}

/* "7f00-8f00 rw-p 00000000 00:00 0   /path": what is at @address, of a line behind its range. */
static void write_mapping(struct observe_line *l, const char *rest)
{
	const char *path = strchr(rest, '/');
	char rights[5];

	(void)snprintf(rights, sizeof(rights), "%.4s", rest + 1);
	observe_line_text(l, "memory", kind_of(rights, path ? path : ""));
	observe_line_text(l, "mapping", rights);
	if (path)
		observe_line_text(l, "mapped_file", path);
}

void observe_memory_kind(struct observe_line *l, const void *address)
{
	struct lines f = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	uint64_t from, to, wanted = (uint64_t)(uintptr_t)address;
	bool found = false;
	char line[LINE];

	while (f.fd >= 0 && !found && next_line(&f, line)) {
		const char *rest = take_hex(line, &from);

		if (*rest != '-')
			break;
		rest = take_hex(rest + 1, &to);
		if (wanted < from)
			break; /* lines are in order: it is not mapped */
		found = wanted < to && strlen(rest) >= 5;
		if (found)
			write_mapping(l, rest);
	}
	if (!found)
		observe_line_text(l, "memory", "unknown");
	if (f.fd >= 0)
		(void)close(f.fd);
}

/* "size:\t4096", "exp_name:\tnv_dmabuf" */
static const char *value_of(const char *line, const char *key)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) != 0 || line[len] != ':')
		return NULL;
	line += len + 1;
	return line + strspn(line, " \t");
}

void observe_memory_dmabuf(struct observe_line *l, int fd)
{
	char path[64], line[LINE];
	struct lines f;
	const char *value;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = (struct lines){.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (f.fd < 0)
		return;
	while (next_line(&f, line)) {
		if ((value = value_of(line, "exp_name")))
			observe_line_text(l, "exporter", value);
		else if ((value = value_of(line, "size")))
			observe_line_text(l, "buffer_bytes", value);
		else if ((value = value_of(line, "ino")))
			observe_line_text(l, "inode", value);
	}
	(void)close(f.fd);
}
