/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named_shapes.h - a checkpoint of names and shapes in memory, and queries of its ledger.
 */
#ifndef XFP_TEST_NAMED_SHAPES_H
#define XFP_TEST_NAMED_SHAPES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "stages/inspect/classify.h"

struct model {
	struct xfp_checkpoint checkpoint;
	struct xfp_model_config *config;
	struct xfp_family *family;
	struct xfp_ledger *ledger;
	struct xfp_findings findings;
	struct xfp_error err;
};

static inline void begin(struct model *m, const char *config)
{
	static char folder[] = "/nowhere";

	memset(m, 0, sizeof *m);
	m->checkpoint.folder = folder;
	m->checkpoint.format = "safetensors";
	m->checkpoint.file_count = 1;
	m->checkpoint.files = calloc(1, sizeof *m->checkpoint.files);
	m->checkpoint.files[0].name = strdup("model.safetensors");
	m->checkpoint.files[0].path = strdup("/nowhere/model.safetensors");
	assert_int_equal(xfp_model_config_parse(config, "config.json", &m->config, NULL), XFP_OK);
}

static inline void add_shape(struct model *m, const char *name, enum xfp_dtype dtype, uint32_t rank,
			     const uint64_t *shape)
{
	struct xfp_checkpoint *c = &m->checkpoint;
	struct xfp_source_tensor *t;

	c->tensors = realloc(c->tensors, (c->tensor_count + 1) * sizeof *t);
	t = &c->tensors[c->tensor_count++];
	*t = (struct xfp_source_tensor){
		.name = strdup(name), .dtype = dtype, .rank = rank, .bytes = xfp_dtype_bits(dtype) / 8
	};
	for (uint32_t d = 0; d < rank; d++) {
		t->shape[d] = shape[d];
		t->bytes *= shape[d];
	}
}

static inline void add1(struct model *m, const char *name, uint64_t a)
{
	add_shape(m, name, XFP_BF16, 1, (uint64_t[]){ a });
}

static inline void add(struct model *m, const char *name, uint64_t a, uint64_t b)
{
	add_shape(m, name, XFP_BF16, 2, (uint64_t[]){ a, b });
}

static inline void add3(struct model *m, const char *name, uint64_t a, uint64_t b, uint64_t c)
{
	add_shape(m, name, XFP_BF16, 3, (uint64_t[]){ a, b, c });
}

static inline int by_name(const void *a, const void *b)
{
	return strcmp(((const struct xfp_source_tensor *)a)->name, ((const struct xfp_source_tensor *)b)->name);
}

/* Classify with a family of the tree, or with `rules`. */
static inline enum xfp_status classify_by(struct model *m, const char *family, const char *rules,
					  const struct xfp_parameters *policy)
{
	const char *root = getenv("srcdir");
	char *path = xfp_formatted("%s/pipelines/families/%s.family", root ? root : ".", family);
	uint64_t offset = 0;

	if (rules)
		assert_int_equal(xfp_family_parse(rules, path, false, &m->family, &m->err), XFP_OK);
	else if (xfp_family_load(path, false, &m->family, &m->err))
		fail_msg("%s", m->err.text);
	free(path);
	qsort(m->checkpoint.tensors, m->checkpoint.tensor_count, sizeof *m->checkpoint.tensors, by_name);
	for (uint32_t t = 0; t < m->checkpoint.tensor_count; t++) {
		m->checkpoint.tensors[t].offset = offset;
		offset += m->checkpoint.tensors[t].bytes;
	}
	return xfp_classify(&m->checkpoint, m->config, m->family, policy, &m->ledger, &m->findings, &m->err);
}

static inline enum xfp_status classify_as(struct model *m, const char *family, const char *rules,
					  enum xfp_lm_head lm_head)
{
	struct xfp_parameters policy = xfp_parameters_default();

	policy.lm_head = lm_head;
	return classify_by(m, family, rules, &policy);
}

static inline void classify(struct model *m, const char *family)
{
	if (classify_as(m, family, NULL, XFP_LM_HEAD_FP8))
		fail_msg("%s", m->err.text);
}

static inline void end(struct model *m)
{
	struct xfp_checkpoint *c = &m->checkpoint;

	for (uint32_t t = 0; t < c->tensor_count; t++)
		free(c->tensors[t].name);
	free(c->tensors);
	free(c->files[0].name);
	free(c->files[0].path);
	free(c->files);
	xfp_findings_free(&m->findings);
	xfp_ledger_free(m->ledger);
	xfp_family_free(m->family);
	xfp_model_config_free(m->config);
}

static inline const struct xfp_ledger_tensor *tensor(const struct model *m, const char *name)
{
	for (uint32_t t = 0; t < m->ledger->tensor_count; t++)
		if (!strcmp(m->ledger->tensors[t].name, name))
			return &m->ledger->tensors[t];
	fail_msg("no tensor %s", name);
	return NULL;
}

static inline void expect(const struct model *m, const char *name, enum xfp_class class, enum xfp_fate fate,
			  const char *reason)
{
	const struct xfp_ledger_tensor *t = tensor(m, name);

	if (t->class_ != class || t->fate != fate || strcmp(t->reason, reason))
		fail_msg("%s: %s, %s, %s", name, xfp_class_name(t->class_), xfp_fate_name(t->fate), t->reason);
}

/* Whether a warning, or a note that is not one, contains this text. */
static inline bool says(const struct model *m, bool warning, const char *text)
{
	for (uint32_t i = 0; i < m->findings.notes.count; i++)
		if (m->findings.notes.list[i].warning == warning && strstr(m->findings.notes.list[i].text, text))
			return true;
	return false;
}

static inline uint32_t warnings(const struct model *m)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->findings.notes.count; i++)
		count += m->findings.notes.list[i].warning;
	return count;
}

/* Every unit as "class/role experts rows cols;" or, with names, "class/role/name experts rows cols;". */
static inline void expect_units(const struct model *m, bool names, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (uint32_t u = 0; u < m->ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &m->ledger->units[u];

		fprintf(out, "%s/%s", xfp_class_name(unit->class_), unit->role);
		if (names)
			fprintf(out, "/%s", unit->name);
		fprintf(out, " %u %u %u;", unit->experts, (unsigned)unit->rows, (unsigned)unit->cols);
	}
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

#endif
