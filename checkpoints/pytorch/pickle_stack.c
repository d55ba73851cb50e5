/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/pytorch/pickle_stack.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 << 10)

struct xfp_pickle_block {
	struct xfp_pickle_block *next;
	size_t used, capacity;
};

/* ---- failing ------------------------------------------------------------------------------------- */

enum xfp_status xfp_pickle_bad(struct xfp_pickle_machine *m, const char *what)
{
	return xfp_fail(m->err, XFP_BAD_INPUT,
			"%s: %s at its byte %td; the file is damaged, or not what torch.save writes", m->where, what,
			m->opcode - m->text);
}

/* ---- memory -------------------------------------------------------------------------------------- */

void xfp_pickle_memory_free(struct xfp_pickle_memory *memory)
{
	for (struct xfp_pickle_block *block = memory->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	memory->blocks = NULL;
}

/* Charge bytes to the memory limit, which stops floods of opcodes. */
static enum xfp_status account(struct xfp_pickle_machine *m, size_t bytes)
{
	if (bytes > m->memory->left)
		return xfp_pickle_bad(m, "its values need more memory than its size allows");
	m->memory->left -= bytes;
	return XFP_OK;
}

/* Allocate memory that lives as long as the result. */
static enum xfp_status allocate(struct xfp_pickle_machine *m, size_t bytes, void *out)
{
	struct xfp_pickle_block *block = m->memory->blocks;
	enum xfp_status status;

	if ((status = account(m, bytes)))
		return status;
	if (!block || block->capacity - block->used < bytes) {
		size_t capacity = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;

		if (!(block = malloc(sizeof *block + capacity)))
			return xfp_no_memory_for(m->err, m->where);
		*block = (struct xfp_pickle_block){ m->memory->blocks, 0, capacity };
		m->memory->blocks = block;
	}
	*(void **)out = (unsigned char *)(block + 1) + block->used;
	block->used += bytes;
	return XFP_OK;
}

static enum xfp_status new_items(struct xfp_pickle_machine *m, const struct xfp_pickle_value *from, size_t count,
				 struct xfp_items **out)
{
	struct xfp_items *items;
	enum xfp_status status;
	void *room;

	if ((status = allocate(m, sizeof *items, &room)))
		return status;
	items = room;
	*items = (struct xfp_items){ .count = (uint32_t)count, .capacity = (uint32_t)count };
	if (count) {
		if ((status = allocate(m, count * sizeof *items->at, &room)))
			return status;
		items->at = room;
		memcpy(items->at, from, count * sizeof *items->at);
	}
	*out = items;
	return XFP_OK;
}

static bool is_container(const struct xfp_pickle_value *value)
{
	return value->kind >= XFP_VALUE_TUPLE && value->kind <= XFP_VALUE_TENSOR_TYPED;
}

static void freeze(const struct xfp_pickle_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_container(&values[i]))
			values[i].items->frozen = true;
}

/* Add to a list or a dict. The added value is frozen, and frozen containers cannot grow, so that nothing contains
 * itself. */
enum xfp_status xfp_pickle_add(struct xfp_pickle_machine *m, const struct xfp_pickle_value *to,
			       const struct xfp_pickle_value *from, size_t count)
{
	struct xfp_items *items = to->items;
	enum xfp_status status;
	void *room;

	freeze(from, count);
	if (items->frozen)
		return xfp_pickle_bad(m, "a container grows after it was put into another, so it may contain itself,");
	if (count > items->capacity - items->count) {
		size_t capacity = items->capacity * (size_t)2;

		if (capacity < items->count + count)
			capacity = items->count + count;
		if ((status = allocate(m, capacity * sizeof *items->at, &room)))
			return status;
		if (items->count)
			memcpy(room, items->at, items->count * sizeof *items->at);
		items->at = room;
		items->capacity = (uint32_t)capacity;
	}
	if (count)
		memcpy(items->at + items->count, from, count * sizeof *from);
	items->count += (uint32_t)count;
	return XFP_OK;
}

/* Double the capacity, or increase it to `wanted`. */
enum xfp_status xfp_pickle_grow(struct xfp_pickle_machine *m, struct xfp_pickle_value **values, size_t *capacity,
				size_t wanted)
{
	size_t more = *capacity ? *capacity * 2 : 64;
	struct xfp_pickle_value *grown;
	enum xfp_status status;

	if (wanted <= *capacity)
		return XFP_OK;
	if (more < wanted)
		more = wanted;
	if ((status = account(m, (more - *capacity) * sizeof *grown)))
		return status;
	if (!(grown = realloc(*values, more * sizeof *grown)))
		return xfp_no_memory_for(m->err, m->where);
	memset(grown + *capacity, 0xff, (more - *capacity) * sizeof *grown);
	*values = grown;
	*capacity = more;
	return XFP_OK;
}

/* ---- the stack ------------------------------------------------------------------------------------ */

enum xfp_status xfp_pickle_push(struct xfp_pickle_machine *m, struct xfp_pickle_value value)
{
	enum xfp_status status = xfp_pickle_grow(m, &m->stack, &m->stack_capacity, m->depth + 1);

	if (!status)
		m->stack[m->depth++] = value;
	return status;
}

struct xfp_pickle_value xfp_pickle_number(enum xfp_value_kind kind, int64_t value)
{
	return (struct xfp_pickle_value){ .kind = (uint8_t)kind, .number = value };
}

/* Return the top `count` values of the stack, none of which may be a mark. */
enum xfp_status xfp_pickle_top(struct xfp_pickle_machine *m, size_t count, struct xfp_pickle_value **out)
{
	if (m->depth < count)
		return xfp_pickle_bad(m, "stack underflow");
	*out = m->stack + m->depth - count;
	for (size_t i = 0; i < count; i++)
		if ((*out)[i].kind == XFP_VALUE_MARK)
			return xfp_pickle_bad(m, "a mark is used as a value");
	return XFP_OK;
}

/* Return the position after the last mark. */
enum xfp_status xfp_pickle_to_mark(struct xfp_pickle_machine *m, size_t *first)
{
	*first = m->depth;
	while (*first && m->stack[*first - 1].kind != XFP_VALUE_MARK)
		--*first;
	return *first ? XFP_OK : xfp_pickle_bad(m, "a mark is missing");
}

enum xfp_status xfp_pickle_push_items(struct xfp_pickle_machine *m, enum xfp_value_kind kind,
				      const struct xfp_pickle_value *from, size_t count)
{
	struct xfp_pickle_value value = { .kind = (uint8_t)kind };
	enum xfp_status status = new_items(m, from, count, &value.items);

	return status ? status : xfp_pickle_push(m, value);
}

/* Replace values on the stack, and `below` marks below them, by a tuple. */
enum xfp_status xfp_pickle_make_tuple(struct xfp_pickle_machine *m, size_t first, size_t below)
{
	struct xfp_pickle_value value = { .kind = XFP_VALUE_TUPLE };
	size_t count = m->depth - first;
	enum xfp_status status;

	freeze(m->stack + first, count);
	if ((status = new_items(m, m->stack + first, count, &value.items)))
		return status;
	m->depth = first - below;
	return xfp_pickle_push(m, value);
}
