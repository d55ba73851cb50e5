/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - what the parameters come to for one unit: how it may be stored, its floor, what is measured.
 *
 * The class says first: its floor and its format (of lm_head: fp8, keep or quant). Then come the overrides, in
 * order; one that matches replaces what the class or an earlier one said, be it the format or the floor.
 *
 * A pattern matches
 *   class:NAME   units of that class
 *   role:GLOB    units whose role matches
 *   GLOB         units whose name, a stack's with * for the expert number, is the pattern or matches it
 * GLOB is that of base/text/glob.h: * for any characters, dots too, ? for one, [...] for one of a set.
 *
 * A word embedding is a unit where the family's rules say so, and is kept as a whole where its format is keep. Where
 * it is the output head as well, it is one unit that obeys the settings of both: its role is XFP_ROLE_TIED, patterns
 * match it by what either alone would be called, it is stored as whichever asks for more (keep, then fp8, then bits
 * that were asked for), and its floor is the stricter one.
 *
 * Matrices that the rules of a family keep (positions, routers, towers) have no unit. They get one, whose role
 * is the name of the class, where --format or a class: override asks something else of the class, one of those in
 * xfp_policy_extends, or an override gives the tensor's full name. A glob alone does not reach them, so that
 * "model.layers.3.*=4" leaves the layer's router alone. With keep_embeddings all embeddings are such matrices, also
 * those that are output heads.
 */
#ifndef XFP_POLICY_H
#define XFP_POLICY_H

#include "schemas/ledger.h"
#include "schemas/parameters.h"

/* Of a unit of class embedding. Its head, where it has no name of its own, is called as most are. */
#define XFP_ROLE_TIED "tied"
#define XFP_HEAD_NAME "lm_head.weight"

/* What said something of a unit: the number of an override, or */
#define XFP_BY_DEFAULT (-1)
#define XFP_BY_CLASS (-2) /* --format CLASS= */
#define XFP_BY_HEAD (-3)  /* --lm-head, of a tied unit */

struct xfp_policy {
	struct xfp_format format; /* of AUTO, too, `bits` is what may be chosen; 0 for KEEP and FP8 */
	bool fixed;               /* to one number of bits */
	uint32_t floor;           /* billionths; 0 for KEEP and FP8, which have none */
	uint32_t measured;        /* bits that fits measure: the parameters', and what else is allowed */
	uint32_t rounds;          /* of Lloyd's iteration, where the class has its own; 0: as the parameters say */
	int32_t format_by, floor_by;
	enum xfp_class by_class; /* whose format it is where that is BY_CLASS */
	/* What a goal was solved to, which then decides instead of the floor; borrowed. NULL: none. */
	const struct xfp_assignment *assigned;
};

struct xfp_policy xfp_policy_of(const struct xfp_parameters *parameters, const char *name, const char *role,
				enum xfp_class class_);
struct xfp_policy xfp_policy_of_unit(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit);

/* The parameters as one unit's fits see them: `bits` are those that are measured, `lloyd_iterations` its own. Overrides
 * stay those of `parameters`; nothing is to be freed. */
struct xfp_parameters xfp_policy_parameters(const struct xfp_parameters *parameters, const struct xfp_policy *policy);

/* What the pipeline does with a unit. */
enum xfp_plan xfp_policy_plan(const struct xfp_policy *policy);

/* Whether a matrix of this name and class, which the family's rules keep, becomes a unit all the same. */
bool xfp_policy_takes(const struct xfp_parameters *parameters, const char *name, enum xfp_class class_);
/* Classes whose kept matrices --format reaches. */
bool xfp_policy_extends(const struct xfp_parameters *parameters, enum xfp_class class_);

/* Whether the override speaks of such a unit; of a tied one, of either of the two things that it is. */
bool xfp_override_matches(const struct xfp_override *override, const char *name, const char *role,
			  enum xfp_class class_);

/* "--override 'X=4'" or "--format attention=4": what decided the format (the floor) of a unit; NULL where
 * nothing but the defaults, floors of classes or --lm-head of the head itself did. The caller frees it. */
char *xfp_policy_format_by(const struct xfp_parameters *parameters, const struct xfp_policy *policy);
char *xfp_policy_floor_by(const struct xfp_parameters *parameters, const struct xfp_policy *policy);

/* How many experts of a stack of that many decide (0: all), and which is the `i`th of them. */
uint32_t xfp_sample_experts(const struct xfp_moe_sample *sample, uint32_t experts);
uint32_t xfp_sample_expert(const struct xfp_moe_sample *sample, uint32_t experts, uint32_t i);

/* Whether every override says something of some unit or tensor and every format can be had: XFP_USAGE names
 * the first that does not, with the nearest names or with what is possible. */
enum xfp_status xfp_policy_check(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger,
				 struct xfp_error *err);

/* Whether there is an output head, or a tied unit, that `asked`, an option as in messages, can be about. XFP_USAGE says
 * what it is tied to where there is none. Profiles ask of every model, so that only what was given by hand is held to
 * this. */
enum xfp_status xfp_policy_check_head(const struct xfp_ledger *ledger, const char *asked, struct xfp_error *err);

#endif
