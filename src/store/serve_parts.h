/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the server share: private to store/serve*.c.
 */
#ifndef PP_STORE_SERVE_PARTS_H
#define PP_STORE_SERVE_PARTS_H

#include <sodium.h>

#include "base/clock.h"
#include "store/serve.h"
#include "store/web_connection.h"

struct pp_serve {
	struct pp_sql *sql;
	struct pp_serve_options options; /* strings borrowed */
	uint8_t token[crypto_hash_sha256_BYTES];
	struct MHD_Daemon *daemon;
	struct MHD_Response *page;
	int listening;
	char address[64], url[128];
	struct pp_web_connections connections;
};

/* One request, from its first line to its end. */
struct pp_serve_request {
	bool answered; /* refused before its body: what comes is not read */
	int file;      /* of a push, nameless; -1 none */
	uint64_t bytes;
	unsigned int failed; /* an HTTP status, once it is known that it will be */
	char why[256];
};

/* Answers with the headers that all answers have. Takes @response. */
enum MHD_Result pp_serve_answer(struct MHD_Connection *c, unsigned int status,
				struct MHD_Response *response);
/* {"error": "..."} */
enum MHD_Result pp_serve_refuse(struct MHD_Connection *c, unsigned int status, const char *why);

/* Asked by whoever watches a service, by any name: it tells nothing of the fleet. */
#define PP_SERVE_HEALTH "/healthz"

/* GET: the JSON of /api/..., the picture, or the health. False: no such path. */
bool pp_serve_get(struct pp_serve *s, struct MHD_Connection *c, const char *path,
		  enum MHD_Result *ret);

/* POST /push: before the body, with each part of it, behind it. */
enum MHD_Result pp_serve_push_begin(struct pp_serve *s, struct MHD_Connection *c,
				    struct pp_serve_request *r);
void pp_serve_push_more(struct pp_serve *s, struct pp_serve_request *r, const char *data,
			size_t len);
enum MHD_Result pp_serve_push_end(struct pp_serve *s, struct MHD_Connection *c,
				  struct pp_serve_request *r);

/* The page: serve_page.c is made of data/fleet/page.html. */
extern const unsigned char pp_serve_page[];
extern const size_t pp_serve_page_len;

#endif
