/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that watchers read: /proc/stat and PSI in the forms of proc(5) and of the kernel's
 * documentation, exposition formats as Prometheus' and OpenMetrics' specifications show them, and
 * answers of HTTP servers.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>

#include "daemon/loopback.h"
#include "daemon/samples.h"
#include "node/pressure.h"

static void test_pressure(void **state)
{
	double seconds = -1;

	(void)state;
	assert_int_equal(pp_pressure_parse("some avg10=1.00 avg60=0.50 avg300=0.10 total=2500000\n"
					   "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
					   &seconds),
			 0);
	assert_float_equal(seconds, 2.5, 1e-9);
	assert_int_equal(pp_pressure_parse("full avg10=0.00 total=1\n", &seconds), -EBADMSG);
	assert_int_equal(pp_pressure_parse("some avg10=0.00\nfull total=1\n", &seconds), -EBADMSG);
	assert_int_equal(pp_pressure_parse("some total=-1\n", &seconds), -EBADMSG);
	assert_int_equal(pp_pressure_parse("some total=1x\n", &seconds), -EBADMSG);
	assert_int_equal(pp_pressure_parse("", &seconds), -EBADMSG);
	assert_float_equal(seconds, 2.5, 1e-9);
}

/* user 100, nice 10, system 40, idle 1000, iowait 50, irq 1, softirq 2, steal 3, guest 60, 0 */
static void test_processors(void **state)
{
	struct pp_processor_time t = {0};

	(void)state;
	assert_int_equal(
		pp_processor_time_parse("cpu  100 10 40 1000 50 1 2 3 60 0\ncpu0 1 1\n", &t), 0);
	assert_int_equal(t.all, 1206);
	assert_int_equal(t.busy, 156);
	assert_int_equal(pp_processor_time_parse("cpu0 1 2 3 4 5 6 7 8\n", &t), -EBADMSG);
	assert_int_equal(pp_processor_time_parse("cpu  1 2 3\n", &t), -EBADMSG);
	assert_int_equal(pp_processor_time_parse("cpu  1 2 3 4 5 6 7 x\n", &t), -EBADMSG);
	assert_int_equal(pp_processor_time_parse("cpu  18446744073709551615 1 1 1 1 1 1 1\n", &t),
			 -EBADMSG);
}

struct seen {
	char text[1024];
};

static int take(void *ctx, const char *name, size_t len, size_t bare, double value)
{
	struct seen *s = ctx;
	size_t at = strlen(s->text);

	(void)snprintf(s->text + at, sizeof(s->text) - at, "%.*s(%zu)=%g\n", (int)len, name, bare,
		       value);
	return 0;
}

/* The samples of the page "Exposition formats", with its labels, its special values, its time. */
static void test_samples(void **state)
{
	static const char text[] =
		"# HELP http_requests_total The total number of HTTP requests.\n"
		"# TYPE http_requests_total counter\n"
		"http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n"
		"msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\FILE.TXT\",error=\"Cannot "
		"find file:\\n\\\"FILE.TXT\\\"\"} 1.458255915e9\n"
		"metric_without_timestamp_and_labels 12.47\n"
		"something_weird{problem=\"division by zero}\"} +Inf -3982045\n"
		"\n"
		"a_nan NaN\n"
		"neg -Inf\n"
		"windows 3\r\n"
		"# EOF\n";
	struct seen s = {0};
	size_t odd = 9;

	(void)state;
	assert_int_equal(pp_samples_read(text, sizeof(text) - 1, take, &s, &odd), 0);
	assert_int_equal(odd, 0);
	assert_string_equal(s.text,
			    "http_requests_total{method=\"post\",code=\"200\"}(19)=1027\n"
			    "msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\FILE.TXT\",error="
			    "\"Cannot find file:\\n\\\"FILE.TXT\\\"\"}(30)=1.45826e+09\n"
			    "metric_without_timestamp_and_labels(35)=12.47\n"
			    "something_weird{problem=\"division by zero}\"}(15)=inf\n"
			    "a_nan(5)=nan\n"
			    "neg(3)=-inf\n"
			    "windows(7)=3\n");
}

static void test_odd_samples(void **state)
{
	static const char text[] =
		"9a 1\nname\nname{a=\"b\" 1\nname one\nname 1,5\n{} 1\nname 0x1\n"
		"name1\x00 2\n";
	struct seen s = {0};
	size_t odd = 0;

	(void)state;
	assert_int_equal(pp_samples_read(text, sizeof(text) - 1, take, &s, &odd), 0);
	assert_string_equal(s.text, "");
	assert_int_equal(odd, 8);
}

static void test_addresses(void **state)
{
	static const char *const refused[] = {"",
					      "http://",
					      "https://127.0.0.1/",
					      "http://10.0.0.1/metrics",
					      "http://example.org/",
					      "http://127.0.0.1:0/",
					      "http://127.0.0.1:65536/",
					      "http://127.0.0.1:99a/",
					      "http://[::2]/",
					      "http://[::1/",
					      "http://[::1]x/",
					      "http://127.0.0.1@example.org/",
					      "http://127.0.0.1/a b",
					      "http://127.0.0.1/\r\nX: y",
					      "http://127.0.0.1.example.org/",
					      "file:///etc/passwd"};
	struct pp_loopback l;
	struct pp_error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		err = (struct pp_error){0};
		assert_int_equal(pp_loopback_parse(refused[i], &l, &err), -EINVAL);
		assert_true(err.text[0]);
	}
	assert_int_equal(pp_loopback_parse("http://127.0.0.1:9000/metrics?x=1", &l, &err), 0);
	assert_string_equal(l.host, "127.0.0.1");
	assert_int_equal(l.port, 9000);
	assert_string_equal(l.path, "/metrics?x=1");
	assert_int_equal(pp_loopback_parse("http://[::1]:80", &l, &err), 0);
	assert_string_equal(l.host, "::1");
	assert_string_equal(l.path, "/");
	assert_int_equal(pp_loopback_parse("http://localhost/", &l, &err), 0);
	assert_string_equal(l.host, "127.0.0.1");
}

static int answer(const char *text, size_t *ret)
{
	struct pp_error err = {0};
	int r = pp_loopback_answer(text, strlen(text), ret, &err);

	assert_true(!r == !err.text[0]);
	return r;
}

static void test_answers(void **state)
{
	size_t body = 0;

	(void)state;
	assert_int_equal(answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", &body), 0);
	assert_int_equal(body, 38);
	assert_int_equal(answer("HTTP/1.0 200 OK\r\n\r\n", &body), 0);
	assert_int_equal(answer("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", &body), -EPROTO);
	assert_int_equal(answer("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab", &body), -EPROTO);
	assert_int_equal(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &body),
			 -EPROTO);
	assert_int_equal(answer("HTTP/1.1 404 Not Found\r\n\r\n", &body), -EPROTO);
	assert_int_equal(answer("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n\r\n", &body),
			 -EPROTO);
	assert_int_equal(answer("HTTP/1.1 200 OK\r\n", &body), -EPROTO);
	assert_int_equal(answer("SSH-2.0-OpenSSH\r\n\r\n", &body), -EPROTO);
	assert_int_equal(answer("", &body), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pressure),  cmocka_unit_test(test_processors),
		cmocka_unit_test(test_samples),	  cmocka_unit_test(test_odd_samples),
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
