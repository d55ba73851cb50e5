/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.c - decode components to stored rows, in pieces of about 1 MiB.
 *
 * A piece contains as many of the requested rows as are close enough to be fetched at once. Data that is already in
 * memory, such as the scales of a block with more rows than a piece, is not fetched again.
 */
#include "checkpoints/packed/decoder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/file.h"
#include "base/system/filesystem.h"
#include "checkpoints/packed/codec.h"

#define PIECE_BYTES ((uint64_t)1 << 20) /* of all components fetched at once, after the first row */
#define GAP_BYTES ((uint64_t)4 << 10)   /* lines further apart are read separately */
#define BLOCK_PART 4                    /* fraction of a block's rows, so that it is fetched few times */
#define SPARSE 4                        /* a piece contains at least one in this many fetched rows */

struct open_file {
	uint32_t file;
	int fd;
};

/* The part of a component that is in memory. */
struct fetched {
	unsigned char *bytes;
	uint64_t capacity, pitch;
	struct xfp_window window;
	uint32_t part; /* UINT32_MAX if empty */
};

struct xfp_decoder {
	struct xfp_packed_source source;
	struct open_file *files;
	uint32_t file_count;
	struct fetched fetched[XFP_COMPONENTS];
};

static const struct xfp_codec_methods *const methods[XFP_CODECS] = {
	[XFP_CODEC_PLAIN] = &xfp_codec_plain,
	[XFP_CODEC_FP8] = &xfp_codec_fp8,
	[XFP_CODEC_MXFP4] = &xfp_codec_mxfp4,
	[XFP_CODEC_GPTQ] = &xfp_codec_gptq,
	[XFP_CODEC_AWQ] = &xfp_codec_awq,
	[XFP_CODEC_AWQ_GEMV] = &xfp_codec_awq_gemv,
	[XFP_CODEC_AWQ_GEMV_FAST] = &xfp_codec_awq_gemv_fast,
	[XFP_CODEC_NVFP4] = &xfp_codec_nvfp4,
	[XFP_CODEC_INT] = &xfp_codec_int,
	[XFP_CODEC_EXL2] = &xfp_codec_exl2,
	[XFP_CODEC_GGUF] = &xfp_codec_gguf,
	[XFP_CODEC_REVERSED] = &xfp_codec_reversed,
};

const struct xfp_codec_methods *xfp_codec_methods(enum xfp_codec codec)
{
	return methods[codec];
}

/* ---- opening ------------------------------------------------------------------------------------ */

/* Return the path of the first component, to identify a tensor. */
static const char *path_of(const struct xfp_packed_source *source)
{
	return source->files[source->recipe->parts[0].components[0].file].path;
}

static enum xfp_status bad(const struct xfp_packed_source *source, const char *what, struct xfp_error *err)
{
	return xfp_fail(err, XFP_BAD_INPUT, "%s: tensor %s: %s; convert the checkpoint again", path_of(source),
			xfp_printable(source->tensor).text, what);
}

/* Check that the parts match each other, and that their codecs accept them. */
static enum xfp_status check(const struct xfp_packed_source *source, struct xfp_error *err)
{
	const struct xfp_recipe *recipe = source->recipe;
	uint64_t sum = 0, size;

	for (uint32_t i = 0; i < recipe->part_count; i++) {
		const struct xfp_recipe_part *part = &recipe->parts[i];

		if (part->codec >= XFP_CODECS || part->version != xfp_codec_version(part->codec) ||
		    !methods[part->codec]->fits(part, source->dtype))
			return bad(source, "its packed form is not supported", err);
		if ((recipe->beside ? part->rows != recipe->rows : part->cols != recipe->cols) ||
		    !xfp_add(sum, recipe->beside ? part->cols : part->rows, &sum))
			return bad(source, "its parts do not fit together", err);
	}
	if (!recipe->rows || !recipe->cols || sum != (recipe->beside ? recipe->cols : recipe->rows) ||
	    !xfp_mul(recipe->rows, recipe->cols, &size) || !xfp_mul(size, sizeof(uint64_t), &size) ||
	    (recipe->transposed && recipe->rows % recipe->transposed) ||
	    (recipe->outer && (!recipe->inner || !xfp_mul(recipe->outer, recipe->inner, &size) || recipe->rows % size)))
		return bad(source, "its parts do not make up its rows", err);
	return XFP_OK;
}

static enum xfp_status open_file(struct xfp_decoder *d, uint32_t number, uint64_t end, struct xfp_error *err)
{
	const struct xfp_source_file *file = &d->source.files[number];
	struct open_file *grown;
	enum xfp_status status;
	struct stat st;
	int fd;

	for (uint32_t i = 0; i < d->file_count; i++)
		if (d->files[i].file == number) {
			if (!fstat(d->files[i].fd, &st) && (uint64_t)st.st_size >= end)
				return XFP_OK;
			goto shorter;
		}
	if (!(grown = realloc(d->files, (d->file_count + (size_t)1) * sizeof *grown)))
		return xfp_no_memory_for(err, file->path);
	d->files = grown;
	if ((status = xfp_open_identified(file->path, d->source.identified ? &file->identity : NULL, &fd, &st, err)))
		return status;
	d->files[d->file_count++] = (struct open_file){ number, fd };
	if ((uint64_t)st.st_size >= end)
		return XFP_OK;
shorter:
	return xfp_fail(err, XFP_BAD_INPUT, "%s: tensor %s: the file has become shorter; download it again", file->path,
			xfp_printable(d->source.tensor).text);
}

enum xfp_status xfp_decoder_open(const struct xfp_packed_source *source, struct xfp_decoder **out,
				 struct xfp_error *err)
{
	const struct xfp_recipe *recipe = source->recipe;
	struct xfp_decoder *d = NULL;
	enum xfp_status status;

	if ((status = check(source, err)))
		return status;
	if (!(d = calloc(1, sizeof *d)))
		return xfp_no_memory_for(err, path_of(source));
	d->source = *source;
	for (int i = 0; i < XFP_COMPONENTS; i++)
		d->fetched[i].part = UINT32_MAX;
	for (uint32_t i = 0; !status && i < recipe->part_count; i++)
		for (uint32_t k = 0; !status && k < recipe->parts[i].component_count; k++) {
			const struct xfp_component *component = &recipe->parts[i].components[k];
			uint64_t end;

			status = xfp_add(component->offset, component->bytes, &end)
					 ? open_file(d, component->file, end, err)
					 : bad(source, "a component lies past the end of any file", err);
		}
	if (status) {
		xfp_decoder_close(d);
		return status;
	}
	*out = d;
	return XFP_OK;
}

void xfp_decoder_close(struct xfp_decoder *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->file_count; i++)
		close(d->files[i].fd);
	for (int i = 0; i < XFP_COMPONENTS; i++)
		free(d->fetched[i].bytes);
	free(d->files);
	free(d);
}

/* ---- fetching ----------------------------------------------------------------------------------- */

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Return the distance of lines in memory; and the bytes of all lines. */
static uint64_t pitch_of(const struct xfp_window *w)
{
	return w->stride - w->run <= (w->apart ? 0 : GAP_BYTES) ? w->stride : w->run;
}
static uint64_t span_of(const struct xfp_window *w)
{
	return w->run && w->lines ? (w->lines - 1) * pitch_of(w) + w->run : 0;
}

/* Extend a requested rectangle to whole grains. */
static struct xfp_rectangle whole_grains(const struct xfp_recipe_part *part, struct xfp_rectangle r)
{
	uint64_t rows, cols, end;

	methods[part->codec]->grain(part, &rows, &cols);
	end = r.row + r.rows;
	r.row -= r.row % rows;
	r.rows = lower(xfp_align(end, rows), part->rows) - r.row;
	end = r.col + r.cols;
	r.col -= r.col % cols;
	r.cols = lower(xfp_align(end, cols), part->cols) - r.col;
	return r;
}

static uint64_t bytes_of(const struct xfp_recipe_part *part, const struct xfp_rectangle *of)
{
	uint64_t bytes = 0;

	for (int role = 0; role < XFP_COMPONENTS; role++) {
		struct xfp_window w = methods[part->codec]->window(part, (enum xfp_component_role)role, of);

		bytes += span_of(&w);
	}
	return bytes;
}

static int descriptor(const struct xfp_decoder *d, uint32_t file)
{
	uint32_t i = 0;

	while (d->files[i].file != file)
		i++;
	return d->files[i].fd;
}

static bool holds(const struct fetched *f, uint32_t part, const struct xfp_window *w)
{
	return f->part == part && f->window.offset == w->offset && f->window.run == w->run &&
	       f->window.stride == w->stride && f->window.lines == w->lines;
}

/* Fetch a component; data that is already in memory is not `fresh`. */
static enum xfp_status fetch_one(struct xfp_decoder *d, uint32_t number, const struct xfp_component *component,
				 const struct xfp_window *w, bool *fresh, struct xfp_error *err)
{
	struct fetched *f = &d->fetched[component->role];
	const char *path = d->source.files[component->file].path;
	uint64_t pitch = pitch_of(w), size = span_of(w), lines = pitch == w->stride ? 1 : w->lines;
	int fd = descriptor(d, component->file);
	enum xfp_status status = XFP_OK;

	*fresh = !holds(f, number, w);
	if (!*fresh)
		return XFP_OK;
	f->part = UINT32_MAX;
	if (size > f->capacity) {
		free(f->bytes);
		f->capacity = 0;
		if (!(f->bytes = malloc(size)))
			return xfp_no_memory_for(err, path);
		f->capacity = size;
	}
	for (uint64_t i = 0; !status && i < lines; i++)
		status = xfp_pread(fd, f->bytes + i * pitch, lines == 1 ? size : w->run,
				   component->offset + w->offset + i * w->stride, path, err);
	if (status)
		return xfp_context(err, status, "tensor %s", xfp_printable(d->source.tensor).text);
	f->pitch = pitch;
	f->window = *w;
	f->part = number;
	return XFP_OK;
}

/* Let the codec check a component that was just read. */
static enum xfp_status check_fetched(struct xfp_decoder *d, uint32_t number, const struct xfp_component *component,
				     const struct xfp_fetched *from, struct xfp_error *err)
{
	const struct xfp_recipe_part *part = &d->source.recipe->parts[number];
	const char *wrong = NULL;
	enum xfp_status status = XFP_OK;

	if (methods[part->codec]->check)
		status = methods[part->codec]->check(part, component->role, from, &wrong, err);
	if (!status && wrong)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: tensor %s: %s", d->source.files[component->file].path,
				  xfp_printable(d->source.tensor).text, wrong);
	if (status)
		d->fetched[component->role].part = UINT32_MAX;
	return status;
}

static enum xfp_status fetch(struct xfp_decoder *d, uint32_t number, struct xfp_fetched *from, struct xfp_error *err)
{
	const struct xfp_recipe_part *part = &d->source.recipe->parts[number];
	enum xfp_status status = XFP_OK;
	bool fresh = false;

	for (uint32_t k = 0; !status && k < part->component_count; k++) {
		const struct xfp_component *component = &part->components[k];
		struct xfp_window w = methods[part->codec]->window(part, component->role, &from->of);

		if (!span_of(&w))
			continue;
		status = fetch_one(d, number, component, &w, &fresh, err);
		from->bytes[component->role] = d->fetched[component->role].bytes;
		from->pitch[component->role] = d->fetched[component->role].pitch;
		if (!status && fresh)
			status = check_fetched(d, number, component, from, err);
	}
	return status;
}

/* ---- pieces ------------------------------------------------------------------------------------- */

/* Return the stored row of a row of the tensor's matrix. */
static uint64_t stored_row(const struct xfp_recipe *recipe, uint64_t row)
{
	uint64_t both = recipe->outer * recipe->inner, i, j;

	if (!both)
		return row;
	i = row % both / recipe->inner;
	j = row % recipe->inner;
	return row - row % both + j * recipe->outer + i;
}

/* Return the part that contains a stored row, and its first row; for parts side by side, the first. */
static uint32_t part_of(const struct xfp_recipe *recipe, uint64_t row, uint64_t *first)
{
	uint32_t number = 0;

	*first = 0;
	while (!recipe->beside && row >= *first + recipe->parts[number].rows)
		*first += recipe->parts[number++].rows;
	return number;
}

/* Return how many of the requested rows form a piece, and the rows [low, low + span) of their part. */
static uint64_t piece_of(const struct xfp_recipe *recipe, uint64_t first, uint64_t step, uint64_t rows, uint64_t *low,
			 uint64_t *span)
{
	uint64_t before, start = stored_row(recipe, first), end, count = 1, grain, ignored;
	uint32_t number = part_of(recipe, start, &before);
	const struct xfp_recipe_part *part = &recipe->parts[number];
	bool blocks = methods[part->codec]->decode_block != NULL;

	methods[part->codec]->grain(part, &grain, &ignored);
	*low = start - before;
	end = *low + 1;
	for (; count < rows; count++) {
		uint64_t row = stored_row(recipe, first + count * step);
		struct xfp_rectangle r = { 0, 0, 0, part->cols };
		uint64_t wide;

		if (row < before || row - before >= part->rows)
			break;
		row -= before;
		r.row = lower(row, *low);
		wide = (row < end ? end : row + 1) - r.row;
		r.rows = wide;
		r = whole_grains(part, r);
		/* Rows of one grain are fetched together. */
		if (r.rows > grain && (blocks || wide > SPARSE * (count + 1) || bytes_of(part, &r) > PIECE_BYTES))
			break;
		*low = lower(row, *low);
		end = *low + wide;
	}
	*span = end - *low;
	return count;
}

/* Decode by blocks of rows that are adjacent, in `out` as well. */
static void decode_blocks(const struct xfp_decoder *d, const struct xfp_fetched *from,
			  const struct xfp_recipe_part *part, const struct xfp_rectangle *of, uint64_t before,
			  uint64_t first, uint64_t step, uint64_t rows, unsigned char *out, uint64_t pitch)
{
	const struct xfp_recipe *recipe = d->source.recipe;

	for (uint64_t i = 0, end; i < rows; i = end) {
		struct xfp_rectangle block = { stored_row(recipe, first + i * step) - before, 1, of->col, of->cols };

		for (end = i + 1; end < rows; end++, block.rows++)
			if (stored_row(recipe, first + end * step) - before != block.row + block.rows)
				break;
		methods[part->codec]->decode_block(part, d->source.dtype, from, &block, out + i * pitch, pitch);
	}
}

/* Decode a piece's columns of one part, which begin at `to` of each row of `out`. */
static enum xfp_status decode_piece(struct xfp_decoder *d, uint32_t number, const struct xfp_rectangle *of,
				    uint64_t before, uint64_t first, uint64_t step, uint64_t rows, unsigned char *out,
				    uint64_t pitch, struct xfp_error *err)
{
	const struct xfp_recipe_part *part = &d->source.recipe->parts[number];
	struct xfp_fetched from = { .of = whole_grains(part, *of) };
	enum xfp_status status = fetch(d, number, &from, err);

	if (status)
		return status;
	if (methods[part->codec]->decode_block) {
		decode_blocks(d, &from, part, of, before, first, step, rows, out, pitch);
		return XFP_OK;
	}
	for (uint64_t i = 0; i < rows; i++)
		methods[part->codec]->decode(part, d->source.dtype, &from,
					     stored_row(d->source.recipe, first + i * step) - before, of->col, of->cols,
					     out + i * pitch);
	return XFP_OK;
}

enum xfp_status xfp_decoder_read(struct xfp_decoder *d, uint64_t first, uint64_t step, uint64_t rows, uint64_t col,
				 uint64_t cols, void *out, struct xfp_error *err)
{
	const struct xfp_recipe *recipe = d->source.recipe;
	uint64_t size = xfp_dtype_bits(d->source.dtype) / 8, pitch = cols * size, count;
	enum xfp_status status = XFP_OK;

	for (uint64_t done = 0; !status && done < rows; done += count) {
		uint64_t from = first + done * step, before, left = 0;
		uint32_t number = part_of(recipe, stored_row(recipe, from), &before);
		struct xfp_rectangle r;

		count = piece_of(recipe, from, step, rows - done, &r.row, &r.rows);
		for (; !status && number < recipe->part_count; left += recipe->parts[number++].cols) {
			uint64_t width = recipe->parts[number].cols;
			uint64_t begin = col > left ? col : left, end = lower(col + cols, left + width);

			if (begin < end) {
				r.col = begin - left;
				r.cols = end - begin;
				status = decode_piece(d, number, &r, before, from, step, count,
						      (unsigned char *)out + done * pitch + (begin - col) * size, pitch,
						      err);
			}
			if (!recipe->beside)
				break;
		}
	}
	return status;
}

uint64_t xfp_decoder_rows(const struct xfp_recipe *recipe)
{
	uint64_t max = 1, rows, cols;

	for (uint32_t i = 0; i < recipe->part_count; i++)
		if (methods[recipe->parts[i].codec]->decode_block) {
			methods[recipe->parts[i].codec]->grain(&recipe->parts[i], &rows, &cols);
			max = rows / BLOCK_PART > max ? rows / BLOCK_PART : max;
		}
	return max;
}

uint64_t xfp_decoder_bytes(const struct xfp_recipe *recipe)
{
	uint64_t max = 0;

	for (uint32_t i = 0; i < recipe->part_count; i++) {
		const struct xfp_recipe_part *part = &recipe->parts[i];
		struct xfp_rectangle one = whole_grains(part, (struct xfp_rectangle){ 0, 1, 0, part->cols });
		struct xfp_rectangle all = { 0, part->rows, 0, part->cols };
		uint64_t bytes = bytes_of(part, &one), whole = bytes_of(part, &all);

		bytes = lower(bytes > PIECE_BYTES ? bytes : PIECE_BYTES, whole);
		max = bytes > max ? bytes : max;
	}
	return max;
}
