/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which packets: words for kinds of them, and the names of opcodes without their transport
 * ("write_first" is that of RC and of UC).
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "soft/fault/value.h"
#include "soft/wire/opcode.h"
#include "soft/wire/packet.h"
#include "base/banned.h"

enum { OPCODES = 256, ALL_ACKS = SOFT_FAULT_ACK | SOFT_FAULT_RNR | SOFT_FAULT_NAK };

static bool has(const struct soft_fault_which *w, unsigned int opcode)
{
	return w->opcodes[opcode / 64] >> opcode % 64 & 1;
}

bool soft_fault_which_is(const struct soft_fault_which *w, uint8_t opcode, uint8_t syndrome)
{
	uint8_t kind;

	if (!has(w, opcode))
		return false;
	if (opcode != (SOFT_RC | SOFT_ACKNOWLEDGE))
		return true;
	kind = (syndrome & 0xe0) == 0		    ? SOFT_FAULT_ACK
	       : (syndrome & 0xe0) == SOFT_AETH_RNR ? SOFT_FAULT_RNR
						    : SOFT_FAULT_NAK;
	return w->acks & kind;
}

static void add(struct soft_fault_which *w, unsigned int opcode)
{
	w->opcodes[opcode / 64] |= UINT64_C(1) << opcode % 64;
}

/* By what an opcode carries: all of @with, none of @without. */
static const struct {
	const char *name;
	uint16_t with, without;
	uint8_t acks;
} kinds[] = {
	{"any", 0, 0, ALL_ACKS},
	{"request", 0, SOFT_IS_RESPONSE, 0},
	{"response", SOFT_IS_RESPONSE, 0, ALL_ACKS},
	{"send", SOFT_IS_SEND, 0, 0},
	{"write", SOFT_IS_WRITE, 0, 0},
	{"read", SOFT_IS_READ, SOFT_IS_RESPONSE, 0},
	{"read_response", SOFT_IS_READ | SOFT_IS_RESPONSE, 0, 0},
	{"atomic", SOFT_HAS_ATOMIC, 0, 0},
	{"first", SOFT_IS_FIRST, SOFT_IS_LAST, 0},
	{"middle", SOFT_HAS_PAYLOAD, SOFT_IS_FIRST | SOFT_IS_LAST, 0},
	{"last", SOFT_IS_LAST, SOFT_IS_FIRST, 0},
	{"only", SOFT_IS_FIRST | SOFT_IS_LAST, SOFT_IS_RESPONSE, 0},
};

static const struct {
	const char *name;
	uint8_t acks;
} acknowledges[] = {{"ack", SOFT_FAULT_ACK}, {"nak", SOFT_FAULT_NAK}, {"rnr", SOFT_FAULT_RNR}};

static bool add_kind(const char *word, struct soft_fault_which *w)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(acknowledges); i++) {
		if (strcmp(acknowledges[i].name, word) != 0)
			continue;
		add(w, SOFT_RC | SOFT_ACKNOWLEDGE);
		w->acks |= acknowledges[i].acks;
		return true;
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].name, word) != 0)
			continue;
		for (unsigned int op = 0; op < OPCODES; op++) {
			const struct soft_opcode *o = soft_opcode_find((uint8_t)op);

			if (o->name && (o->flags & kinds[i].with) == kinds[i].with &&
			    !(o->flags & kinds[i].without))
				add(w, op);
		}
		w->acks |= kinds[i].acks;
		return true;
	}
	return false;
}

static bool add_opcode(const char *word, struct soft_fault_which *w)
{
	bool any = false;

	for (unsigned int op = 0; op < OPCODES; op++) {
		const char *name = soft_opcode_find((uint8_t)op)->name;

		if (!name)
			continue;
		/* "RC_SEND_ONLY", "send_only", "cnp" */
		if (strcasecmp(name, word) != 0 && (op == SOFT_CNP || strcasecmp(name + 3, word)))
			continue;
		add(w, op);
		any = true;
		if (op == (SOFT_RC | SOFT_ACKNOWLEDGE))
			w->acks = ALL_ACKS;
	}
	return any;
}

int soft_fault_which_parse(char *text, struct soft_fault_which *ret)
{
	struct soft_fault_which which = {0};
	char *word;

	if (!*text && add_kind("any", &which)) {
		*ret = which;
		return 0;
	}
	while ((word = strsep(&text, "|")))
		if (!add_kind(word, &which) && !add_opcode(word, &which))
			return -EINVAL;
	*ret = which;
	return 0;
}
