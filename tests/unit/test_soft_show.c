/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking processes what they do: whoever answers may be another user's program, and hand over any
 * descriptor. One that never ends must not be read for ever.
 */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "soft/engine/show.h"

enum { SLOT = 254, PATIENCE_MS = 5000 };

static int listen_as_slot(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int n = snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "peerpath-soft.%d.show", SLOT);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
			 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

struct answer {
	int listener, given;
};

static void *answer(void *arg)
{
	struct answer *a = arg;
	char byte = 0;
	struct iovec iov = {&byte, 1};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int caller = accept(a->listener, NULL, NULL);
	char request[4];

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &a->given, sizeof(int));
	/* It says what it wants first. */
	assert_int_equal(recv(caller, request, sizeof(request), MSG_WAITALL), sizeof(request));
	assert_memory_equal(request, "show", sizeof(request));
	(void)!sendmsg(caller, &m, MSG_NOSIGNAL);
	close(caller);
	return NULL;
}

static int asked(int given, struct pp_buf *ret)
{
	struct answer a = {listen_as_slot(), given};
	pthread_t thread;
	int rc;

	assert_true(given >= 0);
	assert_int_equal(pthread_create(&thread, NULL, answer, &a), 0);
	rc = soft_show_ask(SLOT, SOFT_SHOW_REQUEST, PATIENCE_MS, ret);
	pthread_join(thread, NULL);
	close(a.listener);
	close(given);
	return rc;
}

static void text_is_read(void **state)
{
	struct pp_buf text = PP_BUF(SOFT_SHOW_MAX);
	int fd = memfd_create("answer", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(write(fd, "{\"pid\":1}", 9), 9);
	assert_int_equal(asked(fd, &text), 0);
	assert_string_equal(pp_buf_text(&text), "{\"pid\":1}");
	pp_buf_done(&text);
}

static void other_descriptors_are_refused(void **state)
{
	struct pp_buf text = PP_BUF(SOFT_SHOW_MAX);

	(void)state;
	assert_true(asked(open("/dev/zero", O_RDONLY | O_CLOEXEC), &text) < 0);
	assert_int_equal(text.len, 0);
	pp_buf_done(&text);
}

static void long_texts_are_refused(void **state)
{
	struct pp_buf text = PP_BUF(SOFT_SHOW_MAX);
	int fd = memfd_create("answer", MFD_CLOEXEC);

	(void)state;
	/* A hole: it costs nobody memory but who reads it. */
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_true(asked(fd, &text) < 0);
	pp_buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_read),
		cmocka_unit_test(other_descriptors_are_refused),
		cmocka_unit_test(long_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
