/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel copies in any order it likes within a page, but the end of a message may be polled
 * (copy/place.h): so the last bytes are read beside it, and placed when all others are there.
 */
#include "soft/lane/pull.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "soft/copy/place.h"
#include "soft/copy/shelf.h"

#include "base/banned.h"

enum { LAST_BYTES = 15 }; /* the last whole aligned 8 bytes and what is behind them */

/* Where [offset, offset + len) of the payload lies; returns how many pieces, 0: it has not so much.
 */
static unsigned int find(const struct soft_record_read *r, uint32_t offset, size_t len,
			 struct iovec *ret)
{
	uint64_t skip = offset, left = len;
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->record.num_pieces && left; i++) {
		const struct soft_record_piece *piece = &r->pieces[i];
		uint64_t part;

		if (skip >= piece->len) {
			skip -= piece->len;
			continue;
		}
		part = piece->len - skip < left ? piece->len - skip : left;
		ret[n++] = (struct iovec){(void *)(uintptr_t)(piece->addr + skip), part};
		skip = 0;
		left -= part;
	}
	return left ? 0 : n;
}

/* The piece that byte @offset lies in, and how far; NULL: none. */
static const struct soft_record_piece *piece_at(const struct soft_record_read *r, uint32_t *offset)
{
	for (unsigned int i = 0; i < r->record.num_pieces; i++) {
		if (*offset < r->pieces[i].len)
			return &r->pieces[i];
		*offset -= r->pieces[i].len;
	}
	return NULL;
}

/* From the sender's shelf, where all of it lies in one piece there. false: not there, or not now.
 */
static bool fetch_seen(struct soft_pull *pull, uint32_t offset, uint8_t *to, size_t len)
{
	const struct soft_record_piece *piece = piece_at(pull->record, &offset);
	size_t last = len < LAST_BYTES ? len : 8 + ((uintptr_t)to + len) % 8;
	uint8_t end[LAST_BYTES + 1];
	struct soft_loan loan;

	if (!pull->view || !piece || len > piece->len - offset ||
	    !soft_shelf_see(pull->view, piece->addr, piece->generation, offset, (uint32_t)len,
			    &loan))
		return false;
	memcpy(to, loan.at, len - last);
	memcpy(end, loan.at + len - last, last);
	if (!soft_loan_good(&loan))
		return false;
	soft_copy_place(to + len - last, end, last);
	pull->mapped++;
	pull->mapped_bytes += len;
	return true;
}

static int fetch(struct soft_source *source, uint32_t offset, void *to, size_t len)
{
	struct soft_pull *pull = (struct soft_pull *)source;
	const struct soft_record *r = &pull->record->record;
	struct iovec remote[SOFT_RECORD_PIECES_MAX + 1];
	unsigned int n = find(pull->record, offset, len, remote);
	size_t last = len < LAST_BYTES ? len : 8 + ((uintptr_t)to + len) % 8;
	uint8_t end[LAST_BYTES + 1];
	uint64_t token = 0;
	struct iovec local[] = {{to, len - last}, {end, last}, {&token, sizeof(token)}};
	ssize_t got;

	if (!n || source->far)
		return -EPROTO;
	if (fetch_seen(pull, offset, to, len))
		return 0;
	remote[n++] = (struct iovec){(void *)(uintptr_t)r->token_at, sizeof(token)};
	/* Not through libc: a sanitizer of the client's would note the write, and not the queue by
	 * which the client hears of it. */
	got = syscall(SYS_process_vm_readv, pull->pid, local, 3UL, remote, (unsigned long)n, 0UL);
	pull->pulls++;
	if (got != (ssize_t)(len + sizeof(token)) || token != r->token) {
		int error = got < 0				   ? errno
			    : got < (ssize_t)(len + sizeof(token)) ? EFAULT
								   : ESTALE;

		if (!pull->error)
			pull->error = error;
		return -ESTALE;
	}
	soft_copy_place((uint8_t *)to + len - last, end, last);
	pull->bytes += len;
	return 0;
}

/* All of @len bytes of a sender's GPU, or none. */
static uint32_t lend_far(struct soft_pull *pull, uint32_t offset, uint32_t len,
			 const struct soft_copier *copier, struct soft_loan *ret)
{
	const struct soft_record_piece *piece = &pull->record->pieces[0];
	const struct soft_direct direct = {
		.export = piece->export,
		.unit = piece->unit,
		.generation = piece->generation,
		.offset = piece->addr,
	};
	uint32_t end;
	int rc = -ENOENT;

	if (pull->view && !__builtin_add_overflow(offset, len, &end) && end <= piece->len)
		rc = soft_import_lend(pull->view, &direct, offset, len, copier, ret);
	if (rc) {
		/* What was taken back is lost, as on the wire; all else would fail again. */
		pull->loan_error = rc == -ESTALE ? pull->loan_error : -rc;
		pull->lost = true;
		return 0;
	}
	pull->direct++;
	pull->direct_bytes += len;
	return len;
}

static uint32_t lend(struct soft_source *source, uint32_t offset, uint32_t len,
		     struct soft_copier *copier, struct soft_loan *ret)
{
	struct soft_pull *pull = (struct soft_pull *)source;
	uint32_t asked = offset, part;
	const struct soft_record_piece *piece = piece_at(pull->record, &offset);

	if (source->far)
		return lend_far(pull, asked, len, copier, ret);
	if (!pull->view || !piece)
		return 0;
	part = piece->len - offset < len ? piece->len - offset : len;
	/* Of a piece all units are of one parcel, given back together. */
	if (!soft_shelf_lend(pull->view, piece->addr, piece->generation, offset, part, copier, ret))
		return 0;
	pull->lent++;
	pull->lent_bytes += part;
	return part;
}

void soft_pull_init(struct soft_pull *pull, pid_t pid, struct soft_shelf_view *view,
		    const struct soft_record_read *record)
{
	memset(pull, 0, sizeof(*pull));
	pull->source.fetch = fetch;
	pull->source.lend = lend;
	pull->source.far = record->pieces[0].export != 0;
	pull->view = view;
	pull->pid = pid;
	pull->record = record;
}

int soft_pull_try(pid_t pid, uint64_t token_at, uint64_t token)
{
	uint64_t found = 0;
	struct iovec local = {&found, sizeof(found)};
	struct iovec remote = {(void *)(uintptr_t)token_at, sizeof(found)};

	if (pid <= 0)
		return ESRCH;
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != sizeof(found))
		return errno ? errno : EFAULT;
	return found == token ? 0 : ESRCH;
}
