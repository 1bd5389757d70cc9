/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict reader against archives that are wrong in one way each. That GNU tar and Python's
 * tarfile agree with writer and reader is tests/e2e/bundle.py's part.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "bundle/ustar.h"
#include "bundle/zst.h"

struct feed {
	const char *data;
	size_t len, at, step;
};

static int to_buf(void *arg, const void *bytes, size_t len, struct pp_error *err)
{
	struct pp_buf *b = arg;

	pp_buf_add(b, bytes, len);
	return b->failed ? pp_error_set(err, b->failed, "full") : 0;
}

static int from_feed(void *arg, void *buf, size_t size, size_t *ret_len, struct pp_error *err)
{
	struct feed *f = arg;
	size_t n = f->len - f->at;

	(void)err;
	n = n < size ? n : size;
	n = f->step && n > f->step ? f->step : n;
	memcpy(buf, f->data + f->at, n);
	f->at += n;
	*ret_len = n;
	return 0;
}

static int print_member(void *arg, const struct pp_member *m, struct pp_error *err)
{
	static const char kinds[] = "fld";

	(void)err;
	pp_buf_printf(arg, "%c %s", kinds[m->kind], m->path);
	if (m->kind == PP_MEMBER_LINK)
		pp_buf_printf(arg, " -> %s", m->target);
	if (m->kind == PP_MEMBER_FILE)
		pp_buf_printf(arg, " %zu:%s", m->len, m->data);
	pp_buf_char(arg, '\n');
	return 0;
}

static int read_back(const char *data, size_t len, struct pp_buf *seen, struct pp_error *err)
{
	struct feed f = {data, len, 0, 0};
	const struct pp_tap tap = {from_feed, &f};

	return pp_ustar_read(&tap, print_member, seen, err);
}

static void put(struct pp_buf *out, struct pp_member m)
{
	const struct pp_sink sink = {to_buf, out};
	struct pp_error err;

	assert_int_equal(pp_ustar_put(&sink, &m, 0, &err), 0);
}

static void end(struct pp_buf *out)
{
	const struct pp_sink sink = {to_buf, out};
	struct pp_error err;

	assert_int_equal(pp_ustar_end(&sink, &err), 0);
}

static void put_file(struct pp_buf *out, const char *path, const char *text)
{
	put(out, (struct pp_member){.path = path, .data = text, .len = strlen(text)});
}

static void test_round_trip(void **state)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(1 << 20), PP_AUTO_BUF seen = PP_BUF(1 << 20);
	char name[300], target[300], want[2048];
	struct pp_error err = {0};
	struct feed f;
	const struct pp_tap tap = {from_feed, &f};

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	memset(target, 't', sizeof(target) - 1);
	name[120] = name[200] = '/';
	name[sizeof(name) - 1] = target[sizeof(target) - 1] = '\0';
	put_file(&out, "a", "");
	put(&out, (struct pp_member){.kind = PP_MEMBER_DIR, .path = "dir"});
	put_file(&out, name, "long name");
	put(&out, (struct pp_member){.kind = PP_MEMBER_LINK, .path = "l", .target = target});
	put(&out, (struct pp_member){.kind = PP_MEMBER_LINK, .path = "m", .target = "../x"});
	end(&out);
	assert_int_equal(out.len % 512, 0);
	(void)snprintf(want, sizeof(want),
		       "f a 0:\nd dir\nf %s 9:long name\nl l -> %s\nl m -> ../x\n", name, target);
	assert_int_equal(read_back(out.data, out.len, &seen, &err), 0);
	assert_string_equal(pp_buf_text(&seen), want);
	/* The same in pieces of 7 bytes. */
	f = (struct feed){out.data, out.len, 0, 7};
	pp_buf_reset(&seen);
	assert_int_equal(pp_ustar_read(&tap, print_member, &seen, &err), 0);
	assert_string_equal(pp_buf_text(&seen), want);
}

static void test_cut_anywhere(void **state)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(1 << 20), PP_AUTO_BUF seen = PP_BUF(1 << 20);
	struct pp_error err;

	(void)state;
	put_file(&out, "a", "some text");
	put(&out, (struct pp_member){.kind = PP_MEMBER_DIR, .path = "dir"});
	end(&out);
	for (size_t len = 0; len < out.len; len++) {
		err = (struct pp_error){0};
		assert_int_equal(read_back(out.data, len, &seen, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "cut"));
	}
	assert_int_equal(read_back(out.data, out.len, &seen, &err), 0);
}

/* Writes the checksum that the header should have (sum of bytes, its own field as blanks). */
static void fix_checksum(char *h)
{
	unsigned int sum = 0;

	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += (unsigned char)h[i];
	(void)snprintf(h + 148, 8, "%06o", sum);
}

/* One member whose header was changed at @offset; what does the reader say? */
static void expect_refused(size_t offset, const void *bytes, size_t n, bool fix, int code,
			   const char *words)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(1 << 20), PP_AUTO_BUF seen = PP_BUF(1 << 20);
	struct pp_error err = {0};

	put_file(&out, "name", "content");
	end(&out);
	memcpy(out.data + offset, bytes, n);
	if (fix)
		fix_checksum(out.data);
	assert_int_equal(read_back(out.data, out.len, &seen, &err), code);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
	assert_string_equal(pp_buf_text(&seen), "");
}

static void test_refused(void **state)
{
	(void)state;
	expect_refused(0, "/etc", 4, true, -EBADMSG, "absolute name");
	expect_refused(0, "../x", 4, true, -EBADMSG, "'..'");
	expect_refused(0, "a/..", 4, true, -EBADMSG, "'..'");
	expect_refused(0, "a//b", 4, true, -EBADMSG, "not normalised");
	expect_refused(0, "a/./", 4, true, -EBADMSG, "not normalised");
	expect_refused(0, "a\x1b[0", 4, true, -EBADMSG, "control bytes");
	expect_refused(0, "\0\0\0\0", 4, true, -EBADMSG, "empty name");
	expect_refused(0, "nama", 4, false, -EBADMSG, "damaged tar header");
	expect_refused(156, "1", 1, true, -EBADMSG, "refused"); /* hard link */
	expect_refused(156, "3", 1, true, -EBADMSG, "refused"); /* character device */
	expect_refused(156, "4", 1, true, -EBADMSG, "refused"); /* block device */
	expect_refused(156, "6", 1, true, -EBADMSG, "refused"); /* FIFO */
	expect_refused(156, "7", 1, true, -EBADMSG, "refused"); /* contiguous */
	expect_refused(156, "S", 1, true, -EBADMSG, "refused"); /* GNU sparse */
	expect_refused(257, "ustax", 5, true, -EBADMSG, "no tar header");
	expect_refused(124, "77777777777", 11, true, -EFBIG, "refused");
	expect_refused(124, "\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12, true, -EFBIG,
		       "8 GiB");
	expect_refused(124, "000000000x7", 11, true, -EBADMSG, "size field");
}

static void test_after_the_end(void **state)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(1 << 20), PP_AUTO_BUF seen = PP_BUF(1 << 20);
	struct pp_error err = {0};
	char zeros[9 * 512] = {0};

	(void)state;
	put_file(&out, "a", "x");
	end(&out);
	pp_buf_add(&out, zeros, sizeof(zeros)); /* GNU tar fills its record */
	assert_int_equal(read_back(out.data, out.len, &seen, &err), 0);
	put_file(&out, "b", "hidden");
	assert_int_equal(read_back(out.data, out.len, &seen, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "behind the end"));
}

/* One extended header of type @type with this body, then a file. */
static int with_header(char type, const char *body, size_t len, struct pp_buf *seen,
		       struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(1 << 20);

	put(&out, (struct pp_member){.path = "x", .data = body, .len = len});
	out.data[156] = type;
	fix_checksum(out.data);
	put_file(&out, "short", "1");
	end(&out);
	return read_back(out.data, out.len, seen, err);
}

static void test_extended_headers(void **state)
{
	static const struct {
		char type;
		const char *body;
		size_t len;
		const char *want; /* of seen; NULL: refused */
	} cases[] = {
		{'x', "16 path=longer\n", 15, NULL},
		{'x', "15 path=longer\n", 15, "f longer 1:1\n"},
		{'x', "15 path=longer\n14 path=again\n", 29, NULL}, /* twice */
		{'x', "12 path=a\0b\n", 12, NULL},
		{'x', "13 path=../a\n", 13, NULL},
		{'x', "11 path=/a\n", 11, NULL},
		{'x', "10 size=9\n", 10, NULL},
		{'x', "20 GNU.sparse.size=1", 20, NULL},
		{'x', "22 GNU.sparse.major=1\n", 22, NULL},
		{'x', "20 mtime=1.123456789\n", 21, NULL},
		{'x', "21 mtime=1.123456789\n", 21, "f short 1:1\n"},
		{'x', "99999999999999999999 path=a\n", 28, NULL},
		{'x', "0 path=a\n", 9, NULL},
		{'x', "no record", 9, NULL},
		{'g', "14 comment=ab\n", 14, "f short 1:1\n"},
		{'g', "15 path=longer\n", 15, NULL},
		{'L', "longer\0", 7, "f longer 1:1\n"},
		{'L', "longer", 6, NULL},
		{'L', "lo\0ger\0", 7, NULL},
		{'L', "\0", 1, NULL},
	};
	struct pp_buf PP_AUTO_BUF seen = PP_BUF(1 << 20);
	struct pp_error err;
	int r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pp_buf_reset(&seen);
		err = (struct pp_error){0};
		r = with_header(cases[i].type, cases[i].body, cases[i].len, &seen, &err);
		if ((r == 0) != (cases[i].want != NULL))
			fail_msg("case %zu: %d '%s' '%s'", i, r, err.text, pp_buf_text(&seen));
		if (cases[i].want)
			assert_string_equal(pp_buf_text(&seen), cases[i].want);
		else
			assert_true(err.text[0]);
	}
}

/* @n zeros written through zstd into a file; returns the descriptor at its start. */
static int compressed(size_t n)
{
	static const char zeros[1 << 16];
	int fd = memfd_create("zst", MFD_CLOEXEC);
	struct pp_zst_writer *w;
	struct pp_error err;
	struct pp_sink sink;

	assert_true(fd >= 0);
	assert_int_equal(pp_zst_writer_new(fd, &w, &err), 0);
	sink = pp_zst_sink(w);
	for (; n >= sizeof(zeros); n -= sizeof(zeros))
		assert_int_equal(sink.write(sink.arg, zeros, sizeof(zeros), &err), 0);
	assert_int_equal(sink.write(sink.arg, zeros, n, &err), 0);
	assert_int_equal(pp_zst_finish(w, &err), 0);
	pp_zst_writer_free(w);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int drain(int fd, uint64_t max, size_t *total, struct pp_error *err)
{
	struct pp_zst_reader *z;
	struct pp_tap tap;
	char part[4096];
	size_t n = 1;
	int r = 0;

	*total = 0;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(pp_zst_reader_new(fd, max, &z, err), 0);
	tap = pp_zst_tap(z);
	while (!r && n) {
		r = tap.read(tap.arg, part, sizeof(part), &n, err);
		*total += r ? 0 : n;
	}
	pp_zst_reader_free(z);
	return r;
}

static void test_bomb(void **state)
{
	int fd = compressed((size_t)64 << 20);
	struct pp_error err;
	size_t total;

	(void)state;
	assert_true(lseek(fd, 0, SEEK_END) < 1 << 16);
	assert_int_equal(drain(fd, (uint64_t)64 << 20, &total, &err), 0);
	assert_int_equal(total, (size_t)64 << 20);
	assert_int_equal(drain(fd, (uint64_t)1 << 20, &total, &err), -EFBIG);
	assert_string_equal(err.text, "decompresses to more than 1 MiB: refused");
	assert_true(total <= 1 << 20);
	(void)close(fd);
}

static void test_cut_zstd(void **state)
{
	int fd = compressed(100000);
	off_t whole = lseek(fd, 0, SEEK_END);
	struct pp_error err;
	size_t total;

	(void)state;
	for (off_t len = whole - 1; len >= 0; len--) {
		assert_int_equal(ftruncate(fd, len), 0);
		assert_int_equal(drain(fd, 1 << 20, &total, &err), -EBADMSG);
	}
	assert_string_equal(err.text, "an empty file");
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),	 cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_refused),		 cmocka_unit_test(test_after_the_end),
		cmocka_unit_test(test_extended_headers), cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_cut_zstd),
	};

	return cmocka_run_group_tests_name("ustar", tests, NULL, NULL);
}
