/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - derive the settings of one unit from the parameters: its format, its floor, what is measured.
 *
 * The class supplies the default floor and format (for lm_head: fp8, keep or quant). The overrides follow in order; one
 * that matches replaces the format or the floor of the class or of an earlier override.
 *
 * A pattern matches
 *   class:NAME   units of that class
 *   role:GLOB    units whose role matches
 *   GLOB         units whose name, with * for the expert number of a stack, is the pattern or matches it
 * GLOB is that of base/text/glob.h: * for any characters, including dots, ? for one, [...] for one of a set.
 *
 * A word embedding is a unit if the family's rules make it one, and is kept as a whole if its format is keep. If it is
 * also the output head, it is one unit with the settings of both: its role is XFP_ROLE_TIED, patterns match it under
 * the name and role of either, its format is the one of higher rank (keep, then fp8, then explicit bits), and its floor
 * is the stricter one.
 *
 * Matrices that the rules of a family keep (positions, routers, towers) have no unit. They become units, whose role is
 * the name of the class, if --format or a class: override changes the format of the class, one of those in
 * xfp_policy_extends, or if an override gives the tensor's full name. A glob alone does not apply to them, so that
 * "model.layers.3.*=4" leaves the layer's router unchanged. With keep_embeddings, all embeddings are such matrices,
 * including output heads.
 */
#ifndef XFP_POLICY_H
#define XFP_POLICY_H

#include "schemas/ledger.h"
#include "schemas/parameters.h"

/* Role of a tied unit, which has class embedding; and the usual name of its head, if that has no name of its own. */
#define XFP_ROLE_TIED "tied"
#define XFP_HEAD_NAME "lm_head.weight"

/* The origin of a setting of a unit: the number of an override, or */
#define XFP_BY_DEFAULT (-1)
#define XFP_BY_CLASS (-2) /* --format CLASS= */
#define XFP_BY_HEAD (-3)  /* --lm-head, of a tied unit */

struct xfp_policy {
	struct xfp_format format; /* for AUTO, too, `bits` are the allowed bits; 0 for KEEP and FP8 */
	bool fixed;               /* a single number of bits is prescribed */
	uint32_t floor;           /* billionths; 0 for KEEP and FP8, which have none */
	uint32_t measured;        /* bits that fits measure: those of the parameters, and others allowed */
	uint32_t rounds;          /* Lloyd rounds, if the class has its own; 0: those of the parameters */
	int32_t format_by, floor_by;
	enum xfp_class by_class; /* the class whose format applies, for BY_CLASS */
	/* The solution of a size goal, which replaces the floor; borrowed. NULL: none. */
	const struct xfp_assignment *assigned;
};

struct xfp_policy xfp_policy_of(const struct xfp_parameters *parameters, const char *name, const char *role,
				enum xfp_class class_);
struct xfp_policy xfp_policy_of_unit(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit);

/* The parameters for one unit's fits: `bits` are the measured ones, `lloyd_iterations` its own. Overrides are borrowed
 * from `parameters`; the result must not be freed. */
struct xfp_parameters xfp_policy_parameters(const struct xfp_parameters *parameters, const struct xfp_policy *policy);

/* How the pipeline processes a unit. */
enum xfp_plan xfp_policy_plan(const struct xfp_policy *policy);

/* Whether a matrix of this name and class becomes a unit although the family's rules keep it. */
bool xfp_policy_quantizes(const struct xfp_parameters *parameters, const char *name, enum xfp_class class_);
/* Classes whose kept matrices --format applies to. */
bool xfp_policy_extends(const struct xfp_parameters *parameters, enum xfp_class class_);

/* Whether the override applies to a unit; for a tied one, to either of its two roles. */
bool xfp_override_matches(const struct xfp_override *override, const char *name, const char *role,
			  enum xfp_class class_);

/* The setting that determined the format (or floor) of a unit: "--override 'X=4'" or "--format attention=4". NULL if
 * only defaults, floors of classes or --lm-head for the head itself apply. The caller frees it. */
char *xfp_policy_format_by(const struct xfp_parameters *parameters, const struct xfp_policy *policy);
char *xfp_policy_floor_by(const struct xfp_parameters *parameters, const struct xfp_policy *policy);

/* The number of experts of a stack that decide (0: all), and the number of the `i`th of them. */
uint32_t xfp_sample_experts(const struct xfp_moe_sample *sample, uint32_t experts);
uint32_t xfp_sample_expert(const struct xfp_moe_sample *sample, uint32_t experts, uint32_t i);

/* Check that every override applies to some unit or tensor and that every format is possible. XFP_USAGE: the message
 * names the first that does not or is not, with the nearest names or the possible formats. */
enum xfp_status xfp_policy_check(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger,
				 struct xfp_error *err);

/* Check that the model has an output head, or a tied unit, for the option `asked` (named as in messages). XFP_USAGE: it
 * has none; the message names the tensor that it is tied to. Profiles are for all models, so only options given by the
 * user are checked. */
enum xfp_status xfp_policy_check_head(const struct xfp_ledger *ledger, const char *asked, struct xfp_error *err);

#endif
