/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/pytorch/torch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/path.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"
#include "checkpoints/pytorch/pickle.h"
#include "checkpoints/pytorch/strided.h"

#define AGAIN "; the file is damaged: download it again"
#define IN_PYTHON                                                                                               \
	"in Python, torch.load(..., weights_only=True) reads it and torch.save or safetensors.torch.save_file " \
	"writes it again"

struct torch_reader {
	const struct xfp_place *place;
	int fd;
	struct xfp_zip zip;
	char *inside;         /* "NAME/" */
	const char **storage; /* [members] the class with which each was read, initially NULL */
	struct xfp_source_tensor *tensors;
	uint32_t count;
	uint64_t parts; /* remaining limit of recipe parts */
	struct xfp_error *err;
};

static enum xfp_status bad(const struct torch_reader *r, const char *what)
{
	return xfp_fail(r->err, XFP_BAD_INPUT, "%s: %s", r->place->shown, what);
}

static enum xfp_status bad_tensor(const struct torch_reader *r, const char *name, const char *what)
{
	return xfp_fail(r->err, XFP_BAD_INPUT, "%s: tensor %s: %s", r->place->shown, xfp_printable(name).text, what);
}

/* ---- the archive ---------------------------------------------------------------------------------- */

enum xfp_status xfp_torch_layout(const struct xfp_place *place, enum xfp_torch_layout *layout, struct xfp_error *err)
{
	/* Beginning of the old layout: a pickle of protocol 2 with a magic number. */
	static const unsigned char old[] = { 0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46 };
	unsigned char start[8] = { 0 };
	struct xfp_identity identity;
	uint64_t bytes;
	int fd = -1;
	enum xfp_status status = xfp_place_open(place, &fd, &bytes, &identity, err);

	*layout = XFP_TORCH_NONE;
	if (!status && bytes >= sizeof start &&
	    !(status = xfp_pread(fd, start, sizeof start, place->offset, place->shown, err))) {
		if (!memcmp(start, "PK\3\4", 4) || !memcmp(start, "PK\5\6", 4))
			*layout = XFP_TORCH_ZIP;
		else if (!memcmp(start, old, sizeof old))
			*layout = XFP_TORCH_OLD;
		else if (!memcmp(start, "version ", 8))
			*layout = XFP_TORCH_POINTER;
	}
	if (fd >= 0)
		close(fd);
	return status;
}

/* Find a member; NULL if there is none. Compressed members are not written by torch.save. */
static const struct xfp_zip_member *find(const struct torch_reader *r, const char *name, size_t length)
{
	const struct xfp_zip_member *member;
	char *path = xfp_formatted("%s%.*s", r->inside, (int)length, name);

	member = path ? xfp_zip_find(&r->zip, path) : NULL;
	free(path);
	return member;
}

static enum xfp_status slurp(const struct torch_reader *r, const struct xfp_zip_member *member, char **text)
{
	if (member->compressed)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: %s: is compressed, which torch.save never does; write the file again: " IN_PYTHON,
				r->place->shown, xfp_printable(member->name).text);
	if (!(*text = malloc((size_t)member->bytes + 1)))
		return xfp_no_memory_for(r->err, r->place->shown);
	(*text)[member->bytes] = 0;
	return xfp_pread(r->fd, *text, (size_t)member->bytes, member->offset, r->place->shown, r->err);
}

/* Refuse other zip files of PyTorch, and big-endian data. */
static enum xfp_status check_archive(struct torch_reader *r, const struct xfp_zip_member **pickle)
{
	static const char order[] = "byteorder", pkl[] = "data.pkl", constants[] = "constants.pkl";
	const struct xfp_zip_member *member;
	const char *first = r->zip.count ? r->zip.members[r->zip.first].name : "";
	const char *slash = strchr(first, '/');
	enum xfp_status status;
	char *text = NULL;
	bool big;

	if (!(r->inside = strndup(first, slash ? (size_t)(slash + 1 - first) : 0)))
		return xfp_no_memory_for(r->err, r->place->shown);
	if (find(r, constants, strlen(constants)))
		return bad(r, "is a program (TorchScript), not weights: save the model's state_dict, in Python by "
			      "torch.save(model.state_dict(), ...)");
	if (!(*pickle = find(r, pkl, strlen(pkl))))
		return bad(r, "is a zip archive, but not one of torch.save: it has no data.pkl");
	if ((*pickle)->bytes > XFP_PICKLE_MAX)
		return bad(r, "its data.pkl takes more than 100 MB");
	if (!(member = find(r, order, strlen(order))))
		return XFP_OK;
	if (member->bytes > 16)
		return bad(r, "its byteorder is invalid" AGAIN);
	status = slurp(r, member, &text);
	big = !status && strcmp(text, "little") != 0;
	free(text);
	if (big)
		return bad(r, "was written on a big-endian machine, which is not supported: " IN_PYTHON
			      " on a little-endian one");
	return status;
}

/* ---- tensors -------------------------------------------------------------------------------------- */

/* Find the member of a tensor's storage; all tensors that share it must agree on its type. */
static enum xfp_status find_storage(struct torch_reader *r, const char *name, const struct xfp_pickle_tensor *from,
				    struct xfp_storage *storage)
{
	const struct xfp_zip_member *member;
	char key[64];
	const char **class;

	if (from->absent)
		return bad_tensor(r, name, "has no data: it was saved from the device \"meta\"");
	if (from->key_length > 32 || memchr(from->key, '/', from->key_length))
		return bad_tensor(r, name, "its storage has an invalid name" AGAIN);
	snprintf(key, sizeof key, "data/%.*s", (int)from->key_length, from->key);
	if (!(member = find(r, key, strlen(key))))
		return xfp_fail(r->err, XFP_BAD_INPUT, "%s: tensor %s: its storage, %s%s, is not in the file" AGAIN,
				r->place->shown, xfp_printable(name).text, r->inside, key);
	class = &r->storage[member - r->zip.members];
	if (*class && *class != from->storage)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: tensor %s: reads its storage as %s, but another tensor as %s" AGAIN,
				r->place->shown, xfp_printable(name).text, from->storage, *class);
	*class = from->storage;
	if (member->compressed)
		return bad_tensor(
			r, name,
			"its storage is compressed, which torch.save never does: write the file again: " IN_PYTHON);
	if (member->bytes != from->storage_bytes)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: tensor %s: its storage should have %" PRIu64 " bytes, but has %" PRIu64 AGAIN,
				r->place->shown, xfp_printable(name).text, from->storage_bytes, member->bytes);
	*storage = (struct xfp_storage){ member->offset, member->bytes };
	return XFP_OK;
}

/* Two elements share a byte: torch counts bytes, and their order is kept. */
static const char *unpair(struct xfp_source_tensor *t)
{
	if (t->recipe)
		return "is a view of elements of 4 bits, which is not supported: save it with .contiguous()";
	if (!t->rank || !xfp_mul(t->shape[t->rank - 1], 2, &t->shape[t->rank - 1]))
		return "has no dimension of pairs";
	t->dtype = XFP_F4;
	return NULL;
}

static enum xfp_status add_tensor(struct torch_reader *r, const struct xfp_pickle_tensor *from)
{
	struct xfp_source_tensor *t = &r->tensors[r->count];
	struct xfp_storage storage;
	enum xfp_status status;
	const char *wrong;
	bool failed;

	*t = (struct xfp_source_tensor){ .name = strndup(from->name, from->name_length), .dtype = from->dtype };
	if (!t->name)
		return xfp_no_memory_for(r->err, r->place->shown);
	r->count++;
	if (from->name_length > XFP_MAX_NAME)
		return xfp_fail(r->err, XFP_BAD_INPUT,
				"%s: tensor %s: its name has %zu bytes, more than the %d supported", r->place->shown,
				xfp_printable(t->name).text, from->name_length, XFP_MAX_NAME);
	if (from->rank > XFP_MAX_RANK)
		return xfp_fail(r->err, XFP_BAD_INPUT, "%s: tensor %s: has more than %d dimensions; not supported",
				r->place->shown, xfp_printable(t->name).text, XFP_MAX_RANK);
	t->rank = from->rank;
	memcpy(t->shape, from->shape, sizeof t->shape);
	if ((status = find_storage(r, t->name, from, &storage)))
		return status;
	if (from->halves)
		t->dtype = XFP_U8;
	wrong = xfp_strided_place(t, &storage, from->offset, from->stride, &r->parts, &failed);
	if (failed)
		return xfp_no_memory_for(r->err, r->place->shown);
	if (!wrong && from->halves)
		wrong = unpair(t);
	return wrong ? bad_tensor(r, t->name, wrong) : XFP_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct xfp_source_tensor *)a)->name, ((const struct xfp_source_tensor *)b)->name);
}

static enum xfp_status add_tensors(struct torch_reader *r, const struct xfp_pickle *pickle)
{
	uint32_t count = xfp_pickle_count(pickle);
	enum xfp_status status = XFP_OK;

	r->tensors = malloc(count * sizeof *r->tensors + 1);
	r->storage = calloc(r->zip.count + (size_t)1, sizeof *r->storage);
	if (!r->tensors || !r->storage)
		return xfp_no_memory_for(r->err, r->place->shown);
	for (uint32_t i = 0; !status && i < count; i++) {
		struct xfp_pickle_tensor from;

		if (!(status = xfp_pickle_tensor(pickle, i, &from, r->err)))
			status = add_tensor(r, &from);
	}
	if (status)
		return status;
	qsort(r->tensors, r->count, sizeof *r->tensors, by_name);
	for (uint32_t i = 1; i < r->count; i++)
		if (!strcmp(r->tensors[i - 1].name, r->tensors[i].name))
			return bad_tensor(r, r->tensors[i].name, "its name occurs twice" AGAIN);
	return XFP_OK;
}

static void note_ignored(const struct torch_reader *r, const struct xfp_pickle *pickle, struct xfp_checkpoint *notes)
{
	const char *first;
	size_t length;
	uint32_t ignored = xfp_pickle_ignored(pickle, &first, &length);
	char name[100];

	if (!ignored || !notes)
		return;
	snprintf(name, sizeof name, "%.*s", (int)(length < 90 ? length : 90), first);
	xfp_checkpoint_note(notes, "%s: contains %u other value%s besides the model's tensors (first: %s); ignored",
			    xfp_printable(xfp_base_name(r->place->shown)).text, ignored, ignored == 1 ? "" : "s",
			    *name ? xfp_printable(name).text : "one without a name");
}

enum xfp_status xfp_torch_file_read(const struct xfp_place *place, struct xfp_checkpoint *notes,
				    struct xfp_tensor_file *out, struct xfp_error *err)
{
	struct torch_reader r = { .place = place, .fd = -1, .err = err };
	const struct xfp_zip_member *member = NULL;
	struct xfp_pickle *pickle = NULL;
	struct xfp_identity identity;
	char *text = NULL, *where = NULL;
	enum xfp_torch_layout layout;
	struct xfp_place whole = *place;
	enum xfp_status status;

	if ((status = xfp_torch_layout(place, &layout, err)))
		return status;
	if (layout == XFP_TORCH_POINTER)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is a Git LFS pointer, not the file itself; run git lfs pull",
				place->shown);
	if (layout == XFP_TORCH_NONE)
		return xfp_fail(
			err, XFP_BAD_INPUT,
			"%s: is not a torch.save file of PyTorch 1.6 or newer, or is damaged: download it again",
			place->shown);
	if (layout == XFP_TORCH_OLD)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: has the layout of PyTorch before 1.6, which is not supported: " IN_PYTHON,
				place->shown);
	if ((status = xfp_place_open(place, &r.fd, &whole.bytes, &identity, err)))
		goto done;
	if ((status = xfp_zip_read(r.fd, &whole, &r.zip, err)) || (status = check_archive(&r, &member)) ||
	    (status = slurp(&r, member, &text)))
		goto done;
	if (!(where = xfp_formatted("%s: %s", place->shown, xfp_printable(member->name).text))) {
		status = xfp_no_memory_for(err, place->shown);
		goto done;
	}
	r.parts = 1024 + member->bytes / 16;
	if ((status = xfp_pickle_read(text, (size_t)member->bytes, where, &pickle, err)) ||
	    (status = add_tensors(&r, pickle)))
		goto done;
	note_ignored(&r, pickle, notes);
	if (notes)
		xfp_zip_count(&r.zip, notes);
	*out = (struct xfp_tensor_file){ r.tensors, r.count, identity };
	r.tensors = NULL;
	r.count = 0;

done:
	xfp_tensor_file_free(&(struct xfp_tensor_file){ .tensors = r.tensors, .count = r.count });
	xfp_pickle_close(pickle);
	xfp_zip_free(&r.zip);
	free(r.storage);
	free(r.inside);
	free(where);
	free(text);
	if (r.fd >= 0)
		close(r.fd);
	return status;
}
