/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static rates: InfiniBand's numbers, multiples of 2.5 Gb/s, and Mb/s on the wire.
 */
#include "soft/abi/export.h"

#include "base/compiler.h"
#include "base/banned.h"

static const struct {
	int rate; /* enum ibv_rate */
	int mult; /* 0: rdma-core has none */
	int mbps;
} rates[] = {
	{2, 1, 2500},	   {5, 2, 5000},      {3, 4, 10000},	  {6, 8, 20000},
	{4, 12, 30000},	   {7, 16, 40000},    {8, 24, 60000},	  {9, 32, 80000},
	{10, 48, 120000},  {11, 0, 14062},    {12, 0, 56250},	  {13, 0, 112500},
	{14, 0, 168750},   {15, 0, 25781},    {16, 0, 103125},	  {17, 0, 206250},
	{18, 0, 309375},   {19, 11, 28125},   {20, 20, 53125},	  {21, 160, 425000},
	{22, 240, 637500}, {23, 320, 850000}, {24, 480, 1275000},
};

int ibv_rate_to_mult(int rate)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(rates); i++)
		if (rates[i].rate == rate && rates[i].mult)
			return rates[i].mult;
	return -1;
}

int mult_to_ibv_rate(int mult)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(rates); i++)
		if (rates[i].mult == mult && mult)
			return rates[i].rate;
	return 0;
}

int ibv_rate_to_mbps(int rate)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(rates); i++)
		if (rates[i].rate == rate)
			return rates[i].mbps;
	return -1;
}

int mbps_to_ibv_rate(int mbps)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(rates); i++)
		if (rates[i].mbps == mbps)
			return rates[i].rate;
	return 0;
}
