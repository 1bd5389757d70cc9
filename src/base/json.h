/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming JSON writer: no tree, stable order, no locale. Appends to a pp_buf, whose sticky
 * error is the writer's error. Reading is jansson's job.
 *
 * Inside an object every call gives a key; inside an array the key is NULL. Bytes that are not
 * UTF-8 become U+FFFD, so that the output is always a valid document.
 */
#ifndef PP_BASE_JSON_H
#define PP_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum { PP_JSON_DEPTH = 24 };

struct pp_json {
	struct pp_buf *out; /* borrowed */
	unsigned int depth;
	bool pretty;
	bool filled[PP_JSON_DEPTH]; /* has this level a member already? */
};

#define PP_JSON(buf, is_pretty) ((struct pp_json){.out = (buf), .pretty = (is_pretty)})

void pp_json_object(struct pp_json *j, const char *key);
void pp_json_array(struct pp_json *j, const char *key);
void pp_json_end_object(struct pp_json *j);
void pp_json_end_array(struct pp_json *j);
/* NULL @value writes null. */
void pp_json_str(struct pp_json *j, const char *key, const char *value);
void pp_json_u64(struct pp_json *j, const char *key, uint64_t value);
void pp_json_i64(struct pp_json *j, const char *key, int64_t value);
/* Not a number and infinities become null. */
void pp_json_double(struct pp_json *j, const char *key, double value);
void pp_json_bool(struct pp_json *j, const char *key, bool value);
void pp_json_null(struct pp_json *j, const char *key);

#endif
