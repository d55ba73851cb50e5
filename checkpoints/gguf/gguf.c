/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf.c - models of llama.cpp: one GGUF file, or several parts.
 *
 * Files of a model:
 *   MODEL is a GGUF file          that file; if its metadata says that it is one of several parts, all parts, which
 *                                 must be in the same folder: NAME-00001-of-00005.gguf and so on
 *   MODEL is a folder with GGUF   the same, if its files form one model; a vision tower (mmproj) is ignored
 *
 * Only the first part has metadata. Each part is checked separately; together they contain each tensor once.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/path.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/gguf/config.h"
#include "checkpoints/gguf/describe.h"
#include "checkpoints/gguf/synthesized.h"
#include "checkpoints/note.h"

#define SUFFIX ".gguf"
#define MAX_FILES 99999 /* five digits */

/* ---- probe -------------------------------------------------------------------------------------- */

static enum xfp_status has_magic(const char *path, bool *has, struct xfp_error *err)
{
	unsigned char head[4];
	enum xfp_status status = xfp_file_head(path, head, sizeof head, has, err);

	*has = !status && *has && !memcmp(head, XFP_GGUF_MAGIC, sizeof head);
	return status;
}

/* ---- names of files ----------------------------------------------------------------------------- */

/* Parse NAME-00002-of-00005.gguf: the length of NAME, and both numbers. Returns false for other names. */
static bool split_name(const char *name, size_t *length, uint32_t *number, uint32_t *count)
{
	static const char digits[] = "0123456789";
	size_t all = strlen(name), tail = strlen("-00001-of-00001" SUFFIX);
	const char *at = all > tail ? name + all - tail : name;

	if (all <= tail || !xfp_ends_with(name, SUFFIX) || *at != '-' || strspn(at + 1, digits) != 5 ||
	    strncmp(at + 6, "-of-", 4) != 0 || strspn(at + 10, digits) != 5)
		return false;
	*length = all - tail;
	*number = (uint32_t)strtoul(at + 1, NULL, 10);
	*count = (uint32_t)strtoul(at + 10, NULL, 10);
	return true;
}

/* Find the only model: return the name of one of its files, borrowed. */
static enum xfp_status choose(struct xfp_checkpoint *c, const struct xfp_listing *listing, const char **chosen,
			      struct xfp_error *err)
{
	const char *first = NULL, *other = NULL;
	uint32_t number, files = 0, its_files;
	size_t length, prefix = 0;

	for (uint32_t i = 0; i < listing->count; i++) {
		const char *name = listing->names[i];

		if (!xfp_ends_with(name, SUFFIX))
			continue;
		if (!strncmp(name, "mmproj", 6)) {
			xfp_checkpoint_note(c, "%s: is a tower for images or audio; ignored", xfp_printable(name).text);
		} else if (!first) {
			first = name;
			prefix = split_name(first, &length, &number, &files) ? length : strlen(first);
		} else if (!split_name(name, &length, &number, &its_files) || its_files != files || length != prefix ||
			   strncmp(name, first, prefix) != 0) {
			other = name;
		}
	}
	if (!first)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: contains no GGUF model; download it", listing->folder);
	if (other)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: contains several GGUF models (%s, %s ...); %s",
				listing->folder, xfp_printable(first).text, xfp_printable(other).text,
				listing->zip ? "unpack it, and name the file of one" : "name the file of one");
	*chosen = first;
	return XFP_OK;
}

/* ---- files -------------------------------------------------------------------------------------- */

static enum xfp_status add_file(struct xfp_gguf_model *m, const char *name)
{
	struct xfp_gguf_file *grown = realloc(m->files, (m->file_count + (size_t)1) * sizeof *grown);
	struct xfp_checkpoint *c = m->checkpoint;
	struct xfp_source_file *file = NULL;
	enum xfp_status status;
	struct xfp_place place;
	char *path = NULL;

	if (!grown)
		return xfp_no_memory_for(m->err, c->folder);
	m->files = grown;
	if (!(status = xfp_listing_file(c, m->listing, name, &file, m->err)) &&
	    !(status = xfp_listing_place(m->listing, name, &place, &path, m->err)) &&
	    !(status = xfp_gguf_read(&place, &grown[m->file_count], m->err))) {
		file->identity = grown[m->file_count].identity;
		grown[m->file_count++].number = (uint32_t)(file - c->files);
	}
	free(path);
	return status;
}

/* Read the number of files from a file's metadata; 1 if unspecified. */
static enum xfp_status read_count(const struct xfp_gguf_model *m, const struct xfp_gguf_file *file, uint64_t *count)
{
	const struct xfp_gguf_value *value = xfp_gguf_find(&file->metadata, "split.count");

	*count = 1;
	if (value && (!xfp_gguf_integer(value, 0, count) || *count > MAX_FILES))
		return xfp_fail(m->err, XFP_BAD_INPUT,
				"%s: metadata split.count: is not a valid number of files; download it again",
				file->shown);
	if (!*count)
		*count = 1;
	return XFP_OK;
}

/* Check that a file is part `number`, counted from 0. */
static enum xfp_status check_split(const struct xfp_gguf_model *m, uint64_t number, uint64_t count)
{
	const struct xfp_gguf_file *file = &m->files[number];
	uint64_t own, its_count;
	enum xfp_status status;

	if ((status = read_count(m, file, &its_count)))
		return status;
	if (!xfp_gguf_integer(xfp_gguf_find(&file->metadata, "split.no"), 0, &own) || own != number ||
	    its_count != count)
		return xfp_fail(m->err, XFP_BAD_INPUT,
				"%s: is not part %" PRIu64 " of %" PRIu64 ", although its name says so; download it "
				"again",
				file->shown, number + 1, count);
	return XFP_OK;
}

static enum xfp_status look(const struct xfp_gguf_model *m, const char *name, bool *there)
{
	enum xfp_status status;
	struct stat st;

	if (m->listing->zip) {
		*there = xfp_listing_has(m->listing, name);
		return XFP_OK;
	}
	status = xfp_folder_stat(m->listing->folder, name, &st, m->err);
	*there = !status && st.st_mode;
	return status;
}

static enum xfp_status open_split(struct xfp_gguf_model *m, const char *name, uint64_t count)
{
	const char *folder = m->listing->folder;
	enum xfp_status status = XFP_OK;
	uint32_t number, total, missing = 0;
	char *first = NULL;
	size_t length;

	if (!split_name(name, &length, &number, &total) || total != count)
		return xfp_fail(m->err, XFP_BAD_INPUT,
				"%s/%s: is one of %" PRIu64
				" files, but its name is not NAME-NUMBER-of-%05" PRIu64 SUFFIX
				"; restore the original name",
				folder, xfp_printable(name).text, count, count);
	/* Find all missing files first, so that the message has their number. */
	for (uint64_t i = 0; !status && i < count; i++) {
		char *part = xfp_formatted("%.*s-%05" PRIu64 "-of-%05" PRIu64 SUFFIX, (int)length, name, i + 1, count);
		bool there = false;

		if (!part)
			status = xfp_no_memory_for(m->err, folder);
		else if (!(status = look(m, part, &there)) && !there && !missing++) {
			first = part;
			part = NULL;
		}
		free(part);
	}
	if (!status && missing)
		status = xfp_fail(m->err, XFP_BAD_INPUT,
				  "%s/%s: missing: the model has %" PRIu64 " files, and %" PRIu32
				  " of them are missing: download them",
				  folder, xfp_printable(first).text, count, missing);
	free(first);
	for (uint64_t i = 0; !status && i < count; i++) {
		char *part = xfp_formatted("%.*s-%05" PRIu64 "-of-%05" PRIu64 SUFFIX, (int)length, name, i + 1, count);

		status = part ? add_file(m, part) : xfp_no_memory_for(m->err, folder);
		free(part);
		if (!status)
			status = check_split(m, i, count);
	}
	return status;
}

/* Open the named file, and its other parts. */
static enum xfp_status open_files(struct xfp_gguf_model *m, const char *name)
{
	struct xfp_checkpoint *c = m->checkpoint;
	enum xfp_status status;
	uint64_t count;

	if (!xfp_ends_with(name, SUFFIX) && strstr(name, SUFFIX) && (strstr(name, ".part") || strstr(name, "-split-")))
		return xfp_fail(m->err, XFP_BAD_INPUT,
				"%s/%s: is a piece of a split GGUF; join the pieces with cat first", m->listing->folder,
				xfp_printable(name).text);
	if ((status = add_file(m, name)) || (status = read_count(m, &m->files[0], &count)) || count == 1)
		return status;
	/* Start again with the first part. */
	xfp_gguf_free(&m->files[0]);
	free(c->files[0].name);
	free(c->files[0].path);
	m->file_count = c->file_count = 0;
	return open_split(m, name, count);
}

/* ---- tensors ------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct xfp_gguf_stored *)a)->tensor->name,
		      ((const struct xfp_gguf_stored *)b)->tensor->name);
}

static enum xfp_status list_stored(struct xfp_gguf_model *m)
{
	const struct xfp_gguf_value *total = xfp_gguf_find(&m->files[0].metadata, "split.tensors.count");
	uint64_t count = 0, stated;

	for (uint32_t f = 0; f < m->file_count; f++)
		count += m->files[f].count;
	if (m->file_count > 1 && xfp_gguf_integer(total, 0, &stated) && stated != count)
		return xfp_fail(m->err, XFP_BAD_INPUT,
				"%s: claims %" PRIu64 " tensors in %" PRIu32 " files, but there are %" PRIu64
				"; download them again",
				m->files[0].shown, stated, m->file_count, count);
	if (!count)
		return xfp_fail(m->err, XFP_BAD_INPUT, "%s: contains no weights; name a file with the model's weights",
				m->files[0].shown);
	if (count > XFP_GGUF_MAX_TENSORS)
		return xfp_fail(m->err, XFP_BAD_INPUT,
				"%s: has %" PRIu64 " tensors, more than the %u that are supported", m->files[0].shown,
				count, XFP_GGUF_MAX_TENSORS);
	if (!(m->stored = calloc(count + 1, sizeof *m->stored)))
		return xfp_no_memory_for(m->err, m->checkpoint->folder);
	for (uint32_t f = 0; f < m->file_count; f++)
		for (uint32_t t = 0; t < m->files[f].count; t++)
			m->stored[m->stored_count++] = (struct xfp_gguf_stored){ &m->files[f].tensors[t], f, false };
	qsort(m->stored, m->stored_count, sizeof *m->stored, by_name);
	for (uint32_t i = 1; i < m->stored_count; i++)
		if (!by_name(&m->stored[i - 1], &m->stored[i]))
			return xfp_gguf_bad(m, &m->stored[i], "is also in %s; download both again",
					    xfp_printable(xfp_base_name(m->files[m->stored[i - 1].file].shown)).text);
	return XFP_OK;
}

/* Reject other kinds of GGUF files. */
static enum xfp_status check_kind(const struct xfp_gguf_model *m)
{
	static const struct {
		const char *key, *value, *what;
	} others[] = {
		{ "general.architecture", "clip", "a tower for images or audio" },
		{ "general.type", "mmproj", "a tower for images or audio" },
		{ "general.type", "adapter", "an adapter, not a model" },
		{ "general.type", "imatrix", "an importance matrix, not a model" },
	};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (xfp_gguf_text_is(xfp_gguf_find(&m->files[0].metadata, others[i].key), others[i].value))
			return xfp_fail(m->err, XFP_BAD_INPUT, "%s: is %s; name the model that it belongs to",
					m->files[0].shown, others[i].what);
	return XFP_OK;
}

/* Return the packed type of most bytes. */
static const char *main_type(const struct xfp_gguf_model *m)
{
	uint64_t bytes[XFP_GGML_NUMBERS] = { 0 }, max = 0;
	const char *name = NULL;

	for (uint32_t i = 0; i < m->stored_count; i++) {
		const struct xfp_gguf_tensor *t = m->stored[i].tensor;

		if (t->type->form == XFP_GGML_DTYPE)
			continue;
		bytes[t->number] += t->bytes;
		if (bytes[t->number] > max) {
			max = bytes[t->number];
			name = t->type->name;
		}
	}
	return name;
}

static enum xfp_status read_layers(struct xfp_gguf_model *m)
{
	enum xfp_status status;
	uint64_t blocks;

	if (m->architecture == XFP_GGUF_ARCHITECTURES)
		return XFP_OK;
	if ((status = xfp_gguf_read_number(m, "block_count", 0, UINT16_MAX, &blocks)))
		return status;
	if (!xfp_gguf_integer(xfp_gguf_find_in(&m->files[0].metadata, m->prefix, "nextn_predict_layers"), 0,
			      &m->drafts))
		m->drafts = 0;
	if (m->drafts >= blocks)
		return xfp_gguf_bad_key(m, "nextn_predict_layers",
					"must be less than the number of layers; download the file again");
	m->layers = blocks - m->drafts;
	return XFP_OK;
}

/* For unknown architectures, tensors keep llama.cpp's names, and other changes by the converter are unknown. */
static void note_unknown(struct xfp_gguf_model *m)
{
	char *name = xfp_gguf_text_copy(xfp_gguf_find(&m->files[0].metadata, "general.architecture"));

	m->checkpoint->unread = "a GGUF of an unsupported architecture; supported are " XFP_GGUF_KNOWN;
	xfp_checkpoint_note(m->checkpoint, "architecture %s is not one of " XFP_GGUF_KNOWN "; tensors keep their names",
			    name ? xfp_printable(name).text : "(missing)");
	free(name);
}

enum xfp_status xfp_gguf_open_listing(struct xfp_checkpoint *c, const struct xfp_listing *listing, const char *name,
				      struct xfp_error *err)
{
	struct xfp_gguf_model m = { .checkpoint = c, .listing = listing, .err = err };
	enum xfp_status status;

	if ((!name && (status = choose(c, listing, &name, err))) || (status = open_files(&m, name)) ||
	    (status = check_kind(&m)) || (status = list_stored(&m)))
		goto done;
	m.architecture = xfp_gguf_architecture(&m.files[0].metadata, &m.prefix);
	if (m.architecture == XFP_GGUF_ARCHITECTURES)
		note_unknown(&m);
	c->packed = main_type(&m);
	c->arranged = true;
	c->apart = !c->is_folder; /* self-contained; its neighbours may be unrelated */
	if ((status = read_layers(&m)) || (status = xfp_gguf_make_config(&m)) || (status = xfp_gguf_arrange(&m)) ||
	    (status = xfp_gguf_make_metadata(&m.files[0], c, err)) ||
	    (status = xfp_gguf_make_tokenizer(&m.files[0].metadata, c, err)))
		goto done;

done:
	for (uint32_t f = 0; f < m.file_count; f++)
		xfp_gguf_free(&m.files[f]);
	free(m.files);
	free(m.stored);
	return status;
}

static enum xfp_status open_gguf(const char *model, struct xfp_checkpoint *c, struct xfp_error *err)
{
	struct xfp_listing listing = { 0 };
	const char *name = NULL;
	enum xfp_status status;

	/* For a file, its parts are known, and other files in the folder are ignored. */
	if (!(status = xfp_folder_place(c, model, &name, err)) && c->is_folder)
		status = xfp_listing_of_folder(c->folder, &listing, err);
	else if (!status && !(listing.folder = strdup(c->folder)))
		status = xfp_no_memory_for(err, model);
	if (!status)
		status = xfp_gguf_open_listing(c, &listing, name, err);
	xfp_listing_free(&listing);
	return status;
}

const struct xfp_checkpoint_format xfp_format_gguf = { "gguf", has_magic, open_gguf, xfp_gguf_header };
