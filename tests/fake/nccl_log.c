/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of NCCL 2.28.9, as its recorded logs have them; NCCL_DEBUG, _SUBSYS and _FILE as it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nccl.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[1024];
static FILE *file;
static int level = -1; /* 0 none, 1 version, 2 warn, 3 info */
static unsigned int mask;

void host_name(char *to, size_t size)
{
	if (gethostname(to, size))
		(void)snprintf(to, size, "unknown");
	to[size - 1] = '\0';
	to[strcspn(to, ".")] = '\0';
}

const char *last_warning(void)
{
	return last;
}

static unsigned int subsystems(void)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} names[] = {{"INIT", INIT}, {"NET", NET}, {"GRAPH", GRAPH}, {"TUNING", TUNING},
		     {"ENV", ENV},   {"REG", REG}, {"ALL", ~0U}};
	const char *p = getenv("NCCL_DEBUG_SUBSYS");
	unsigned int bits = 0;
	size_t len;

	if (!p)
		return INIT | ENV;
	for (; *p; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strlen(names[i].name) == len && !strncmp(p, names[i].name, len))
				bits |= names[i].bit;
	}
	return bits;
}

/* %h and %p in NCCL_DEBUG_FILE. */
static void open_file(void)
{
	const char *p = getenv("NCCL_DEBUG_FILE");
	char path[4096], host[64];
	size_t n = 0;

	file = stdout;
	host_name(host, sizeof(host));
	for (; p && *p && n < sizeof(path) - 80; p++) {
		if (*p == '%' && p[1] == 'h')
			n += (size_t)sprintf(path + n, "%s", host), p++;
		else if (*p == '%' && p[1] == 'p')
			n += (size_t)sprintf(path + n, "%d", (int)getpid()), p++;
		else
			path[n++] = *p;
	}
	path[n] = '\0';
	if (n)
		file = fopen(path, "we");
	if (!file)
		file = stdout;
}

static void begin(void)
{
	static const char *const names[] = {"", "VERSION", "WARN", "INFO"};
	const char *set = getenv("NCCL_DEBUG");

	if (level >= 0)
		return;
	level = 0;
	for (int i = 1; set && i < 4; i++)
		if (!strcmp(set, names[i]))
			level = i;
	mask = subsystems();
	open_file();
}

static void prefix(char *to, size_t size)
{
	char host[64];

	host_name(host, sizeof(host));
	(void)snprintf(to, size, "%s:%d:%ld [0]", host, (int)getpid(), syscall(SYS_gettid));
}

void say(enum log_subsystem what, const char *fmt, ...)
{
	char line[2048], who[128];
	va_list ap;

	pthread_mutex_lock(&lock);
	begin();
	if (level >= 3 && mask & (unsigned int)what) {
		va_start(ap, fmt);
		(void)vsnprintf(line, sizeof(line), fmt, ap);
		va_end(ap);
		prefix(who, sizeof(who));
		(void)fprintf(file, "%s NCCL INFO %s\n", who, line);
		(void)fflush(file);
	}
	pthread_mutex_unlock(&lock);
}

void warn(const char *at, const char *fmt, ...)
{
	time_t now = time(NULL);
	char who[128], when[32];
	struct tm tm;
	va_list ap;

	pthread_mutex_lock(&lock);
	begin();
	va_start(ap, fmt);
	(void)vsnprintf(last, sizeof(last), fmt, ap);
	va_end(ap);
	if (level >= 2) {
		prefix(who, sizeof(who));
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime_r(&now, &tm));
		(void)fprintf(file, "\n[%s] %s %s NCCL WARN %s\n", when, who, at, last);
		(void)fflush(file);
	}
	pthread_mutex_unlock(&lock);
}

void say_setting(const char *name)
{
	const char *value = getenv(name);

	if (value)
		say(ENV, "%s set by environment to %s%s", name, value,
		    strspn(value, "0123456789") == strlen(value) ? "." : "");
}
