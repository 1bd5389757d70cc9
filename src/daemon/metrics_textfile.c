/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/metrics.h"

#include <errno.h>

#include "base/file.h"
#include "base/banned.h"

enum { MOST = 8 << 20 };

int pp_metrics_textfile(const struct pp_state *s, const char *file, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(MOST);
	char why[128];
	int r;

	pp_metrics_write(s, PP_METRICS_PROMETHEUS, &text);
	/* node_exporter reads "*.prom": the hidden name does not end so. Written again each round.
	 */
	r = text.failed ? text.failed
			: pp_file_replace(file, text.data, text.len, 0644,
					  PP_REPLACE_ALONE | PP_REPLACE_CACHED);
	return r ? pp_error_set(err, r, "cannot write '%s': %s", file,
				r == -ENOTSUP ? "no regular file"
					      : pp_errno_text(r, why, sizeof(why)))
		 : 0;
}
