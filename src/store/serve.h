/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fleet over HTTP: one page, the JSON beneath it, and pushes.
 *
 * Reading needs no token, so it listens on loopback unless told otherwise; a request that names
 * another host than the server's is refused, so that no page of the web reaches it by a name of its
 * own. A push needs the token, is written to a nameless file, and goes the way of `fleet add`.
 * No path of a request ever names a file.
 *
 * One thread serves all: connections are bounded, each has a deadline as a whole, not only between
 * two bytes.
 */
#ifndef PP_STORE_SERVE_H
#define PP_STORE_SERVE_H

#include "store/fleet.h"

enum { PP_SERVE_HOSTS = 16 };

struct pp_serve_options {
	const char *listen; /* address */
	unsigned int port;  /* 0: any */
	const char
		*host[PP_SERVE_HOSTS + 1]; /* further names by which it may be called; NULL ends */
	const char *token;		   /* NULL: nobody may push */
	uint64_t max_push;		   /* bytes */
	unsigned int deadline_s;	   /* of a connection that waits for its client; 0: 30 */
};

struct pp_serve;

/* @sql is borrowed and used by the server alone until it is stopped. */
int pp_serve_start(struct pp_sql *sql, const struct pp_serve_options *options,
		   struct pp_serve **ret, struct pp_error *err);
/* "http://127.0.0.1:18517/" */
const char *pp_serve_url(const struct pp_serve *s);
/* Ends connections that are over their deadline; call it every second. */
void pp_serve_tick(struct pp_serve *s);
struct pp_serve *pp_serve_stop(struct pp_serve *s); /* returns NULL */

#endif
