/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family.h - rule files: what the tensors of a model family are and what becomes of them.
 *
 * One text file a family, NAME.family, in the language of xfp-family(5): data only, so that a model
 * is added without a compiler. The first rule whose pattern matches a tensor's name takes it.
 */
#ifndef XFP_FAMILY_H
#define XFP_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "stages/inspect/model_config.h"
#include "stages/inspect/rule.h"

#define XFP_FAMILY_SUFFIX ".family"
#define XFP_FAMILY_GENERAL "general" /* used when no family claims a model */

struct xfp_family {
	char *name;  /* the file's, without its suffix */
	char *about; /* one line, may be NULL */
	char **model_types, **architectures;
	uint32_t model_type_count, architecture_count;
	bool tied; /* what a missing tie_word_embeddings means */
	struct xfp_rule *rules;
	uint32_t rule_count;
};

/* Read a family. A line that is no rule is XFP_BAD_INPUT naming file and line. With `header_only`
 * the rules are left alone. */
enum xfp_status xfp_family_load(const char *path, bool header_only, struct xfp_family **out, struct xfp_error *err);
/* The same from text; `path` gives the name and is for messages. */
enum xfp_status xfp_family_parse(const char *text, const char *path, bool header_only, struct xfp_family **out,
				 struct xfp_error *err);
void xfp_family_free(struct xfp_family *family); /* NULL is fine */

/* *rule is that which takes a tensor of this name, or NULL. `layers` and failure as for xfp_rule_matches. */
enum xfp_status xfp_family_match(const struct xfp_family *family, const char *name, uint64_t layers,
				 const struct xfp_rule **rule, struct xfp_rule_match *match, struct xfp_error *err);

#endif
