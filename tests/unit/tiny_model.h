/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiny_model.h - checkpoints of tiny models, whose weights follow from the names of their tensors, as in
 * tests/models/named_weights.py.
 */
#ifndef XFP_TEST_TINY_MODEL_H
#define XFP_TEST_TINY_MODEL_H

#include "model/forward/forward.h"
#include "model/forward/tensors.h"
#include "tests/unit/model.h"

/* The written tensors: header, and bytes after it. */
struct tiny_file {
	char header[0x8000];
	float data[0x10000];
	size_t length, count;
	const char *leave_out;                /* a tensor that is omitted, */
	const char *zeros;                    /* one that is all 0, */
	const char *halves;                   /* and one whose weights are halved; NULL: none */
	const struct xfp_tensor_names *names; /* NULL: the names of text models */
	bool own_stacks;                      /* stacks have weights of their own name */
};

/* Fill in the weights of that name. */
static inline void fill(struct tiny_file *file, const char *tensor, size_t count)
{
	uint64_t state = 0xcbf29ce484222325;

	for (const char *p = tensor; *p; p++)
		state = (state ^ (unsigned char)*p) * 0x100000001b3;
	for (size_t i = 0; i < count; i++) {
		float value = (float)((double)(test_random(&state) >> 40) / (1 << 24) - 0.5 + !!strstr(tensor, "norm"));

		if (file->zeros && !strcmp(tensor, file->zeros))
			value = 0;
		if (file->halves && !strcmp(tensor, file->halves))
			value /= 2;
		assert_true(file->count < sizeof file->data / sizeof *file->data);
		file->data[file->count++] = value;
	}
}

/* A stack has the weights of its separate experts. */
static inline void fill_stack(struct tiny_file *file, const char *tensor, const uint64_t *shape)
{
	const char *end = strstr(tensor, ".experts.") + strlen(".experts.");
	bool down = !strcmp(end, "down_proj");
	size_t count = (size_t)(shape[1] * shape[2]);
	char name[128];

	for (unsigned e = 0; e < shape[0]; e++) {
		snprintf(name, sizeof name, "%.*s%u.%s_proj.weight", (int)(end - tensor), tensor, e,
			 down ? "down" : "gate");
		fill(file, name, down ? count : count / 2);
		snprintf(name, sizeof name, "%.*s%u.up_proj.weight", (int)(end - tensor), tensor, e);
		fill(file, name, down ? 0 : count / 2);
	}
}

/* The tensors that a config implies; rank 0: no tensor of that name may exist. */
static inline bool add(void *context, const struct xfp_required_tensor *required)
{
	const char *tensor = required->name;
	const uint64_t *shape = required->shape;
	const uint32_t rank = required->rank;
	struct tiny_file *file = context;
	size_t first = file->count, count = 1;
	bool in_body = !strncmp(tensor, "model.", 6);

	if (!rank || (file->leave_out && !strcmp(tensor, file->leave_out)))
		return true;
	file->length += (size_t)snprintf(file->header + file->length, sizeof file->header - file->length,
					 "%s\"%s%s\":{\"dtype\":\"F32\",\"shape\":[", file->length > 1 ? "," : "",
					 !file->names ? ""
					 : in_body    ? file->names->body
						      : "",
					 !file->names ? tensor
					 : in_body    ? tensor + 6
						      : file->names->head);
	for (uint32_t i = 0; i < rank; i++) {
		count *= shape[i];
		file->length += (size_t)snprintf(file->header + file->length, sizeof file->header - file->length,
						 "%s%u", i ? "," : "", (unsigned)shape[i]);
	}
	if (rank == 3 && strstr(tensor, ".experts.") && !file->own_stacks)
		fill_stack(file, tensor, shape);
	else
		fill(file, tensor, count);
	file->length += (size_t)snprintf(file->header + file->length, sizeof file->header - file->length,
					 "],\"data_offsets\":[%zu,%zu]}", 4 * first, 4 * file->count);
	assert_true(file->length < sizeof file->header - 1);
	return true;
}

static inline void write_tiny(void **state, const char *config, const struct xfp_description *d, struct tiny_file *file)
{
	bool only_stacks = d->experts && d->expert_names->transposed;
	const struct xfp_tensor_names names = { .body = d->encoder ? "" : "model.",
						.encoder = d->encoder,
						.head = "lm_head.weight",
						.stacked = only_stacks || (file->names && file->names->stacked) };
	unsigned char *all;
	size_t bytes;

	file->own_stacks = only_stacks;
	file->header[file->length++] = '{';
	xfp_each_tensor(d, &names, add, file);
	file->header[file->length++] = '}';
	bytes = 8 + file->length + file->count * sizeof(float);
	assert_non_null(all = malloc(bytes));
	xfp_store64(all, file->length);
	memcpy(all + 8, file->header, file->length);
	memcpy(all + 8 + file->length, file->data, file->count * sizeof(float));
	scratch_write(state, "model.safetensors", all, bytes);
	write_text(state, "config.json", config);
	free(all);
}

static inline struct tiny_file *new_file(void)
{
	struct tiny_file *file = calloc(1, sizeof *file);

	assert_non_null(file);
	return file;
}

#endif
