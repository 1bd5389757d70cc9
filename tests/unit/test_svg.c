/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the writer makes is XML whatever the text holds. expat, another project's parser, is the
 * judge, and gives the text back as it was written.
 */
#include "unit.h"

#include <expat.h>

#include "bundle/svg.h"

static void collect(void *arg, const XML_Char *text, int len)
{
	pp_buf_add(arg, text, (size_t)len);
}

/* Parses @svg; the character data of its last text element ends up in @ret. */
static void parse(const struct pp_buf *svg, struct pp_buf *ret)
{
	XML_Parser p = XML_ParserCreate(NULL);

	XML_SetUserData(p, ret);
	XML_SetCharacterDataHandler(p, collect);
	if (XML_Parse(p, svg->data, (int)svg->len, 1) != XML_STATUS_OK)
		fail_msg("line %lu: %s", XML_GetCurrentLineNumber(p),
			 XML_ErrorString(XML_GetErrorCode(p)));
	XML_ParserFree(p);
}

static void check(const char *text, const char *expected)
{
	struct pp_buf out = PP_BUF(1 << 20), data = PP_BUF(1 << 20);
	struct pp_svg s = {.out = &out};

	pp_svg_begin(&s, 10, 10, "", "t", "d");
	pp_svg_group(&s, "g");
	pp_svg_text(&s, "c", 1, 2, "[%s]", text);
	pp_svg_group_end(&s);
	pp_svg_end(&s);
	assert_int_equal(out.failed, 0);
	parse(&out, &data);
	if (!strstr(pp_buf_text(&data), expected))
		fail_msg("'%s' is not in '%s'", expected, pp_buf_text(&data));
	pp_buf_done(&out);
	pp_buf_done(&data);
}

static void test_text(void **state)
{
	(void)state;
	check("plain", "[plain]");
	check("<a href=\"x\">&amp;</a>", "[<a href=\"x\">&amp;</a>]");
	check("]]><!--", "[]]><!--]");
	check("Gr\xc3\xbc\xc3\x9f", "[Gr\xc3\xbc\xc3\x9f]");
	/* Not XML: control bytes, broken and overlong UTF-8, a surrogate, U+FFFF. */
	check("a\x01"
	      "b",
	      "[a\xef\xbf\xbd"
	      "b]");
	check("a\x1b[31mb", "[a\xef\xbf\xbd[31mb]");
	check("\xff\xfe", "[\xef\xbf\xbd\xef\xbf\xbd]");
	check("\xc0\xaf", "[\xef\xbf\xbd\xef\xbf\xbd]");
	check("\xed\xa0\x80", "[\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd]");
	check("\xef\xbf\xbf", "[\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd]");
	check("cut \xe2\x82", "[cut \xef\xbf\xbd\xef\xbf\xbd]");
}

static void test_every_byte(void **state)
{
	char text[3] = "";

	(void)state;
	for (int a = 1; a < 256; a++)
		for (int b = 1; b < 256; b += 3) {
			text[0] = (char)a;
			text[1] = (char)b;
			check(text, "[");
		}
}

/* A full buffer is an error of the buffer, never half a document taken for a whole one. */
static void test_limit(void **state)
{
	struct pp_buf out = PP_BUF(64);
	struct pp_svg s = {.out = &out};

	(void)state;
	pp_svg_begin(&s, 10, 10, "", "t", "d");
	pp_svg_end(&s);
	assert_int_not_equal(out.failed, 0);
	pp_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests_name("svg", tests, NULL, NULL);
}
