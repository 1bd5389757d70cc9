/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private versions. The dynamic loader refuses libmlx5 and libefa, and with them perftest, UCX
 * and pyverbs, unless the node that they were linked against is here. They serve kernel devices;
 * none is ever opened here, so that nearly everything answers ENOSYS.
 *
 * Answers ignore the arguments of the functions that they stand for, which the calling convention
 * of every supported machine allows.
 */
#include "soft/abi/private.h"

#include <errno.h>
#include <stdbool.h>

#include "soft/abi/text.h"
#include "base/banned.h"

#pragma GCC visibility push(default)

int soft_private_number(void);
int soft_private_minus(void);
unsigned int soft_private_zero(void);
void *soft_private_pointer(void);
void soft_private_nothing(void);
int soft_private_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			  int *type);
const char *soft_private_opcode_text(enum ibv_wr_opcode opcode);
extern bool soft_private_flag;

#pragma GCC visibility pop

int soft_private_number(void)
{
	errno = ENOSYS;
	return ENOSYS;
}

int soft_private_minus(void)
{
	errno = ENOSYS;
	return -1;
}

unsigned int soft_private_zero(void)
{
	return 0;
}

void *soft_private_pointer(void)
{
	errno = ENOSYS;
	return NULL;
}

/* Also what providers' constructors call to register themselves, and their log: this library prints
 * nothing. */
void soft_private_nothing(void)
{
}

int soft_private_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			  int *type)
{
	return soft_query_gid_type(context, port_num, index, type);
}

const char *soft_private_opcode_text(enum ibv_wr_opcode opcode)
{
	return soft_wr_opcode_text(opcode);
}

bool soft_private_flag;

/* One name, one version: an alias of its own for the assembler to name. */
#define VERSION(name, answer, n, sign)                                  \
	extern __typeof__(answer) soft_private_##name##_##n             \
		__attribute__((alias(#answer), visibility("default"))); \
	__asm__(".symver soft_private_" #name "_" #n "," #name sign "IBVERBS_PRIVATE_" #n);

#define FROM_64(name, answer) VERSION(name, answer, 64, "@") VERSION(name, answer, 65, "@@")
#define FROM_59(name, answer) VERSION(name, answer, 59, "@") FROM_64(name, answer)
#define FROM_57(name, answer) VERSION(name, answer, 57, "@") FROM_59(name, answer)
#define ALL(name, answer)     VERSION(name, answer, 34, "@") FROM_57(name, answer)
#define ONLY_65(name, answer) VERSION(name, answer, 65, "@@")
#define ONLY_34(name, answer) VERSION(name, answer, 34, "@@")

#include "soft/abi/private.def"
ALL(verbs_allow_disassociate_destroy, soft_private_flag)

VERSION(verbs_register_driver_34, soft_private_nothing, 34, "@@")
VERSION(verbs_register_driver_57, soft_private_nothing, 57, "@@")
VERSION(verbs_register_driver_59, soft_private_nothing, 59, "@@")
VERSION(verbs_register_driver_64, soft_private_nothing, 64, "@@")
VERSION(verbs_register_driver_65, soft_private_nothing, 65, "@@")
