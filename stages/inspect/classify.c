/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/classify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/suffix.h"
#include "checkpoints/equal.h"
#include "schemas/policy.h"
#include "schemas/recipe/recipe.h"
#include "stages/inspect/projection.h"
#include "stages/inspect/units.h"

#define WORTH_TELLING 65536 /* weights of a tensor above which keeping a possible projection is reported */

/* One run: input and results. */
struct run {
	const struct xfp_checkpoint *checkpoint;
	struct xfp_model_config *config;
	const struct xfp_family *family;
	const struct xfp_parameters *policy;
	const struct xfp_rule **rules; /* [tensors] the rule that matches each tensor; NULL: none */
	struct xfp_rule_match *matches;
	struct xfp_rule matrix_rules[XFP_CLASSES];      /* rules for matrices quantized only because of the policy, */
	struct xfp_rule_part matrix_parts[XFP_CLASSES]; /* and the parts that they point to */
	uint32_t layout;                                /* the alternative layout of fused tensors */
	uint32_t tied; /* the word embedding that is also the output head; UINT32_MAX: none */
	struct xfp_claim *claims;
	uint32_t claim_count, claim_capacity;
	struct xfp_ledger *ledger;
	struct xfp_findings *findings;
	struct xfp_error *err;
};

static uint64_t weights_of(const struct xfp_source_tensor *tensor)
{
	return tensor->bytes * 8 / xfp_dtype_bits(tensor->dtype);
}

/* ---- the ledger's tables ---------------------------------------------------------------------- */

static enum xfp_status copy_tables(const struct run *run)
{
	const struct xfp_checkpoint *from = run->checkpoint;
	struct xfp_ledger *to = run->ledger;

	to->model = strdup(from->folder);
	to->family = strdup(run->family->name);
	to->format = strdup(from->format);
	to->packed = strdup(from->packed ? from->packed : "");
	to->files = calloc((size_t)from->file_count + 1, sizeof *to->files);
	to->tensors = calloc((size_t)from->tensor_count + 1, sizeof *to->tensors);
	to->extras = calloc((size_t)from->extra_count + 1, sizeof *to->extras);
	to->synthesized = calloc((size_t)from->extra_count + 1, sizeof *to->synthesized);
	if (!to->model || !to->family || !to->format || !to->packed || !to->files || !to->tensors || !to->extras ||
	    !to->synthesized)
		return xfp_no_memory(run->err);
	for (; to->file_count < from->file_count; to->file_count++) {
		const struct xfp_source_file *f = &from->files[to->file_count];
		struct xfp_source_file *copy = &to->files[to->file_count];

		copy->identity = f->identity;
		copy->name = strdup(f->name);
		copy->path = strdup(f->path);
		if (!copy->name || !copy->path) {
			to->file_count++;
			return xfp_no_memory(run->err);
		}
	}
	for (; to->tensor_count < from->tensor_count; to->tensor_count++) {
		const struct xfp_source_tensor *t = &from->tensors[to->tensor_count];
		struct xfp_ledger_tensor *copy = &to->tensors[to->tensor_count];

		*copy = (struct xfp_ledger_tensor){
			.dtype = t->dtype,
			.class_ = XFP_CLASS_OTHER,
			.fate = XFP_FATE_KEPT,
			.rank = t->rank,
			.file = t->file,
			.offset = t->offset,
			.bytes = t->bytes,
			.tied = UINT32_MAX,
		};
		memcpy(copy->shape, t->shape, t->rank * sizeof *t->shape);
		copy->name = strdup(t->name);
		copy->recipe = t->recipe ? xfp_recipe_copy(t->recipe) : NULL;
		if (!copy->name || (t->recipe && !copy->recipe)) {
			to->tensor_count++;
			return xfp_no_memory(run->err);
		}
	}
	for (; to->extra_count < from->extra_count; to->extra_count++)
		if (!(to->extras[to->extra_count] = strdup(from->extras[to->extra_count])))
			return xfp_no_memory(run->err);
	return XFP_OK;
}

static enum xfp_status decide(const struct run *run, uint32_t t, enum xfp_class class, enum xfp_fate fate,
			      const char *format, ...) XFP_PRINTF(5, 6);

static enum xfp_status decide(const struct run *run, uint32_t t, enum xfp_class class, enum xfp_fate fate,
			      const char *format, ...)
{
	struct xfp_ledger_tensor *tensor = &run->ledger->tensors[t];
	va_list args;

	tensor->class_ = class;
	tensor->fate = fate;
	va_start(args, format);
	if (vasprintf(&tensor->reason, format, args) < 0)
		tensor->reason = NULL;
	va_end(args);
	return tensor->reason ? XFP_OK : xfp_no_memory(run->err);
}

/* ---- decisions about the whole checkpoint ------------------------------------------------------ */

static enum xfp_status match_all(const struct run *run)
{
	enum xfp_status status = XFP_OK;
	uint64_t layers = UINT64_MAX;

	xfp_model_config_number(run->config, "num_hidden_layers", &layers);
	for (uint32_t t = 0; !status && t < run->checkpoint->tensor_count; t++) {
		status = xfp_family_match(run->family, run->checkpoint->tensors[t].name, layers, &run->rules[t],
					  &run->matches[t], run->err);
		if (run->rules[t])
			run->findings->taken[run->rules[t] - run->family->rules]++;
	}
	return status;
}

/* Without config.json, the embedding gives the model's width. */
static enum xfp_status assume_width(const struct run *run)
{
	uint64_t width;

	if (xfp_model_config_number(run->config, "hidden_size", &width))
		return XFP_OK;
	for (uint32_t t = 0; t < run->checkpoint->tensor_count; t++) {
		const struct xfp_source_tensor *tensor = &run->checkpoint->tensors[t];

		if (!run->rules[t] || run->rules[t]->class_ != XFP_CLASS_EMBEDDING || tensor->rank != 2)
			continue;
		if (!xfp_model_config_assume(run->config, "hidden_size", tensor->shape[1]))
			return xfp_no_memory(run->err);
		/* The missing config.json has a warning of its own. */
		if (!xfp_model_config_present(run->config))
			return XFP_OK;
		return xfp_notes_add(&run->findings->notes, false, run->err,
				     "config.json gives no hidden_size; %" PRIu64 " is taken from the shape of %s",
				     tensor->shape[1], xfp_printable(tensor->name).text);
	}
	return XFP_OK;
}

/* All fused tensors have the same layout, since a checkpoint is written by one program. */
static enum xfp_status choose_layout(struct run *run)
{
	const struct xfp_source_tensor *witness = NULL;
	const struct xfp_rule *rule = NULL;
	uint32_t possible = UINT32_MAX;

	for (uint32_t t = 0; t < run->checkpoint->tensor_count; t++) {
		const struct xfp_source_tensor *tensor = &run->checkpoint->tensors[t];
		uint32_t fit;

		if (!run->rules[t] || run->rules[t]->layout_count < 2 || !tensor->bytes)
			continue;
		if (!(fit = xfp_projection_fit(run->rules[t], tensor, run->config)))
			continue;
		if (!(possible & fit))
			return xfp_fail(run->err, XFP_BAD_INPUT,
					"%s and %s are stored in different orientations; one of "
					"them is damaged",
					xfp_printable(witness->name).text, xfp_printable(tensor->name).text);
		if ((possible & fit) != possible)
			witness = tensor;
		possible &= fit;
		rule = run->rules[t];
	}
	run->layout = rule ? (uint32_t)__builtin_ctz(possible) : 0;
	if (rule && possible & (possible - 1))
		return xfp_notes_add(&run->findings->notes, true, run->err,
				     "the orientation of fused experts is ambiguous from "
				     "their shapes; using the first one in %s.family",
				     run->family->name);
	return XFP_OK;
}

/* ---- embedding and lm_head -------------------------------------------------------------------- */

/* Find the embedding that a stored lm_head equals; UINT32_MAX: none. */
static enum xfp_status find_tied(const struct run *run, uint32_t head, uint32_t *tied)
{
	const struct xfp_source_tensor *h = &run->checkpoint->tensors[head];
	enum xfp_status status;

	*tied = UINT32_MAX;
	for (uint32_t t = 0; t < run->checkpoint->tensor_count; t++) {
		const struct xfp_source_tensor *e = &run->checkpoint->tensors[t];
		bool same = false;

		if (!run->rules[t] || run->rules[t]->class_ != XFP_CLASS_EMBEDDING || e->dtype != h->dtype ||
		    e->rank != h->rank || memcmp(e->shape, h->shape, h->rank * sizeof *h->shape))
			continue;
		if ((status = xfp_source_tensors_equal(run->checkpoint, h, e, &same, run->err)))
			return status;
		if (same) {
			*tied = t;
			return XFP_OK;
		}
	}
	return xfp_notes_add_tensor(
		&run->findings->notes, true, h->name, weights_of(h),
		"config.json ties it to the "
		"embedding, but it equals none in the checkpoint; it is treated as a separate matrix",
		run->err);
}

/* Whether the rules make this word embedding a unit. */
static bool is_word_embedding(const struct run *run, uint32_t t)
{
	const struct xfp_rule *rule = run->rules[t];

	return rule && rule->action == XFP_RULE_QUANTIZE && rule->class_ == XFP_CLASS_EMBEDDING;
}

/* Whether the architecture ends at the last hidden state: BertModel, but not GPT2LMHeadModel. */
static bool is_headless(const struct xfp_model_config *config)
{
	const char *name = xfp_model_config_architecture(config, 0);

	return name && xfp_ends_with(name, "Model") && !strstr(name, "LMHead");
}

/* Find stored heads and the matrices that they equal. Without a stored head, the largest word embedding is the head. */
static enum xfp_status find_ties(struct run *run)
{
	uint32_t largest = UINT32_MAX, heads = 0;
	enum xfp_status status = XFP_OK;

	run->tied = UINT32_MAX;
	if (!xfp_model_config_bool(run->config, "tie_word_embeddings", run->family->tied))
		return XFP_OK;
	for (uint32_t t = 0; !status && t < run->checkpoint->tensor_count; t++) {
		const struct xfp_rule *rule = run->rules[t];
		uint32_t *tied = &run->ledger->tensors[t].tied;

		if (is_word_embedding(run, t) &&
		    (largest == UINT32_MAX ||
		     run->checkpoint->tensors[t].bytes > run->checkpoint->tensors[largest].bytes))
			largest = t;
		if (!rule || rule->action != XFP_RULE_QUANTIZE || rule->class_ != XFP_CLASS_LM_HEAD)
			continue;
		heads++;
		status = find_tied(run, t, tied);
		if (!status && *tied != UINT32_MAX && is_word_embedding(run, *tied))
			run->tied = *tied;
	}
	if (!heads && !is_headless(run->config))
		run->tied = largest;
	/* A head that is not stored separately then has no settings. */
	if (run->policy->keep_embeddings)
		run->tied = UINT32_MAX;
	return status;
}

/* ---- single tensors --------------------------------------------------------------------------- */

static enum xfp_status claim(struct run *run, uint32_t t, uint32_t part, bool fault)
{
	const struct xfp_source_tensor *tensor = &run->checkpoint->tensors[t];
	const struct xfp_rule_match *match = &run->matches[t];
	const struct xfp_rule *rule = run->rules[t];
	bool numbered = match->expert_end > match->expert_at;
	struct xfp_policy policy;
	struct xfp_claim *to;

	if (run->claim_count == run->claim_capacity) {
		uint32_t capacity = run->claim_capacity ? 2 * run->claim_capacity : 256;

		to = realloc(run->claims, capacity * sizeof *to);
		if (!to)
			return xfp_no_memory(run->err);
		run->claims = to;
		run->claim_capacity = capacity;
	}
	to = &run->claims[run->claim_count];
	*to = (struct xfp_claim){
		.tensor = t,
		.part = part,
		.layer = match->layer,
		.class_ = rule->class_,
		.role = t == run->tied ? XFP_ROLE_TIED : rule->parts[part].role,
		.numbered = numbered,
		.expert = match->expert,
		.fault = fault,
	};
	if (!fault)
		to->projection =
			xfp_projection_read(rule, rule->layout_count > 1 ? run->layout : 0, part, tensor, run->config);
	if (numbered)
		to->unit =
			xfp_formatted("%.*s*%s", (int)match->expert_at, tensor->name, tensor->name + match->expert_end);
	else
		to->unit = strdup(tensor->name);
	if (!to->unit)
		return xfp_no_memory(run->err);
	policy = xfp_policy_of(run->policy, to->unit, to->role, to->class_);
	to->plan = xfp_policy_plan(&policy);
	run->claim_count++;
	return XFP_OK;
}

static enum xfp_status decide_projection(struct run *run, uint32_t t)
{
	const struct xfp_source_tensor *tensor = &run->checkpoint->tensors[t];
	const struct xfp_rule *rule = run->rules[t];
	const char *class = xfp_class_name(rule->class_);
	enum xfp_status status = XFP_OK;
	enum xfp_projection_fault fault;
	char why[256], roles[256];
	size_t used = 0;

	fault = xfp_projection_check(rule, rule->layout_count > 1 ? run->layout : 0, tensor, run->config, why);
	for (uint32_t part = 0; !status && part < rule->part_count; part++)
		status = claim(run, t, part, fault != XFP_FAULT_NONE);
	if (status)
		return status;
	if (fault) {
		status = decide(run, t, rule->class_, XFP_FATE_KEPT, "%s: %s", class, why);
		if (!status && fault != XFP_FAULT_EMPTY) {
			char text[320];

			snprintf(text, sizeof text, "%s; kept unchanged", why);
			status = xfp_notes_add_tensor(&run->findings->notes, true, tensor->name, weights_of(tensor),
						      text, run->err);
		}
		return status;
	}
	for (uint32_t part = 0; part < rule->part_count && used < sizeof roles; part++)
		used += (size_t)snprintf(roles + used, sizeof roles - used, "%s%s", part ? ", " : "",
					 t == run->tied ? XFP_ROLE_TIED : rule->parts[part].role);
	return decide(run, t, rule->class_, XFP_FATE_QUANTIZED, "%s: %s", class, roles);
}

static enum xfp_status decide_by_rule(const struct run *run, uint32_t t)
{
	enum xfp_class class = run->rules[t]->class_;

	return decide(run, t, class, XFP_FATE_KEPT, "%s: kept by rule", xfp_class_name(class));
}

/* Whether --lm-head keep applies and no override replaces it. */
static bool keeps_lm_head(const struct run *run, uint32_t t)
{
	struct xfp_policy policy = xfp_policy_of(run->policy, run->checkpoint->tensors[t].name,
						 run->rules[t]->parts[0].role, XFP_CLASS_LM_HEAD);

	return policy.format.form == XFP_FORM_KEEP && policy.format_by == XFP_BY_DEFAULT;
}

static enum xfp_status decide_lm_head(struct run *run, uint32_t t)
{
	uint32_t tied = run->ledger->tensors[t].tied;

	if (tied != UINT32_MAX)
		return decide(run, t, XFP_CLASS_LM_HEAD, XFP_FATE_TIED, "tied to %s",
			      run->checkpoint->tensors[tied].name);
	if (keeps_lm_head(run, t))
		return decide(run, t, XFP_CLASS_LM_HEAD, XFP_FATE_KEPT, "lm_head: kept as asked for");
	return decide_projection(run, t);
}

static enum xfp_status decide_embedding(struct run *run, uint32_t t)
{
	const char *role = t == run->tied ? XFP_ROLE_TIED : run->rules[t]->parts[0].role;
	struct xfp_policy policy =
		xfp_policy_of(run->policy, run->checkpoint->tensors[t].name, role, XFP_CLASS_EMBEDDING);
	enum xfp_status status;
	char *by;

	if (run->policy->keep_embeddings)
		return decide_by_rule(run, t);
	if (policy.format.form != XFP_FORM_KEEP)
		return decide_projection(run, t);
	by = xfp_policy_format_by(run->policy, &policy);
	status = decide(run, t, XFP_CLASS_EMBEDDING, XFP_FATE_KEPT, "embedding: kept as asked for%s%s",
			by ? " by " : "", by ? by : "");
	free(by);
	return status;
}

/* Keep a tensor without a class. If it may be a projection, it is quantized by no floor, so report it: as a warning if
 * no rule matched. */
static enum xfp_status decide_other(struct run *run, uint32_t t, const char *reason, bool warning, const char *note)
{
	const struct xfp_source_tensor *tensor = &run->checkpoint->tensors[t];
	uint64_t weights = weights_of(tensor);

	if (xfp_dtype_is_weight(tensor->dtype) && (tensor->rank == 2 || tensor->rank == 3) &&
	    weights >= WORTH_TELLING) {
		enum xfp_status status =
			xfp_notes_add_tensor(&run->findings->notes, warning, tensor->name, weights, note, run->err);
		if (status)
			return status;
	}
	return decide(run, t, XFP_CLASS_OTHER, XFP_FATE_KEPT, "%s", reason);
}

/* Make a matrix that the rules keep a unit of its own, by a synthetic rule whose role is the class. */
static enum xfp_status extend(struct run *run, uint32_t t, enum xfp_class class)
{
	static const struct xfp_rule_layout matrix = { .rank = 2, .dim = { 'N', 'K' } };
	struct xfp_rule *rule = &run->matrix_rules[class];

	run->matrix_parts[class].role = (char *)(uintptr_t)xfp_class_name(class);
	*rule = (struct xfp_rule){
		.action = XFP_RULE_QUANTIZE,
		.class_ = class,
		.parts = &run->matrix_parts[class],
		.part_count = 1,
		.layouts = (struct xfp_rule_layout *)(uintptr_t)&matrix,
		.layout_count = 1,
	};
	if (!run->rules[t])
		run->matches[t].layer = -1;
	run->rules[t] = rule;
	run->matches[t].expert_at = run->matches[t].expert_end = 0; /* not a stack, whatever its name */
	return decide_projection(run, t);
}

static bool extends(const struct run *run, uint32_t t)
{
	const struct xfp_source_tensor *tensor = &run->checkpoint->tensors[t];
	const struct xfp_rule *rule = run->rules[t];

	if (rule && rule->action != XFP_RULE_KEEP && !(run->policy->keep_embeddings && is_word_embedding(run, t)))
		return false;
	return tensor->rank == 2 && tensor->bytes && xfp_dtype_is_weight(tensor->dtype) &&
	       xfp_policy_quantizes(run->policy, tensor->name, rule ? rule->class_ : XFP_CLASS_OTHER);
}

static enum xfp_status decide_tensor(struct run *run, uint32_t t)
{
	const struct xfp_rule *rule = run->rules[t];

	if (extends(run, t))
		return extend(run, t, rule ? rule->class_ : XFP_CLASS_OTHER);
	if (!rule)
		return decide_other(run, t, "no rule matches", true, "no rule matches; kept unchanged");
	switch (rule->action) {
	case XFP_RULE_KEEP:
		if (rule->class_ == XFP_CLASS_OTHER)
			return decide_other(run, t, "other: kept by rule", false,
					    "a rule keeps it unchanged, as other");
		return decide_by_rule(run, t);
	case XFP_RULE_DROP:
		return decide(run, t, rule->class_, XFP_FATE_DROPPED, "computed by every engine: dropped by rule");
	default:
		return rule->class_ == XFP_CLASS_LM_HEAD     ? decide_lm_head(run, t)
		       : rule->class_ == XFP_CLASS_EMBEDDING ? decide_embedding(run, t)
							     : decide_projection(run, t);
	}
}

/* ---- after that ------------------------------------------------------------------------------- */

/* Report stacks that contradict config.json: missing ones, or a different number of experts. */
static enum xfp_status report_experts(const struct run *run, const char *key, uint64_t experts)
{
	struct xfp_notes *notes = &run->findings->notes;
	const struct xfp_ledger *ledger = run->ledger;
	bool found = false;

	for (uint32_t u = 0; u < ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &ledger->units[u];

		if (unit->class_ != XFP_CLASS_ROUTED_EXPERT)
			continue;
		if (unit->experts != experts)
			return xfp_notes_add(notes, true, run->err,
					     "%s has %" PRIu32 " experts, but config.json says %s %" PRIu64,
					     xfp_printable(unit->name).text, unit->experts, key, experts);
		found = true;
	}
	if (found || experts < 2)
		return XFP_OK;
	return xfp_notes_add(notes, true, run->err,
			     "config.json says %s %" PRIu64 ", but family %s finds no expert to quantize", key, experts,
			     run->family->name);
}

static enum xfp_status report(const struct run *run)
{
	static const char *const keys[] = { "num_experts", "num_local_experts", "n_routed_experts" };
	struct xfp_notes *notes = &run->findings->notes;
	const struct xfp_ledger *ledger = run->ledger;
	enum xfp_status status = XFP_OK;
	uint64_t experts;

	for (uint32_t i = 0; !status && i < run->family->rule_count; i++) {
		const struct xfp_rule *rule = &run->family->rules[i];

		if (rule->optional || run->findings->taken[i])
			continue;
		status = xfp_notes_add(notes, false, run->err, "%s.family:%u: the rule matches no tensor: %s",
				       run->family->name, rule->line, rule->pattern);
		if (!status)
			notes->list[notes->count - 1].idle = true;
	}
	for (size_t k = 0; !status && k < sizeof keys / sizeof *keys; k++)
		if (xfp_model_config_number(run->config, keys[k], &experts))
			status = report_experts(run, keys[k], experts);
	if (!status && !ledger->unit_count)
		status =
			xfp_notes_add(notes, true, run->err,
				      "nothing to quantize: no tensor is a projection of family %s", run->family->name);
	return status ? status : xfp_notes_finish(notes, run->err);
}

enum xfp_status xfp_classify(const struct xfp_checkpoint *checkpoint, struct xfp_model_config *config,
			     const struct xfp_family *family, const struct xfp_parameters *policy,
			     struct xfp_ledger **ledger, struct xfp_findings *findings, struct xfp_error *err)
{
	struct run run = {
		.checkpoint = checkpoint,
		.config = config,
		.family = family,
		.policy = policy,
		.rules = calloc((size_t)checkpoint->tensor_count + 1, sizeof *run.rules),
		.matches = calloc((size_t)checkpoint->tensor_count + 1, sizeof *run.matches),
		.ledger = calloc(1, sizeof *run.ledger),
		.findings = findings,
		.err = err,
	};
	enum xfp_status status;

	*ledger = NULL;
	*findings = (struct xfp_findings){
		.taken = calloc((size_t)family->rule_count + 1, sizeof *findings->taken),
		.rules = calloc((size_t)checkpoint->tensor_count + 1, sizeof *findings->rules),
	};
	if (!run.rules || !run.matches || !run.ledger || !findings->taken || !findings->rules) {
		status = xfp_no_memory(err);
		goto done;
	}
	if ((status = copy_tables(&run)) || (status = match_all(&run)))
		goto done;
	memcpy(findings->rules, run.rules, checkpoint->tensor_count * sizeof *run.rules);
	if ((status = assume_width(&run)) || (status = choose_layout(&run)) || (status = find_ties(&run)))
		goto done;
	for (uint32_t t = 0; t < checkpoint->tensor_count; t++)
		if ((status = decide_tensor(&run, t)))
			goto done;
	if ((status = xfp_units_build(run.claims, run.claim_count, run.ledger, err)) || (status = report(&run)))
		goto done;
	*ledger = run.ledger;
	run.ledger = NULL;
done:
	for (uint32_t i = 0; i < run.claim_count; i++)
		free(run.claims[i].unit);
	free(run.claims);
	free(run.rules);
	free(run.matches);
	if (status)
		xfp_findings_free(findings);
	xfp_ledger_free(run.ledger);
	return status;
}

void xfp_findings_free(struct xfp_findings *findings)
{
	xfp_notes_free(&findings->notes);
	free(findings->taken);
	free(findings->rules);
	*findings = (struct xfp_findings){ 0 };
}
