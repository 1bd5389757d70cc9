/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "bundle/manifest.h"

/* SHA-256 of "abc": FIPS 180-4, example B.1. */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static struct pp_manifest *example(void)
{
	struct pp_manifest *m;
	struct pp_error err;

	assert_int_equal(pp_manifest_new(&m), 0);
	m->id = "0011223344556677";
	m->created = "2026-11-29T15:20:01Z";
	m->host = "n1";
	assert_int_equal(
		pp_manifest_add(m, &(struct pp_member){.path = "raw/z", .data = "abc", .len = 3},
				&err),
		0);
	assert_int_equal(
		pp_manifest_add(m, &(struct pp_member){.kind = PP_MEMBER_DIR, .path = "raw"}, &err),
		0);
	assert_int_equal(
		pp_manifest_add(
			m,
			&(struct pp_member){.kind = PP_MEMBER_LINK, .path = "raw/l", .target = "z"},
			&err),
		0);
	assert_int_equal(pp_manifest_sort(m, &err), 0);
	return m;
}

static void write_example(struct pp_buf *text)
{
	struct pp_manifest *m = example();
	struct pp_error err;

	assert_int_equal(pp_manifest_write(m, text, &err), 0);
	pp_manifest_free(m);
}

static void test_write(void **state)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);

	(void)state;
	write_example(&text);
	assert_non_null(strstr(text.data, "\"schema\": \"peerpath.manifest/1\",\n"));
	assert_non_null(strstr(text.data, "\"path\": \"raw/z\",\n      \"bytes\": 3,\n      "
					  "\"sha256\": \"" ABC "\"\n"));
}

static void test_round_trip(void **state)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20), PP_AUTO_BUF again = PP_BUF(1 << 20);
	struct pp_manifest *m;
	struct pp_error err;

	(void)state;
	write_example(&text);
	assert_int_equal(pp_manifest_parse(text.data, text.len, &m, &err), 0);
	assert_int_equal(m->n, 3);
	assert_string_equal(m->host, "n1");
	assert_string_equal(m->items[1].path, "raw/l");
	assert_string_equal(m->items[1].target, "z");
	assert_int_equal(pp_manifest_write(m, &again, &err), 0);
	assert_string_equal(again.data, text.data);
	pp_manifest_free(m);
}

/* No byte of a manifest can change unseen. */
static void test_every_byte(void **state)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);
	struct pp_manifest *m;
	struct pp_error err;

	(void)state;
	write_example(&text);
	for (size_t i = 0; i < text.len; i++) {
		text.data[i] ^= 1;
		if (!pp_manifest_parse(text.data, text.len, &m, &err))
			fail_msg("byte %zu changed unseen", i);
		text.data[i] ^= 1;
	}
	for (size_t len = 0; len < text.len - 1; len++)
		assert_true(pp_manifest_parse(text.data, len, &m, &err) < 0);
}

static void expect(const char *text, int code, const char *words)
{
	struct pp_manifest *m;
	struct pp_error err = {0};

	assert_int_equal(pp_manifest_parse(text, strlen(text), &m, &err), code);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

static void test_newer(void **state)
{
	struct pp_manifest *m;
	struct pp_error err;
	static const char text[] = "{\"schema\": \"peerpath.manifest/2\", \"version\": \"9.1\", "
				   "\"files\": {\"shape\": \"unknown to us\"}}";

	(void)state;
	assert_int_equal(pp_manifest_parse(text, sizeof(text) - 1, &m, &err), -EPROTONOSUPPORT);
	assert_string_equal(err.text, "newer bundle: written by peerpath 9.1, schema 2; use a "
				      "newer peerpath");
}

static void test_strict(void **state)
{
	(void)state;
	expect("", -EBADMSG, "no valid JSON");
	expect("[]", -EBADMSG, "no schema");
	expect("{\"schema\": \"peerpath.facts/1\"}", -EBADMSG, "no schema");
	expect("{\"schema\": \"peerpath.manifest/1\", \"schema\": \"peerpath.manifest/1\"}",
	       -EBADMSG, "no valid JSON");
	expect("{\"schema\": \"peerpath.manifest/0\"}", -EBADMSG, "no schema");
	expect("{\"schema\": \"peerpath.manifest/1\"}", -EBADMSG, "digest");
}

/* A well-formed manifest with this list of files, its digest right: only the list is wrong. */
static void expect_list(struct pp_manifest *m, const char *words)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);
	struct pp_error err;

	assert_int_equal(pp_manifest_write(m, &text, &err), 0);
	expect(text.data, -EBADMSG, words);
	pp_manifest_free(m);
}

static void test_lists(void **state)
{
	struct pp_manifest *m = example();
	struct pp_error err;

	(void)state;
	m->items[2].path = "../z";
	expect_list(m, "'..'");
	m = example();
	m->items[2].path = "/z";
	expect_list(m, "absolute");
	m = example();
	m->items[2].path = "manifest.json";
	expect_list(m, "lists itself");
	m = example();
	m->items[2].path = m->items[1].path; /* once as a file, once as a link */
	expect_list(m, "twice");
	m = example();
	assert_int_equal(
		pp_manifest_add(m, &(struct pp_member){.path = "a", .data = "", .len = 0}, &err),
		0);
	expect_list(m, "not in its place");
}

static void compare(struct pp_manifest *have, const char *words)
{
	struct pp_manifest *want = example();
	struct pp_error err = {0};

	assert_int_equal(pp_manifest_compare(want, have, &err), words ? -EBADMSG : 0);
	assert_string_equal(err.text, words ? words : "");
	pp_manifest_free(want);
	pp_manifest_free(have);
}

static void test_compare(void **state)
{
	struct pp_manifest *m = example();

	(void)state;
	compare(m, NULL);
	m = example();
	m->n--;
	compare(m, "'raw/z' is missing");
	m = example();
	m->items[2].path = "raw/y";
	compare(m, "'raw/y' is not in the manifest");
	m = example();
	m->items[2].bytes = 4;
	compare(m, "'raw/z' has 4 bytes, the manifest says 3");
	m = example();
	m->items[2].sha256[31] ^= 1;
	compare(m, "'raw/z' was changed: its SHA-256 differs");
	m = example();
	m->items[1].target = "y";
	compare(m, "'raw/l' points elsewhere than its manifest says");
	m = example();
	m->items[1].kind = PP_MEMBER_FILE;
	compare(m, "'raw/l' is a file, the manifest says link");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),	   cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_byte), cmocka_unit_test(test_newer),
		cmocka_unit_test(test_strict),	   cmocka_unit_test(test_lists),
		cmocka_unit_test(test_compare),
	};

	return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
