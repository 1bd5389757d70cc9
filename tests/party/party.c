/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of several nodes without anything to measure: what party.py starts on each of them.
 *
 *   party coordinate [--peer ADDRESS]... [--local N] [--deadline S] [--hold] [--stubborn]
 *   party listen [--once] [ADDRESS]
 *   party rank [--hold]           coordinate or serve, by the launcher's variables
 *   party hosts LIST              what a list of hosts means
 *
 * The token comes from PEERPATH_TOKEN, else from the file PEERPATH_TOKEN_FILE; of a rank, else
 * from the job. The result is one line of JSON; the last line of a failure is its text, alone.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "rdma/hostlist.h"
#include "rdma/party.h"
#include "rdma/token.h"

enum { PEERS = 16, RECORD = 3 << 20 };

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	(void)number;
	caught = 1;
}

static bool stopped(void)
{
	return caught != 0;
}

static void say(const char *text)
{
	(void)fprintf(stderr, "%s\n", text);
}

static const char *get(const char *name)
{
	return getenv(name);
}

static pp_ns in(int seconds)
{
	return pp_clock_monotonic() + seconds * PP_SECOND;
}

/* {"do": "pid"}: its number and its host; "echo": the same back; "stubborn": never ends. */
static int agent(struct pp_channel *c, const void *arg)
{
	struct pp_error err;
	char text[512], host[256] = "";
	const char *what;
	json_t *m;
	int n;

	(void)arg;
	(void)gethostname(host, sizeof(host) - 1);
	while (pp_channel_receive(c, in(3600), NULL, &m, &err) == 0) {
		what = json_string_value(json_object_get(m, "do"));
		if (what && strcmp(what, "stubborn") == 0)
			(void)signal(SIGTERM, SIG_IGN);
		n = snprintf(text, sizeof(text), "{\"pid\":%d,\"host\":\"%s\",\"echo\":%lld}",
			     (int)getpid(), host, json_integer_value(json_object_get(m, "n")));
		(void)pp_channel_send(c, text, (size_t)n, &err);
		while (what && strcmp(what, "stubborn") == 0)
			(void)poll(NULL, 0, 1000);
		json_decref(m);
	}
	return 0;
}

static int record(char **ret, size_t *ret_len, const void *arg)
{
	char host[256] = "";

	(void)arg;
	(void)gethostname(host, sizeof(host) - 1);
	*ret = malloc(RECORD);
	if (!*ret)
		return -ENOMEM;
	memset(*ret, host[0] ? host[strlen(host) - 1] : '?', RECORD);
	*ret_len = RECORD;
	return 0;
}

static json_t *ask(struct pp_channel *c, const char *what, long long n, struct pp_error *err)
{
	char text[128];
	json_t *m = NULL;
	int len = snprintf(text, sizeof(text), "{\"do\":\"%s\",\"n\":%lld}", what, n);

	if (pp_channel_send(c, text, (size_t)len, err) ||
	    pp_channel_receive(c, in(30), stopped, &m, err))
		return NULL;
	return m;
}

struct run {
	struct pp_party *party;
	struct pp_channel *agent[PP_PARTY_NODES];
	bool hold, stubborn;
};

static int describe(struct run *r, unsigned int i, struct pp_json *j, struct pp_error *err)
{
	const struct pp_party_node *node = pp_party_node(r->party, i);
	size_t len = 0, right = 0;
	char *bytes = NULL;
	json_t *m;
	int e = pp_party_agent(r->party, i, &r->agent[i], err);

	if (!e)
		e = pp_party_record(r->party, i, &bytes, &len, err);
	if (e)
		return e;
	while (right < len && bytes[right] == bytes[0])
		right++;
	m = ask(r->agent[i], "pid", 1, err);
	if (!m)
		return err->code;
	pp_json_object(j, NULL);
	pp_json_str(j, "id", node->id);
	pp_json_str(j, "host", node->host);
	pp_json_str(j, "address", node->address);
	pp_json_str(j, "version", node->version);
	pp_json_str(j, "agent_host", json_string_value(json_object_get(m, "host")));
	pp_json_i64(j, "agent", json_integer_value(json_object_get(m, "pid")));
	pp_json_u64(j, "record", right);
	pp_json_str(j, "record_of", (char[]){len ? bytes[0] : '?', '\0'});
	pp_json_end_object(j);
	json_decref(m);
	free(bytes);
	return 0;
}

static int measure(struct run *r, struct pp_error *err)
{
	struct pp_buf buf PP_AUTO_BUF = PP_BUF((size_t)1 << 20);
	struct pp_json j = PP_JSON(&buf, false);
	int e = 0;

	pp_json_object(&j, NULL);
	pp_json_array(&j, "nodes");
	for (unsigned int i = 0; i < pp_party_size(r->party) && !e; i++)
		e = describe(r, i, &j, err);
	if (e)
		return e;
	pp_json_end_array(&j);
	pp_json_end_object(&j);
	(void)printf("%s\n", pp_buf_text(&buf));
	(void)fflush(stdout);
	for (unsigned int i = 0; i < pp_party_size(r->party) && r->stubborn; i++)
		json_decref(ask(r->agent[i], "stubborn", 0, err));
	(void)puts("held");
	(void)fflush(stdout);
	if (r->hold && r->stubborn)
		(void)poll(NULL, 0, 3600000);
	return 0;
}

/* Messages to and fro until one is not answered: what a run that is going on looks like. */
static int talk(struct run *r, struct pp_error *err)
{
	char fate[640];

	for (long long n = 0;; n++) {
		for (unsigned int i = 0; i < pp_party_size(r->party); i++) {
			json_t *m = ask(r->agent[i], "echo", n, err);
			bool right = json_integer_value(json_object_get(m, "echo")) == n;

			json_decref(m);
			if (right)
				continue;
			if (err->code == -EINTR)
				return err->code;
			pp_party_fate(r->party, i, fate, sizeof(fate));
			return pp_error_set(err, -ECONNRESET, "lost %s: %.400s",
					    pp_party_node(r->party, i)->id,
					    fate[0] ? fate : err->text);
		}
		(void)poll(NULL, 0, 20);
	}
}

static int coordinate(const struct pp_party_options *o, bool hold, bool stubborn,
		      struct pp_error *err)
{
	static struct run r;
	int e;

	r.hold = hold;
	r.stubborn = stubborn;
	e = pp_party_gather(o, &r.party, err);
	if (e)
		return e;
	e = measure(&r, err);
	if (!e && hold)
		e = talk(&r, err);
	for (unsigned int i = 0; i < pp_party_size(r.party); i++)
		(void)pp_channel_free(r.agent[i]);
	(void)pp_party_free(r.party);
	return e;
}

static int token(const struct pp_launch *launch, char ret[PP_TOKEN_MOST + 1], struct pp_error *err)
{
	const char *text = getenv("PEERPATH_TOKEN"), *file = getenv("PEERPATH_TOKEN_FILE");

	if (text)
		return pp_token_parse(text, strlen(text), ret, err);
	if (file)
		return pp_token_read(file, ret, err);
	if (launch->by)
		pp_token_derive(launch, getuid(), ret);
	else
		ret[0] = '\0';
	return 0;
}

struct words {
	const char *peers[PEERS];
	unsigned int n_peers, local, deadline;
	bool hold, stubborn, once;
	const char *listen;
};

static bool parse(int argc, char **argv, struct words *w)
{
	uint64_t n;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--hold") == 0)
			w->hold = true;
		else if (strcmp(argv[i], "--stubborn") == 0)
			w->stubborn = true;
		else if (strcmp(argv[i], "--once") == 0)
			w->once = true;
		else if (argv[i][0] != '-')
			w->listen = argv[i];
		else if (i + 1 == argc || w->n_peers == PEERS)
			return false;
		else if (strcmp(argv[i], "--peer") == 0)
			w->peers[w->n_peers++] = argv[++i];
		else if (pp_parse_u64(argv[i + 1], 1, 1000, &n))
			return false;
		else if (strcmp(argv[i++], "--local") == 0)
			w->local = (unsigned int)n;
		else
			w->deadline = (unsigned int)n;
	}
	return argc > 1;
}

static bool print_name(void *arg, const char *name)
{
	(void)arg;
	return puts(name) >= 0;
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	struct words w = {.local = 1, .deadline = 20};
	struct pp_launch launch = {0};
	struct pp_party_options o = {
		.stopped = stopped, .say = say, .service = {.agent = agent, .record = record}};
	char secret[PP_TOKEN_MOST + 1];
	struct pp_error err = {0};
	int e;

	if (!parse(argc, argv, &w))
		return 64;
	if (strcmp(argv[1], "hosts") == 0)
		return pp_hostlist_expand(w.listen ? w.listen : "", print_name, NULL, &err) != 0;
	(void)sigaction(SIGINT, &act, NULL);
	(void)sigaction(SIGTERM, &act, NULL);
	e = strcmp(argv[1], "rank") == 0 ? pp_launch_read(get, &launch, &err) : 0;
	if (!e)
		e = token(&launch, secret, &err);
	o.peers = w.peers;
	o.n_peers = w.n_peers;
	o.local = w.local;
	o.deadline = w.deadline * PP_SECOND;
	o.token = secret;
	o.listen = w.listen;
	o.launch = launch.by ? &launch : NULL;
	if (!e && strcmp(argv[1], "listen") == 0)
		e = pp_party_serve_listen(&o, w.once, &err);
	else if (!e && launch.by && launch.rank)
		e = pp_party_serve_rank(&o, &err);
	else if (!e)
		e = coordinate(&o, w.hold, w.stubborn, &err);
	if (e)
		(void)fprintf(stderr, "%s\n", err.text);
	return e == -EINTR ? 130 : e ? 1 : 0;
}
