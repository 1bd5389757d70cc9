/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/interrupt.h"
#include "base/banned.h"

const char *pp_input_name(const char *file)
{
	return strcmp(file, "-") != 0 ? file : "standard input";
}

/* The strings of a program, and what a compressor leaves, would be read as messages. */
const char *pp_input_not_text(const char *bytes, size_t len)
{
	static const struct {
		const char *start;
		size_t len;
		const char *why;
	} kinds[] = {
		{"\177ELF", 4, "a program, not a text"},
		{"\037\213", 2, "compressed: give what zcat prints of it"},
		{"\050\265\057\375", 4, "compressed: give what zstdcat prints of it"},
		{"\3757zXZ", 6, "compressed: give what xzcat prints of it"},
		{"BZh91AY&SY", 10, "compressed: give what bzcat prints of it"},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(kinds); i++)
		if (len >= kinds[i].len && !memcmp(bytes, kinds[i].start, kinds[i].len))
			return kinds[i].why;
	return NULL;
}

static int read_all(int fd, struct pp_buf *ret)
{
	char part[16384];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part)))) {
		if (n < 0 && (errno != EINTR || pp_interrupted()))
			return -errno;
		if (n > 0)
			pp_buf_add(ret, part, (size_t)n);
		if (ret->failed)
			return ret->failed;
	}
	return 0;
}

int pp_input_stream(int fd, pp_input_push *push, void *arg, const char **ret_why)
{
	bool begun = false;
	char part[64 << 10];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part)))) {
		if (n < 0 && errno != EINTR)
			return -errno;
		if (pp_interrupted())
			return -EINTR;
		if (n > 0 && !begun && (*ret_why = pp_input_not_text(part, (size_t)n)))
			return -EBADMSG;
		begun |= n > 0;
		if (n > 0)
			push(arg, part, (size_t)n);
	}
	return 0;
}

int pp_input_read(const char *file, struct pp_buf *ret, struct pp_error *err)
{
	int PP_AUTO_CLOSE opened = -1; /* alone: the attribute is of all declared with it */
	int fd = STDIN_FILENO, r;
	char text[128];

	if (strcmp(file, "-") != 0) {
		opened = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0)
			return pp_error_set(err, -errno, "%s: %s", file, strerror(errno));
		fd = opened;
	}
	r = read_all(fd, ret);
	if (r == -EFBIG)
		return pp_error_set(err, r, "%s: longer than %zu KiB", pp_input_name(file),
				    ret->max >> 10);
	if (r)
		return pp_error_set(err, r, "%s: %s", pp_input_name(file),
				    pp_errno_text(r, text, sizeof(text)));
	return 0;
}
