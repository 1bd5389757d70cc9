/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `profile verify`: is the node what the profile declares? The software tuple from the facts of
 * `identity`, the files, and gates 0 and 1; after a reboot also beside what was seen before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/profile.h"
#include "cli/proof.h"
#include "profile/verified.h"
#include "base/banned.h"

static void cell_seen(struct pp_out *o, const struct pp_need *row)
{
	char text[512];

	if (!row->of)
		pp_out_cellf(o, "unknown: no %s here", pp_kind_name(row->need->scope));
	else if (!row->seen)
		pp_out_cell(o, "unknown: not observed");
	else
		pp_out_cell(o, pp_fact_text(row->seen, text, sizeof(text)));
}

enum pp_verdict pp_profile_needs(struct pp_profile_run *run)
{
	static const struct pp_out_column columns[] = {{"require", "NEEDS", false},
						       {"of", "OF", false},
						       {"verdict", "IS", false},
						       {"seen", "SEEN", true},
						       {"install", "BY", true}};
	struct pp_need *row = calloc(PP_NEEDS, sizeof(*row));
	enum pp_verdict worst = PP_PASS, v;
	struct pp_out *o = run->s.out;
	unsigned int n;

	if (!row)
		return PP_UNKNOWN;
	n = pp_need_test(run->profile, &run->s.node->facts, row);
	pp_out_heading(o, "Software tuple");
	pp_out_table(o, "needs", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < n; i++) {
		v = pp_need_verdict(row[i].state);
		worst = pp_verdict_worst(worst, v);
		pp_out_cell(o, row[i].need->when.text);
		pp_out_cell(o, row[i].of ? row[i].of->id : NULL);
		pp_out_cell_verdict(o, v);
		cell_seen(o, &row[i]);
		pp_out_cell(o, v == PP_PASS ? NULL : row[i].need->install);
	}
	pp_out_table_end(o);
	free(row);
	return worst;
}

static enum pp_verdict files(struct pp_profile_run *run, const struct pp_change *c)
{
	static const struct pp_out_column columns[] = {
		{"file", "FILE", false}, {"verdict", "IS", false}, {"state", "STATE", true}};
	enum pp_verdict worst = PP_PASS, v;
	struct pp_out *o = run->s.out;

	pp_out_heading(o, "Files");
	pp_out_table(o, "files", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i < c->next->n; i++) {
		const struct pp_generation_entry *e = &c->next->entry[i];

		v = c->file[i].differs ? PP_FAIL : PP_PASS;
		worst = pp_verdict_worst(worst, v);
		pp_out_cell(o, e->path);
		pp_out_cell_verdict(o, v);
		pp_out_cell(o, !c->file[i].differs ? "as declared"
			       : !e->before.exists ? "missing"
			       : !e->after.exists  ? "should not be there"
						   : "differs");
	}
	pp_out_table_end(o);
	return worst;
}

static void gates(struct pp_out *o, const struct pp_gates *g)
{
	static const struct pp_out_column columns[] = {
		{"gate", "GATE", false}, {"verdict", "VERDICT", false}, {"claim", "CLAIM", true}};

	pp_out_heading(o, "Gates");
	pp_out_table(o, "gates", columns, PP_ARRAY_LEN(columns));
	for (unsigned int i = 0; i <= PP_GATE_PREREQUISITES; i++) {
		pp_out_cellf(o, "%u %s", i, pp_gate_name(g->row[i].gate));
		pp_out_cell_verdict(o, g->row[i].verdict);
		pp_out_cell(o, g->row[i].claim);
	}
	pp_out_table_end(o);
}

static void copy(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from ? from : "");
}

static void see(struct pp_profile_run *run, const struct pp_gates *g, struct pp_verified *ret)
{
	const struct pp_object *self = run->s.node->self;
	time_t now = time(NULL);
	struct tm tm;

	*ret = (struct pp_verified){.gate = {g->row[0].verdict, g->row[1].verdict}};
	copy(ret->profile, sizeof(ret->profile), run->profile->name);
	copy(ret->sha256, sizeof(ret->sha256), run->profile->sha256);
	copy(ret->software, sizeof(ret->software),
	     pp_fact_str_or(self, PP_F_SOFTWARE_FINGERPRINT, NULL));
	copy(ret->topology, sizeof(ret->topology), pp_fact_str_or(self, PP_F_TOPOLOGY_CLASS, NULL));
	if (pp_source_text(run->s.src, "/proc/sys/kernel/random/boot_id", ret->boot_id,
			   sizeof(ret->boot_id)))
		ret->boot_id[0] = '\0';
	if (gmtime_r(&now, &tm))
		(void)strftime(ret->time, sizeof(ret->time), "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* For --after-reboot. Who may not write there is told. */
static void keep(struct pp_profile_run *run, const struct pp_verified *v)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);
	struct pp_error err = {0};
	int r;

	pp_verified_write(v, &text);
	r = pp_state_lock(&run->state, &err);
	r = r ? r : pp_state_put(&run->disk, "verified", &text, &err);
	if (r)
		(void)pp_complain(run->args, 0, "not kept for --after-reboot: %s", err.text);
	pp_out_bool(run->s.out, "kept", NULL, !r);
}

static int read_kept(struct pp_profile_run *run, struct pp_verified *ret)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);
	struct pp_disk_state state = {0};
	struct pp_error err = {0};
	int r = pp_disk_read(&run->disk, PP_STATE_DIR "/verified", &text, &state, &err);

	if (!r && state.exists)
		r = pp_verified_parse(PP_STATE_DIR "/verified", pp_buf_text(&text), text.len, ret,
				      &err);
	else if (!r)
		r = pp_error_set(&err, -ENOENT,
				 "nothing was kept before the reboot: 'peerpath profile verify' as "
				 "root keeps it");
	return r ? pp_profile_failed(run, r, &err) : 0;
}

static enum pp_verdict compare(struct pp_profile_run *run, const struct pp_verified *before,
			       const struct pp_verified *now)
{
	static const struct pp_out_column columns[] = {{"what", "SINCE", false},
						       {"verdict", "IS", false},
						       {"before", "BEFORE", false},
						       {"after", "NOW", false},
						       {"why", "WHY", true}};
	struct pp_verified_row row[PP_VERIFIED_ROWS];
	enum pp_verdict worst = PP_PASS;
	struct pp_out *o = run->s.out;

	pp_verified_compare(before, now, row);
	pp_out_heading(o, "Beside what was seen before");
	pp_out_str(o, "before", "seen", before->time);
	pp_out_table(o, "after_reboot", columns, PP_ARRAY_LEN(columns));
	for (size_t i = 0; i < PP_VERIFIED_ROWS; i++) {
		worst = pp_verdict_worst(worst, row[i].verdict);
		pp_out_cell(o, row[i].what);
		pp_out_cell_verdict(o, row[i].verdict);
		pp_out_cellf(o, "%.16s", row[i].before);
		pp_out_cellf(o, "%.16s", row[i].after);
		pp_out_cell(o, row[i].why);
	}
	pp_out_table_end(o);
	return worst;
}

static enum pp_verdict write_all(struct pp_profile_run *run, const struct pp_change *c,
				 const struct pp_proof *proof, const struct pp_verified *before)
{
	const struct pp_generation *g = run->state.current;
	struct pp_verified now;
	enum pp_verdict v;

	pp_profile_head(run);
	pp_out_str(run->s.out, "name", "profile", run->profile->name);
	pp_out_str(run->s.out, "in_effect", "in effect", g ? g->name : "none");
	if (g && !strcmp(g->name, run->profile->name) &&
	    strcmp(g->sha256, run->profile->sha256) != 0)
		pp_out_para(run->s.out, 2,
			    "  The profile's text has changed since it was applied.");
	v = pp_profile_needs(run);
	v = pp_verdict_worst(v, files(run, c));
	gates(run->s.out, &proof->gates);
	v = pp_verdict_worst(v, proof->gates.verdict);
	see(run, &proof->gates, &now);
	if (before)
		v = pp_verdict_worst(v, compare(run, before, &now));
	else
		keep(run, &now);
	pp_out_heading(run->s.out, "Verdict");
	pp_out_verdict(run->s.out, "verdict", "verdict", v);
	pp_out_bool(run->s.out, "simulated", NULL, pp_node_simulated(run->s.node));
	pp_out_str(run->s.out, "next", "next",
		   v == PP_PASS ? "peerpath prove --peer HOST" : "peerpath check --details");
	return v;
}

int pp_profile_verify(struct pp_profile_run *run)
{
	bool after = pp_args_has(run->args, "after-reboot");
	struct pp_verified before;
	struct pp_proof proof = {0};
	struct pp_change *c = NULL;
	struct pp_error err = {0};
	int code = after ? read_kept(run, &before) : 0, r;

	if (code)
		return code;
	r = pp_change_make(&run->state, run->profile, &c, &err);
	if (r)
		return pp_profile_failed(run, r, &err);
	code = pp_proof_judge(&run->s, PP_GATE_PREREQUISITES, &proof);
	if (!code)
		code = pp_exit_of(run->args, write_all(run, c, &proof, after ? &before : NULL));
	pp_change_free(c);
	pp_proof_done(&proof);
	return code;
}
