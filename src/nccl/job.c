/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/job.h"

#include <string.h>

#include "nccl/gather.h"
#include "base/banned.h"

static const struct pp_nccl_place NOWHERE = {PP_NCCL_NONE, 0};

void pp_nccl_job_init(struct pp_nccl_job *job)
{
	const size_t two = 2 * sizeof(uint32_t), four = 2 * two;

	*job = (struct pp_nccl_job){
		.files = PP_NCCL_TABLE(struct pp_nccl_file, PP_NCCL_FILE, 16384),
		.names = PP_NCCL_TABLE(struct pp_nccl_name, PP_NCCL_NAME, 65536),
		.processes = PP_NCCL_TABLE(struct pp_nccl_process, two, PP_NCCL_MAX_PROCESSES),
		.numbers = PP_NCCL_TABLE(struct pp_nccl_number, two, PP_NCCL_MAX_PROCESSES),
		.pointers = PP_NCCL_TABLE(struct pp_nccl_pointer, four, PP_NCCL_MAX_MEMBERS),
		.members = PP_NCCL_TABLE(struct pp_nccl_member, four, PP_NCCL_MAX_MEMBERS),
		.threads = PP_NCCL_TABLE(struct pp_nccl_thread, two, PP_NCCL_MAX_MEMBERS),
		.ends = PP_NCCL_TABLE(struct pp_nccl_end, sizeof(((struct pp_nccl_end *)NULL)->key),
				      PP_NCCL_MAX_ENDS),
		.nics = PP_NCCL_TABLE(struct pp_nccl_nic, 3 * sizeof(uint32_t), 65536),
		.gpus = PP_NCCL_TABLE(struct pp_nccl_gpu, four, 65536),
		.choices = PP_NCCL_TABLE(struct pp_nccl_choice, 3 * sizeof(uint32_t), 65536),
		.settings = PP_NCCL_TABLE(struct pp_nccl_setting, two, 32768),
		.errors = PP_NCCL_TABLE(struct pp_nccl_error, four, PP_NCCL_MAX_ERRORS),
		.listed = PP_NCCL_TABLE(struct pp_nccl_listed, two, PP_NCCL_MAX_PROCESSES),
		.oldest = PP_NCCL_OLDEST,
		.newest = PP_NCCL_NEWEST,
		.oldest_at = NOWHERE,
		.newest_at = NOWHERE,
		.bench = {.row = NOWHERE, .bounds = NOWHERE, .wrong = NOWHERE},
		.nvlink = NOWHERE,
		.simulated = NOWHERE,
		.registered = NOWHERE,
		.user_buffer = NOWHERE,
		.user_buffer_failed = NOWHERE,
		.application_failed = NOWHERE,
		.provider_tcp = NOWHERE,
		.unfinished_at = NOWHERE,
	};
	pp_nccl_formats_init(&job->formats);
}

static struct pp_nccl_table *table_at(struct pp_nccl_job *job, size_t i)
{
	struct pp_nccl_table *const all[] = {
		&job->files,  &job->names,   &job->processes, &job->pointers, &job->members,
		&job->ends,   &job->nics,    &job->gpus,      &job->choices,  &job->settings,
		&job->errors, &job->numbers, &job->threads,   &job->listed,
	};

	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

void pp_nccl_job_done(struct pp_nccl_job *job)
{
	struct pp_nccl_table *t;

	for (size_t i = 0; (t = table_at(job, i)); i++)
		pp_nccl_table_done(t);
}

bool pp_nccl_job_starved(struct pp_nccl_job *job)
{
	const struct pp_nccl_table *t;

	for (size_t i = 0; (t = table_at(job, i)); i++)
		if (t->starved)
			return true;
	return false;
}

bool pp_nccl_job_full(const struct pp_nccl_job *job)
{
	/* a full list of errors or files loses no connection */
	return job->names.full || job->processes.full || job->pointers.full || job->members.full ||
	       job->ends.full || job->nics.full || job->gpus.full || job->choices.full ||
	       job->settings.full || job->threads.full || job->listed.full;
}

static bool is_name(const struct pp_nccl_job *job, uint32_t id, struct pp_nccl_span text)
{
	const struct pp_nccl_name *n;

	if (id >= job->names.n || text.len >= PP_NCCL_NAME)
		return false;
	n = pp_nccl_table_at(&job->names, id);
	return !memcmp(n->text, text.at, text.len) && !n->text[text.len];
}

uint32_t pp_nccl_job_intern(struct pp_nccl_job *job, struct pp_nccl_span text)
{
	while (text.len && text.at[text.len - 1] == ' ')
		text.len--;
	if (!text.len)
		text.at = "";
	/* most lines name the network that the line before did */
	if (!is_name(job, job->last_name, text))
		job->last_name = pp_nccl_table_put_text(&job->names, text.at, text.len);
	return job->last_name;
}

const char *pp_nccl_job_name(const struct pp_nccl_job *job, uint32_t id)
{
	const struct pp_nccl_name *n;

	if (id == PP_NCCL_NONE || id >= job->names.n)
		return "";
	n = pp_nccl_table_at(&job->names, id);
	return n->text;
}

void pp_nccl_job_file(struct pp_nccl_job *job, const char *name)
{
	size_t len = strlen(name);
	/* the end of a long path tells files apart */
	size_t skip = len < PP_NCCL_FILE ? 0 : len - (PP_NCCL_FILE - 1);

	job->file = pp_nccl_table_put_text(&job->files, name + skip, len - skip);
}

struct pp_nccl_place pp_nccl_job_here(const struct pp_nccl_job *job)
{
	return (struct pp_nccl_place){job->file, job->last_number};
}

/*
 * A warning may name its host otherwise than the other lines of its process do: the host's real
 * name, where NCCL_HOSTID renamed the rest. One process of that number in the same file is it.
 */
static uint32_t same_number(const struct pp_nccl_job *job, uint32_t pid)
{
	struct pp_nccl_number key = {{job->file, pid}, 0}, *n;
	uint32_t i = pp_nccl_table_find(&job->numbers, &key);

	if (i == PP_NCCL_NONE)
		return i;
	n = pp_nccl_table_at(&job->numbers, i);
	return n->process;
}

static void note_number(struct pp_nccl_job *job, uint32_t pid, uint32_t process)
{
	struct pp_nccl_number key = {{job->file, pid}, 0}, *n;
	bool is_new;
	uint32_t i = pp_nccl_table_put(&job->numbers, &key, &is_new);

	if (i == PP_NCCL_NONE)
		return;
	n = pp_nccl_table_at(&job->numbers, i);
	n->process = is_new ? process : PP_NCCL_NONE;
}

/* The process by its name and number, which are often those of the line before. */
static uint32_t put_process(struct pp_nccl_job *job, const struct pp_nccl_line *line, bool *ret_new)
{
	struct pp_nccl_process key = {0};
	const struct pp_nccl_process *last;

	*ret_new = false;
	if (job->last_process < job->processes.n) {
		last = pp_nccl_table_at(&job->processes, job->last_process);
		if (last->key.pid == line->pid && is_name(job, last->key.host, line->host))
			return job->last_process;
	}
	key.key.host = pp_nccl_table_put_text(&job->names, line->host.at, line->host.len);
	key.key.pid = line->pid;
	job->last_process = pp_nccl_table_put(&job->processes, &key, ret_new);
	return job->last_process;
}

static uint32_t process_of(struct pp_nccl_job *job, const struct pp_nccl_line *line)
{
	struct pp_nccl_process *p;
	uint32_t i, other;
	bool is_new;

	i = put_process(job, line, &is_new);
	if (i == PP_NCCL_NONE)
		return i;
	p = pp_nccl_table_at(&job->processes, i);
	/* it has lines of its own under that name: another process after all, of another host */
	if (p->same_as && line->level != PP_NCCL_WARN)
		p->same_as = 0;
	if (is_new) {
		p->place = pp_nccl_job_here(job);
		p->dmabuf_off = p->returned = p->start_failed = p->rings_unclear = NOWHERE;
		other = line->level == PP_NCCL_WARN ? same_number(job, line->pid) : PP_NCCL_NONE;
		p->same_as = other == PP_NCCL_NONE ? 0 : other + 1;
		if (!p->same_as)
			note_number(job, line->pid, i);
	}
	return p->same_as ? p->same_as - 1 : i;
}

void pp_nccl_gather_range(struct pp_nccl_job *job, int oldest, int newest)
{
	if (oldest > job->oldest) {
		job->oldest = oldest;
		job->oldest_at = pp_nccl_job_here(job);
	}
	if (newest < job->newest) {
		job->newest = newest;
		job->newest_at = pp_nccl_job_here(job);
	}
}

/* A line that may lack its end could say the opposite of what it seems to. */
static bool misleads(const struct pp_nccl_line *line, enum pp_nccl_kind kind)
{
	switch (kind) {
	case PP_NCCL_CHANNEL:
	case PP_NCCL_COLLNET:
		return !pp_nccl_span_find(line->message, "/GDRDMA");
	case PP_NCCL_SETTING:
	case PP_NCCL_USING_NETWORK:
	case PP_NCCL_VERSION:
		return true;
	default:
		return false;
	}
}

typedef void handler(struct pp_nccl_said *s);

static handler *handler_of(enum pp_nccl_kind kind)
{
	if (kind == PP_NCCL_OTHER)
		return NULL;
	if (kind == PP_NCCL_VERSION)
		return pp_nccl_gather_version;
	if (kind <= PP_NCCL_COMM_ABORT)
		return pp_nccl_gather_member;
	if (kind == PP_NCCL_WIDTH)
		return pp_nccl_gather_width;
	if (kind == PP_NCCL_PROTOCOL || kind == PP_NCCL_PROTOCOL_NUMBER)
		return pp_nccl_gather_protocol;
	if (kind <= PP_NCCL_NVLINK)
		return pp_nccl_gather_device;
	if (kind == PP_NCCL_CHANNEL || kind == PP_NCCL_COLLNET)
		return pp_nccl_gather_channel;
	if (kind == PP_NCCL_TORN)
		return pp_nccl_gather_torn;
	if (kind == PP_NCCL_RINGS || kind == PP_NCCL_RINGS_GDR)
		return pp_nccl_gather_rings;
	return kind < PP_NCCL_TEST_PARAMETERS ? pp_nccl_gather_error : pp_nccl_gather_bench;
}

bool pp_nccl_job_line(struct pp_nccl_job *job, const char *text, size_t len, uint64_t number)
{
	struct pp_nccl_line line;
	struct pp_nccl_event event;
	struct pp_nccl_said said;
	handler *handle;
	size_t pos = 0;

	job->last_number = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
	while (pp_nccl_line_next(text, len, &pos, &line)) {
		pp_nccl_event_read(&job->formats, &line, &event);
		if (line.level == PP_NCCL_PLAIN && event.kind == PP_NCCL_OTHER)
			continue;
		job->lines++;
		said = (struct pp_nccl_said){job, &line, &event, PP_NCCL_NONE};
		if (line.level != PP_NCCL_PLAIN)
			said.process = process_of(job, &line);
		if (line.has_function)
			pp_nccl_gather_range(job, PP_NCCL_V(2, 30, 0), PP_NCCL_NEWEST);
		if (job->partial && misleads(&line, event.kind)) {
			if (!job->unfinished++)
				job->unfinished_at = pp_nccl_job_here(job);
			continue;
		}
		if (event.kind != PP_NCCL_VERSION)
			pp_nccl_gather_range(job, event.oldest, event.newest);
		handle = handler_of(event.kind);
		if (handle && (said.process != PP_NCCL_NONE || line.level == PP_NCCL_PLAIN))
			handle(&said);
	}
	return job->bench.heads > 0;
}
