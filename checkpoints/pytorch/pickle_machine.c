/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/pytorch/pickle_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "checkpoints/pytorch/pickle_stack.h"

/* Opcodes of other pickles, which help users to identify theirs. */
static const struct {
	unsigned char code;
	const char *name;
} known[] = {
	{ '0', "POP" },
	{ '1', "POP_MARK" },
	{ '2', "DUP" },
	{ 'F', "FLOAT" },
	{ 'I', "INT" },
	{ 'L', "LONG" },
	{ 'P', "PERSID" },
	{ 'S', "STRING" },
	{ 'T', "BINSTRING" },
	{ 'U', "SHORT_BINSTRING" },
	{ 'V', "UNICODE" },
	{ 'd', "DICT" },
	{ 'g', "GET" },
	{ 'i', "INST" },
	{ 'l', "LIST" },
	{ 'o', "OBJ" },
	{ 'p', "PUT" },
	{ 0x81, "NEWOBJ" },
	{ 0x82, "EXT1" },
	{ 0x83, "EXT2" },
	{ 0x84, "EXT4" },
	{ 0x8b, "LONG4" },
	{ 0x8c, "SHORT_BINUNICODE" },
	{ 0x8d, "BINUNICODE8" },
	{ 0x8e, "BINBYTES8" },
	{ 0x8f, "EMPTY_SET" },
	{ 0x90, "ADDITEMS" },
	{ 0x91, "FROZENSET" },
	{ 0x92, "NEWOBJ_EX" },
	{ 0x93, "STACK_GLOBAL" },
	{ 0x94, "MEMOIZE" },
	{ 0x95, "FRAME" },
	{ 0x96, "BYTEARRAY8" },
	{ 0x97, "NEXT_BUFFER" },
	{ 'B', "BINBYTES" },
	{ 'C', "SHORT_BINBYTES" },
	{ 0x98, "READONLY_BUFFER" },
};

static enum xfp_status bad_opcode(struct xfp_pickle_machine *m)
{
	unsigned char code = (unsigned char)*m->opcode;
	const char *name = "unknown";

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].code == code)
			name = known[i].name;
	return xfp_fail(m->err, XFP_BAD_INPUT,
			"%s: opcode 0x%02x (%s) at its byte %td does not occur in files of tensors" XFP_PICKLE_REMEDY,
			m->where, code, name, m->opcode - m->text);
}

/* ---- opcodes -------------------------------------------------------------------------------------- */

static enum xfp_status argument(struct xfp_pickle_machine *m, size_t size, const unsigned char **out)
{
	if ((size_t)(m->end - m->at) < size)
		return xfp_pickle_bad(m, "it ends within an opcode");
	*out = (const unsigned char *)m->at;
	m->at += size;
	return XFP_OK;
}

static enum xfp_status read_line(struct xfp_pickle_machine *m, const char **line, size_t *length)
{
	const char *newline = memchr(m->at, '\n', (size_t)(m->end - m->at));

	if (!newline)
		return xfp_pickle_bad(m, "it ends within a name");
	*line = m->at;
	*length = (size_t)(newline - m->at);
	m->at = newline + 1;
	return XFP_OK;
}

static enum xfp_status global(struct xfp_pickle_machine *m)
{
	struct xfp_pickle_value value = { .kind = XFP_VALUE_GLOBAL };
	const char *module = NULL, *name = NULL;
	size_t module_length = 0, name_length = 0;
	enum xfp_status status;
	char shown[200];

	if ((status = read_line(m, &module, &module_length)) || (status = read_line(m, &name, &name_length)))
		return status;
	value.global = xfp_global_find(module, module_length, name, name_length);
	if (value.global)
		return xfp_pickle_push(m, value);
	snprintf(shown, sizeof shown, "%.*s.%.*s", (int)(module_length < 90 ? module_length : 90), module,
		 (int)(name_length < 90 ? name_length : 90), name);
	return xfp_fail(m->err, XFP_BAD_INPUT,
			"%s: refers to %s at its byte %td, which is not supported" XFP_PICKLE_REMEDY, m->where,
			xfp_printable(shown).text, m->opcode - m->text);
}

/* Return whether the flags of a tensor (argument `at`, by newer writers) say that its elements differ from its storage:
 * conjugates, or negatives. */
static bool is_altered(const struct xfp_items *arguments, uint32_t at)
{
	const struct xfp_items *pairs;

	if (at >= arguments->count || arguments->at[at].kind != XFP_VALUE_DICT)
		return false;
	pairs = arguments->at[at].items;
	for (uint32_t i = 0; i + 1 < pairs->count; i += 2) {
		const struct xfp_pickle_value *key = &pairs->at[i];
		bool known = key->kind == XFP_VALUE_STRING && ((key->length == 3 && !memcmp(key->text, "neg", 3)) ||
							       (key->length == 4 && !memcmp(key->text, "conj", 4)));

		if (known && !(key[1].kind == XFP_VALUE_BOOL && !key[1].number))
			return true;
	}
	return false;
}

/* Build tensors and their containers; nothing is called. */
static enum xfp_status reduce(struct xfp_pickle_machine *m)
{
	struct xfp_pickle_value *two = NULL, value = { .kind = XFP_VALUE_OTHER };
	const struct xfp_items *arguments;
	enum xfp_status status;

	if ((status = xfp_pickle_top(m, 2, &two)))
		return status;
	if (two[0].kind != XFP_VALUE_GLOBAL || two[1].kind != XFP_VALUE_TUPLE)
		return xfp_pickle_bad(m, "REDUCE of a value that is not a known function");
	arguments = two[1].items;
	m->depth -= 2;
	if (is_altered(arguments, two[0].global->kind == XFP_GLOBAL_TENSOR_TYPED ? 7 : 6) &&
	    (two[0].global->kind == XFP_GLOBAL_TENSOR || two[0].global->kind == XFP_GLOBAL_TENSOR_TYPED))
		return xfp_fail(
			m->err, XFP_BAD_INPUT,
			"%s: a tensor at its byte %td is a view of others' negatives or conjugates, which is not "
			"supported: save it with .resolve_neg() and .resolve_conj()",
			m->where, m->opcode - m->text);
	switch (two[0].global->kind) {
	case XFP_GLOBAL_TENSOR:
		if (arguments->count < 4 || arguments->at[0].kind != XFP_VALUE_STORAGE)
			return xfp_pickle_bad(m, "a tensor has invalid arguments");
		value = (struct xfp_pickle_value){ .kind = XFP_VALUE_TENSOR, .items = two[1].items };
		return xfp_pickle_push(m, value);
	case XFP_GLOBAL_TENSOR_TYPED:
		if (arguments->count < 7 || arguments->at[0].kind != XFP_VALUE_STORAGE ||
		    arguments->at[6].kind != XFP_VALUE_GLOBAL || arguments->at[6].global->kind != XFP_GLOBAL_DTYPE)
			return xfp_pickle_bad(m, "a tensor has invalid arguments");
		value = (struct xfp_pickle_value){ .kind = XFP_VALUE_TENSOR_TYPED, .items = two[1].items };
		return xfp_pickle_push(m, value);
	case XFP_GLOBAL_PARAMETER:
		if (!arguments->count ||
		    (arguments->at[0].kind != XFP_VALUE_TENSOR && arguments->at[0].kind != XFP_VALUE_TENSOR_TYPED))
			return xfp_pickle_bad(m, "a parameter is not made from a tensor");
		return xfp_pickle_push(m, arguments->at[0]);
	case XFP_GLOBAL_DICT:
		if (arguments->count)
			return xfp_pickle_bad(m, "an OrderedDict has arguments");
		return xfp_pickle_push_items(m, XFP_VALUE_DICT, NULL, 0);
	case XFP_GLOBAL_SIZE:
		if (arguments->count != 1 || arguments->at[0].kind != XFP_VALUE_TUPLE)
			return xfp_pickle_bad(m, "a torch.Size is not made from a tuple");
		return xfp_pickle_push(m, arguments->at[0]);
	case XFP_GLOBAL_DEVICE:
		return xfp_pickle_push(m, value);
	default:
		return xfp_pickle_bad(m, "REDUCE of a value that is not a known function");
	}
}

static enum xfp_status storage(struct xfp_pickle_machine *m)
{
	const struct xfp_items *id;
	struct xfp_pickle_value *one = NULL;
	enum xfp_status status;

	if ((status = xfp_pickle_top(m, 1, &one)))
		return status;
	id = one->items;
	if (one->kind != XFP_VALUE_TUPLE || id->count != 5 || id->at[0].kind != XFP_VALUE_STRING ||
	    id->at[0].length != 7 || memcmp(id->at[0].text, "storage", 7) || id->at[1].kind != XFP_VALUE_GLOBAL ||
	    (id->at[1].global->kind != XFP_GLOBAL_STORAGE && id->at[1].global->kind != XFP_GLOBAL_UNTYPED) ||
	    id->at[2].kind != XFP_VALUE_STRING || id->at[3].kind != XFP_VALUE_STRING || id->at[4].kind != XFP_VALUE_INT)
		return xfp_pickle_bad(m, "a persistent id is not that of a storage");
	one->kind = XFP_VALUE_STORAGE;
	return XFP_OK;
}

static enum xfp_status put(struct xfp_pickle_machine *m, uint64_t index)
{
	struct xfp_pickle_value *one = NULL;
	enum xfp_status status;

	if ((status = xfp_pickle_top(m, 1, &one)))
		return status;
	/* Writers number memo slots in order, and each takes at least a byte. */
	if (index > (uint64_t)(m->at - m->text))
		return xfp_pickle_bad(m, "PUT of an invalid memo slot");
	if ((status = xfp_pickle_grow(m, &m->memo, &m->memo_capacity, (size_t)index + 1)))
		return status;
	m->memo[index] = *one;
	return XFP_OK;
}

static enum xfp_status get(struct xfp_pickle_machine *m, uint64_t index)
{
	if (index >= m->memo_capacity || m->memo[index].kind == 0xff)
		return xfp_pickle_bad(m, "GET of an empty memo slot");
	return xfp_pickle_push(m, m->memo[index]);
}

/* Add the values above `first` on the stack to the container below them. */
static enum xfp_status add_above(struct xfp_pickle_machine *m, size_t first, size_t below, enum xfp_value_kind kind)
{
	size_t count = m->depth - first, container = first - below;
	enum xfp_status status;

	if (!container || m->stack[container - 1].kind != (uint8_t)kind)
		return xfp_pickle_bad(m, "values are added to a value that is not a container for them");
	for (size_t i = first; i < m->depth; i++)
		if (m->stack[i].kind == XFP_VALUE_MARK)
			return xfp_pickle_bad(m, "a mark is used as a value");
	if (kind == XFP_VALUE_DICT && count % 2)
		return xfp_pickle_bad(m, "a dict gets a key without a value");
	if ((status = xfp_pickle_add(m, &m->stack[container - 1], m->stack + first, count)))
		return status;
	m->depth = container;
	return XFP_OK;
}

static enum xfp_status add_since_mark(struct xfp_pickle_machine *m, enum xfp_value_kind kind)
{
	size_t first = 0;
	enum xfp_status status = xfp_pickle_to_mark(m, &first);

	return status ? status : add_above(m, first, 1, kind);
}

/* Ignore attributes of a dict, such as "_metadata" of a state_dict. */
static enum xfp_status build(struct xfp_pickle_machine *m)
{
	struct xfp_pickle_value *two = NULL;
	enum xfp_status status;

	if ((status = xfp_pickle_top(m, 2, &two)))
		return status;
	if (two[0].kind != XFP_VALUE_DICT)
		return xfp_pickle_bad(m, "BUILD of a value that is not a dict");
	m->depth--;
	return XFP_OK;
}

static enum xfp_status integer(struct xfp_pickle_machine *m, size_t size, bool is_signed)
{
	const unsigned char *bytes = NULL;
	enum xfp_status status;
	uint64_t value = 0;

	if ((status = argument(m, size, &bytes)))
		return status;
	memcpy(&value, bytes, size);
	if (is_signed && size && size < 8 && bytes[size - 1] & 0x80)
		value |= ~(uint64_t)0 << 8 * size;
	return xfp_pickle_push(m, xfp_pickle_number(XFP_VALUE_INT, (int64_t)value));
}

static enum xfp_status long_integer(struct xfp_pickle_machine *m)
{
	const unsigned char *size = NULL;
	enum xfp_status status = argument(m, 1, &size);

	if (status)
		return status;
	return *size <= 8 ? integer(m, *size, true) : xfp_pickle_bad(m, "a number has more than 64 bits");
}

static enum xfp_status text(struct xfp_pickle_machine *m)
{
	struct xfp_pickle_value value = { .kind = XFP_VALUE_STRING };
	const unsigned char *size = NULL, *bytes = NULL;
	enum xfp_status status;

	if ((status = argument(m, 4, &size)))
		return status;
	value.length = xfp_load32(size);
	if ((status = argument(m, value.length, &bytes)))
		return status;
	value.text = (const char *)bytes;
	if (!xfp_utf8_valid(value.text, value.length))
		return xfp_pickle_bad(m, "a text is not UTF-8, or contains NUL,");
	return xfp_pickle_push(m, value);
}

static enum xfp_status tuple_to_mark(struct xfp_pickle_machine *m)
{
	size_t first = 0;
	enum xfp_status status = xfp_pickle_to_mark(m, &first);

	return status ? status : xfp_pickle_make_tuple(m, first, 1);
}

static enum xfp_status tuple_of(struct xfp_pickle_machine *m, size_t count)
{
	struct xfp_pickle_value *values = NULL;
	enum xfp_status status = xfp_pickle_top(m, count, &values);

	return status ? status : xfp_pickle_make_tuple(m, m->depth - count, 0);
}

static enum xfp_status memory(struct xfp_pickle_machine *m, size_t size, bool write)
{
	const unsigned char *bytes = NULL;
	enum xfp_status status;
	uint64_t index = 0;

	if ((status = argument(m, size, &bytes)))
		return status;
	memcpy(&index, bytes, size);
	return write ? put(m, index) : get(m, index);
}

static enum xfp_status protocol(struct xfp_pickle_machine *m)
{
	const unsigned char *version = NULL;
	enum xfp_status status = argument(m, 1, &version);

	if (status)
		return status;
	if (*version != 2)
		return xfp_fail(m->err, XFP_BAD_INPUT,
				"%s: has protocol %d, but torch.save writes 2 by default" XFP_PICKLE_REMEDY, m->where,
				*version);
	return m->opcode == m->text ? XFP_OK : xfp_pickle_bad(m, "another pickle begins");
}

static enum xfp_status add_one(struct xfp_pickle_machine *m, enum xfp_value_kind kind, size_t values)
{
	return m->depth > values ? add_above(m, m->depth - values, 0, kind) : xfp_pickle_bad(m, "stack underflow");
}

static enum xfp_status step(struct xfp_pickle_machine *m)
{
	const unsigned char *ignored = NULL;
	enum xfp_status status;

	m->opcode = m->at++;
	switch ((unsigned char)*m->opcode) {
	case 0x80:
		return protocol(m);
	case '.':
		m->done = true;
		return XFP_OK;
	case '(':
		return xfp_pickle_push(m, xfp_pickle_number(XFP_VALUE_MARK, 0));
	case 'N':
		return xfp_pickle_push(m, xfp_pickle_number(XFP_VALUE_NONE, 0));
	case 0x88:
	case 0x89:
		return xfp_pickle_push(m, xfp_pickle_number(XFP_VALUE_BOOL, (unsigned char)*m->opcode == 0x88));
	case 'K':
		return integer(m, 1, false);
	case 'M':
		return integer(m, 2, false);
	case 'J':
		return integer(m, 4, true);
	case 0x8a:
		return long_integer(m);
	case 'G':
		return (status = argument(m, 8, &ignored)) ? status
							   : xfp_pickle_push(m, xfp_pickle_number(XFP_VALUE_FLOAT, 0));
	case 'X':
		return text(m);
	case 'c':
		return global(m);
	case 'R':
		return reduce(m);
	case 'Q':
		return storage(m);
	case 'b':
		return build(m);
	case 'q':
		return memory(m, 1, true);
	case 'r':
		return memory(m, 4, true);
	case 'h':
		return memory(m, 1, false);
	case 'j':
		return memory(m, 4, false);
	case ')':
		return xfp_pickle_push_items(m, XFP_VALUE_TUPLE, NULL, 0);
	case ']':
		return xfp_pickle_push_items(m, XFP_VALUE_LIST, NULL, 0);
	case '}':
		return xfp_pickle_push_items(m, XFP_VALUE_DICT, NULL, 0);
	case 't':
		return tuple_to_mark(m);
	case 0x85:
	case 0x86:
	case 0x87:
		return tuple_of(m, (unsigned char)*m->opcode - 0x84u);
	case 'a':
		return add_one(m, XFP_VALUE_LIST, 1);
	case 's':
		return add_one(m, XFP_VALUE_DICT, 2);
	case 'e':
		return add_since_mark(m, XFP_VALUE_LIST);
	case 'u':
		return add_since_mark(m, XFP_VALUE_DICT);
	default:
		return bad_opcode(m);
	}
}

enum xfp_status xfp_pickle_run(const char *pickle, size_t size, const char *where, struct xfp_pickle_memory *memory,
			       struct xfp_pickle_value *result, struct xfp_error *err)
{
	struct xfp_pickle_machine m = { .text = pickle, .at = pickle, .end = pickle + size, .opcode = pickle };
	enum xfp_status status = XFP_OK;

	m.where = where;
	m.memory = memory;
	m.err = err;
	if (!size || (unsigned char)*pickle != 0x80)
		status = xfp_pickle_bad(&m, "it does not begin like a pickle");
	while (!status && !m.done)
		status = m.at < m.end ? step(&m) : xfp_pickle_bad(&m, "it ends before it is finished");
	if (!status && m.at != m.end)
		status = xfp_pickle_bad(&m, "bytes follow its end");
	if (!status && (m.depth != 1 || m.stack->kind == XFP_VALUE_MARK))
		status = xfp_pickle_bad(&m, "it does not leave exactly one value");
	if (!status)
		*result = *m.stack;
	free(m.stack);
	free(m.memo);
	return status;
}
