/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/pytorch/pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "checkpoints/pytorch/pickle_machine.h"

/* Keys under which tools store a model, most common first. */
static const char *const wrappers[] = {
	"state_dict", "model_state_dict", "model", "module", "params", "weights", "net"
};

struct xfp_pickle {
	const char *where;
	struct xfp_pickle_memory memory;
	const struct xfp_pickle_value **tensors; /* [count] keys; each is followed by its tensor */
	uint32_t count, ignored;
	const struct xfp_pickle_value *first_ignored; /* first ignored key, or NULL */
};

static bool is_tensor(const struct xfp_pickle_value *value)
{
	return value->kind == XFP_VALUE_TENSOR || value->kind == XFP_VALUE_TENSOR_TYPED;
}

/* Count tensors with names; a parameter list has numbers as keys. */
static uint32_t count_tensors(const struct xfp_items *dict)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i + 1 < dict->count; i += 2)
		count += dict->at[i].kind == XFP_VALUE_STRING && is_tensor(&dict->at[i + 1]);
	return count;
}

/* Find the dict with the model's tensors; NULL if there is none. Training state next to a model may contain some
 * tensors. */
static const struct xfp_items *find_model(const struct xfp_pickle_value *root)
{
	uint32_t own;

	if (root->kind != XFP_VALUE_DICT)
		return NULL;
	own = count_tensors(root->items);
	for (size_t w = 0; w < sizeof wrappers / sizeof *wrappers; w++)
		for (uint32_t i = 0; i + 1 < root->items->count; i += 2) {
			const struct xfp_pickle_value *key = &root->items->at[i], *value = key + 1;

			if (key->kind == XFP_VALUE_STRING && key->length == strlen(wrappers[w]) &&
			    !memcmp(key->text, wrappers[w], key->length) && value->kind == XFP_VALUE_DICT &&
			    count_tensors(value->items) > own)
				return value->items;
		}
	return own ? root->items : NULL;
}

static enum xfp_status no_model(const struct xfp_pickle *pickle, const struct xfp_pickle_value *root,
				struct xfp_error *err)
{
	const char *what = "contains a dict in which no tensor has a name";

	if (is_tensor(root))
		what = "contains one tensor without a name, not a dict of tensors";
	else if (root->kind != XFP_VALUE_DICT)
		what = "does not contain a dict of tensors";
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: %s; xfp reads what torch.save writes of a state_dict: save that, in Python by "
			"torch.save(model.state_dict(), ...)",
			pickle->where, what);
}

/* Collect the tensors of the model's dict, and count other values in and next to it. */
static enum xfp_status take(struct xfp_pickle *pickle, const struct xfp_items *root, const struct xfp_items *model,
			    struct xfp_error *err)
{
	const struct xfp_items *both[] = { model, root };

	if (!(pickle->tensors = malloc((model->count / 2 + (size_t)1) * sizeof *pickle->tensors)))
		return xfp_no_memory_for(err, pickle->where);
	for (size_t k = 0; k < (model == root ? 1u : 2u); k++)
		for (uint32_t i = 0; i + 1 < both[k]->count; i += 2) {
			const struct xfp_pickle_value *key = &both[k]->at[i];

			if (k == 1 && key[1].kind == XFP_VALUE_DICT && key[1].items == model)
				continue;
			if (k == 0 && key->kind == XFP_VALUE_STRING && is_tensor(&key[1])) {
				pickle->tensors[pickle->count++] = key;
				continue;
			}
			if (!pickle->ignored++ || !pickle->first_ignored)
				pickle->first_ignored = key->kind == XFP_VALUE_STRING ? key : NULL;
		}
	return XFP_OK;
}

enum xfp_status xfp_pickle_read(const char *text, size_t size, const char *where, struct xfp_pickle **out,
				struct xfp_error *err)
{
	struct xfp_pickle *pickle = calloc(1, sizeof *pickle);
	const struct xfp_items *model = NULL;
	enum xfp_status status;
	struct xfp_pickle_value root;

	if (!pickle)
		return xfp_no_memory_for(err, where);
	pickle->where = where;
	pickle->memory.left = (uint64_t)size * XFP_PICKLE_GROWTH + ((uint64_t)64 << 10);
	if (!(status = xfp_pickle_run(text, size, where, &pickle->memory, &root, err))) {
		model = find_model(&root);
		status = model ? take(pickle, root.items, model, err) : no_model(pickle, &root, err);
	}
	if (status) {
		xfp_pickle_close(pickle);
		return status;
	}
	*out = pickle;
	return XFP_OK;
}

void xfp_pickle_close(struct xfp_pickle *pickle)
{
	if (!pickle)
		return;
	xfp_pickle_memory_free(&pickle->memory);
	free(pickle->tensors);
	free(pickle);
}

uint32_t xfp_pickle_count(const struct xfp_pickle *pickle)
{
	return pickle->count;
}

uint32_t xfp_pickle_ignored(const struct xfp_pickle *pickle, const char **first, size_t *length)
{
	*first = pickle->first_ignored ? pickle->first_ignored->text : "";
	*length = pickle->first_ignored ? pickle->first_ignored->length : 0;
	return pickle->ignored;
}

static bool count_of(const struct xfp_pickle_value *value, uint64_t *out)
{
	*out = (uint64_t)value->number;
	return value->kind == XFP_VALUE_INT && value->number >= 0;
}

/* Read sizes or strides; returns false if they are invalid. */
static bool counts_of(const struct xfp_pickle_value *value, uint32_t *rank, uint64_t out[XFP_MAX_RANK])
{
	if (value->kind != XFP_VALUE_TUPLE)
		return false;
	*rank = value->items->count;
	for (uint32_t i = 0; i < *rank && *rank <= XFP_MAX_RANK; i++)
		if (!count_of(&value->items->at[i], &out[i]))
			return false;
	return true;
}

enum xfp_status xfp_pickle_tensor(const struct xfp_pickle *pickle, uint32_t number, struct xfp_pickle_tensor *out,
				  struct xfp_error *err)
{
	const struct xfp_pickle_value *key = pickle->tensors[number], *arguments = key[1].items->at;
	const struct xfp_pickle_value *storage = arguments[0].items->at;
	const struct xfp_global *type = storage[1].global;
	const char *what = NULL;
	uint32_t strides;
	char name[200];

	*out = (struct xfp_pickle_tensor){
		.name = key->text,
		.name_length = key->length,
		.key = storage[2].text,
		.key_length = storage[2].length,
		.dtype = type->dtype,
		.storage = type->name,
		.absent = storage[3].length == 4 && !memcmp(storage[3].text, "meta", 4),
	};
	if (key[1].kind == XFP_VALUE_TENSOR_TYPED) {
		out->dtype = arguments[6].global->dtype;
		out->halves = arguments[6].global->halves;
	}
	if (!count_of(&storage[4], &out->storage_bytes) ||
	    !xfp_mul(out->storage_bytes, xfp_dtype_bits(type->dtype) / 8, &out->storage_bytes))
		what = "its storage has an invalid size";
	else if (!count_of(&arguments[1], &out->offset))
		what = "its storage offset is invalid";
	else if (!counts_of(&arguments[2], &out->rank, out->shape) ||
		 !counts_of(&arguments[3], &strides, out->stride) || strides != out->rank)
		what = "its sizes or strides are invalid";
	if (!what)
		return XFP_OK;
	snprintf(name, sizeof name, "%.*s", (int)(key->length < 190 ? key->length : 190), key->text);
	return xfp_fail(err, XFP_BAD_INPUT, "%s: tensor %s: %s; the file is damaged: download it again", pickle->where,
			xfp_printable(name).text, what);
}
