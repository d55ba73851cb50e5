/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte selects the input: changes to a good file of two surveys (0), changes to a file cut after the length
 * in the next two bytes (1), or the records of a file (otherwise). A change has two bytes of a position and a value.
 * The digest at the end of the file is computed again, so that the reader parses what a stranger may have written.
 */
#include "tests/fuzz/surveys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "cache/key.h"
#include "cache/survey_file.h"
#include "schemas/parameters.h"

#define MAX_BYTES 16384u
#define HEADER_BYTES 24
#define DIGEST_BYTES 32
#define SURVEYS 2

struct file {
	uint8_t bytes[MAX_BYTES + DIGEST_BYTES];
	size_t size; /* without the digest */
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* ---- a good file --------------------------------------------------------------------------------- */

/* A survey of one matrix, or of a stack of two. */
static void make_survey(uint32_t number, struct xfp_survey_entry *entry)
{
	const struct xfp_parameters parameters = xfp_parameters_default();
	struct xfp_outliers *known = &entry->surveyed.known;
	struct xfp_key_source source = { .dtype = XFP_BF16, .matrices = 1 + number, .rows = 8, .cols = 16 };
	struct xfp_key key;

	*entry = (struct xfp_survey_entry){ .seconds = .5, .unit = strdup("model.layers.0.mlp.down_proj.weight") };
	must(!xfp_outliers_init(known, source.matrices, source.rows, source.cols, NULL));
	for (uint32_t m = 0; m < source.matrices; m++)
		memset(known->source[m], 'a' + (int)(number + m), sizeof known->source[m]);
	source.source = (const uint8_t(*)[16])known->source;
	must(!xfp_key_survey(&source, &parameters, &key, NULL) && entry->unit);
	entry->key_text = key.text;
	known->sigma_milli = XFP_SIGMA_AUTO;
	entry->surveyed.count = 3;
	for (uint32_t i = 0; i < entry->surveyed.count; i++)
		entry->surveyed.list[i] = (struct xfp_candidate){ .mode = XFP_MODE_V2C, .k = 2 + i, .cos_median = .9 };
}

static void read_file(const char *path, struct file *file)
{
	FILE *in = fopen(path, "rb");

	must(in);
	file->size = fread(file->bytes, 1, sizeof file->bytes, in);
	must(file->size > HEADER_BYTES + DIGEST_BYTES && file->size < sizeof file->bytes);
	file->size -= DIGEST_BYTES;
	fclose(in);
}

/* Write surveys to a temporary file, and read its bytes. */
static void write_file(struct xfp_survey_entry *entries, uint32_t count, struct file *file)
{
	char path[] = "/tmp/fuzz-surveys-XXXXXX";
	struct xfp_survey_writer writer = { .pending = { .fd = -1 } };
	int fd = mkstemp(path);

	must(fd >= 0 && !xfp_survey_file_begin(path, count, &writer, NULL));
	for (uint32_t i = 0; i < count; i++)
		must(!xfp_survey_file_append(&writer, &entries[i], NULL));
	must(!xfp_survey_file_finish(&writer, NULL));
	read_file(path, file);
	close(fd);
	unlink(path);
}

static const struct file *good_file(void)
{
	static struct file file;

	if (!file.size) {
		static struct xfp_survey_entry entries[SURVEYS];

		for (uint32_t i = 0; i < SURVEYS; i++)
			make_survey(i, &entries[i]);
		write_file(entries, SURVEYS, &file);
		for (uint32_t i = 0; i < SURVEYS; i++)
			xfp_survey_entry_free(&entries[i]);
	}
	return &file;
}

/* ---- results ------------------------------------------------------------------------------------- */

static void change(struct file *f, const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3)
		f->bytes[xfp_load16(data) % f->size] = data[2];
}

static void check(const struct xfp_survey_entry *entry)
{
	const struct xfp_outliers *known = &entry->surveyed.known;
	struct xfp_key_source source = { .matrices = known->matrices,
					 .rows = known->rows,
					 .cols = known->cols,
					 .source = (const uint8_t(*)[16])known->source };
	char dtype[16];
	bool is = false;

	must(entry->key_text && entry->unit && known->matrices && known->source && known->balance);
	must(entry->surveyed.count <= XFP_MAX_SURVEYED && entry->seconds >= 0);
	must(sscanf(strstr(entry->key_text, "\ndtype "), "\ndtype %15s", dtype) == 1);
	must(xfp_dtype_parse(dtype, &source.dtype));
	must(!xfp_key_is_of(entry->key_text, &source, &is, NULL) && is);
}

static int read_surveys(const char *path, const struct file *made)
{
	static struct xfp_survey_entry entries[SURVEYS];
	struct xfp_survey_reader reader;
	struct file again;
	uint32_t count = 0;
	enum xfp_status status = XFP_OK;

	if (xfp_survey_file_open(path, &reader, NULL))
		return -1;
	while (!status && reader.left) {
		struct xfp_survey_entry *entry = &entries[count % SURVEYS];

		if (count >= SURVEYS)
			xfp_survey_entry_free(entry);
		if (!(status = xfp_survey_file_next(&reader, entry, NULL))) {
			check(entry);
			count++;
		}
	}
	must(!status || status == XFP_BAD_INPUT);
	if (!status && reader.count && reader.count <= SURVEYS) {
		write_file(entries, count, &again);
		must(again.size == made->size && !memcmp(again.bytes, made->bytes, made->size));
	}
	for (uint32_t i = 0; i < SURVEYS; i++)
		xfp_survey_entry_free(&entries[i]);
	xfp_survey_file_close(&reader);
	return status ? -1 : (int)count;
}

int fuzz_surveys(const uint8_t *data, size_t size)
{
	static struct file made;
	static char path[64];
	static int fd = -1;

	if (fd < 0) {
		must((fd = memfd_create("surveys", 0)) >= 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	if (!size || size > MAX_BYTES - HEADER_BYTES)
		return -1;
	made = *good_file();
	if (*data > 1) {
		memcpy(made.bytes + HEADER_BYTES, data + 1, size - 1);
		made.size = HEADER_BYTES + size - 1;
	} else if (*data == 1 && size >= 3) {
		made.size = 1 + xfp_load16(data + 1) % made.size;
		change(&made, data + 3, size - 3);
	} else {
		change(&made, data + 1, size - 1);
	}
	xfp_sha256(made.bytes, made.size, made.bytes + made.size);
	must(!ftruncate(fd, 0) &&
	     pwrite(fd, made.bytes, made.size + DIGEST_BYTES, 0) == (ssize_t)(made.size + DIGEST_BYTES));
	return read_surveys(path, &made);
}
