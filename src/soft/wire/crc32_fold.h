/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of CRC-32 by carry-less multiplication, with their derivation; for the ways that have
 * such an instruction.
 *
 * A register of 128 bits loaded from memory holds sixteen bytes of the message as a polynomial of
 * degree 127 whose bit i is the coefficient of x^(127-i) (reflected, as the CRC is). Its low half
 * is A, its high half B, each read as a polynomial of degree 63: the value is A x^64 + B.
 *
 * Folding. Bytes that stand D bits before others may be replaced by anything congruent to
 * A x^(64+D) + B x^D modulo P. A carry-less product of two reflected 64-bit words has its bit m at
 * x^(126-m), so a 128-bit register reads it as the product times x; and a 32-bit word r kept in
 * the low half of an operand reads as r(x) x^32. Together x^33 come for free, and the constants
 * are
 *       for A: x^(64+D-33) = x^(D+31) mod P,      for B: x^(D-33) mod P,      reflected, 32 bits.
 *
 * The end. What is left is X = A x^64 + B, and the state is X x^32 mod P.
 *   1. Y = B x^64 + A x^128: B moves to the low half, A is multiplied by x^(128-33) mod P. Y has
 *      its 96 bits at x^127..x^32: read as Z of degree 95 it is Y x^-32 = X x^32. Good.
 *   2. The upper 32 bits C of Z stand at x^64. They are moved down by x^63 mod P (one x comes with
 *      the product), which leaves W of degree 63.
 *   3. Barrett's reduction of W: with H its upper half and mu = floor(x^64 / P), the quotient is
 *      floor(H mu / x^32), and W minus quotient times P is of degree 31. mu and P have 33 bits.
 *
 * tests/unit/test_soft_crc32.c computes each of them from P.
 */
#ifndef SOFT_WIRE_CRC32_FOLD_H
#define SOFT_WIRE_CRC32_FOLD_H

#define SOFT_FOLD_128_A	 0xae689191u /* x^159 */
#define SOFT_FOLD_128_B	 0xccaa009eu /* x^95, and step 1 */
#define SOFT_FOLD_256_A	 0xf1da05aau /* x^287 */
#define SOFT_FOLD_256_B	 0x81256527u /* x^223 */
#define SOFT_FOLD_384_A	 0x3db1ecdcu /* x^415 */
#define SOFT_FOLD_384_B	 0xaf449247u /* x^351 */
#define SOFT_FOLD_512_A	 0x8f352d95u /* x^543 */
#define SOFT_FOLD_512_B	 0x1d9513d7u /* x^479 */
#define SOFT_FOLD_2048_A 0xce3371cbu /* x^2079 */
#define SOFT_FOLD_2048_B 0xe95c1271u /* x^2015 */
#define SOFT_FOLD_32	 0xb8bc6765u /* x^63, step 2 */

/* 33 bits, reflected: bit 0 is x^32. */
#define SOFT_BARRETT_MU 0x1f7011641ull
#define SOFT_BARRETT_P	0x1db710641ull

#endif
