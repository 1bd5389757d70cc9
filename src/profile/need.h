/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a profile needs of the software, against the facts of a node.
 */
#ifndef PP_PROFILE_NEED_H
#define PP_PROFILE_NEED_H

#include "profile/profile.h"

struct pp_need {
	const struct pp_profile_need *need; /* borrowed */
	const struct pp_object *of;	    /* borrowed; NULL: there is no such object */
	const struct pp_fact *seen;	    /* NULL: not observed */
	enum pp_truth state;
};

enum { PP_NEEDS = 1024 };

/*
 * One row for each need and object of its kind, where there is none a row that is open. Returns
 * their number, at most PP_NEEDS.
 */
unsigned int pp_need_test(const struct pp_profile *p, const struct pp_facts *facts,
			  struct pp_need ret[PP_NEEDS]);
enum pp_verdict pp_need_verdict(enum pp_truth state);

#endif
