/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenize [--decode] [--alone] FOLDER FILE - print the ids of each line of a file, one line each, by the tokenizer
 * among the files of a folder; or decode lines of ids to texts, token by token and at once, and compare. --alone:
 * without the tokens around a text, or without special tokens. If the file contains NULs, texts end with NUL instead of
 * a newline.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "model/tokenizer/files.h"

struct text {
	char *bytes;
	size_t size;
};

static enum xfp_status encode(const struct xfp_tokenizer *t, struct text line, bool alone, struct xfp_error *err)
{
	struct xfp_token_ids ids = { 0 };
	enum xfp_status status = xfp_tokenizer_encode(t, line.bytes, line.size, !alone, &ids, err);

	for (size_t i = 0; !status && i < ids.count; i++)
		printf("%s%u", i ? " " : "", ids.id[i]);
	if (!status)
		putchar('\n');
	free(ids.id);
	return status;
}

/* Return whether a piece of text begins inside a character. */
static bool within(const char *text, size_t size)
{
	return size && (*text & 0xc0) == 0x80;
}

static enum xfp_status stream(const struct xfp_tokenizer *t, const uint32_t *ids, size_t count, bool alone,
			      struct text whole, struct xfp_error *err)
{
	struct xfp_decoding *d = NULL;
	enum xfp_status status = xfp_decoding_begin(t, alone, &d, err);
	size_t done = 0, size;
	const char *piece;

	for (size_t i = 0; !status && i <= count; i++) {
		status = i < count ? xfp_decoding_add(d, ids[i], &piece, &size, err)
				   : xfp_decoding_end(d, &piece, &size, err);
		if (!status &&
		    (size > whole.size - done || memcmp(piece, whole.bytes + done, size) || within(piece, size)))
			status = xfp_fail(err, XFP_UNMET, "decoded token by token it is another text");
		done += status ? 0 : size;
	}
	xfp_decoding_free(d);
	if (!status && done != whole.size)
		status = xfp_fail(err, XFP_UNMET, "decoded token by token it is a shorter text");
	return status;
}

static enum xfp_status decode(const struct xfp_tokenizer *t, struct text line, bool alone, char end,
			      struct xfp_error *err)
{
	uint32_t *ids = calloc(line.size + 1, sizeof *ids);
	enum xfp_status status = XFP_OK;
	struct text whole = { 0 };
	size_t count = 0;
	char *next;

	if (!ids)
		return xfp_no_memory(err);
	for (char *at = line.bytes;; at = next) {
		unsigned long id = strtoul(at, &next, 10);

		if (next == at || next > line.bytes + line.size)
			break;
		ids[count++] = (uint32_t)id;
	}
	status = xfp_tokenizer_decode(t, ids, count, alone, &whole.bytes, &whole.size, err);
	if (!status)
		status = stream(t, ids, count, alone, whole, err);
	if (!status) {
		fwrite(whole.bytes, 1, whole.size, stdout);
		putchar(end);
	}
	free(whole.bytes);
	free(ids);
	return status;
}

static enum xfp_status read_file(void *folder, const char *name, char **bytes, size_t *size, struct xfp_error *err)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", (const char *)folder, name);
	*bytes = NULL;
	return stat(path, &st) ? XFP_OK : xfp_slurp(path, SIZE_MAX / 2, bytes, size, err);
}

static enum xfp_status all(char *folder, const char *file, bool decoding, bool alone, struct xfp_error *err)
{
	const struct xfp_tokenizer_files files = { read_file, folder, folder };
	struct text texts = { 0 };
	struct xfp_tokenizer *t = NULL;
	enum xfp_status status;
	char end;

	if ((status = xfp_tokenizer_open_files(&files, &t, err)) ||
	    (status = xfp_slurp(file, SIZE_MAX / 2, &texts.bytes, &texts.size, err)))
		goto done;
	end = memchr(texts.bytes, '\0', texts.size) ? '\0' : '\n';
	for (char *at = texts.bytes, *stop = at + texts.size, *next; !status && at < stop; at = next + 1) {
		struct text line;

		if (!(next = memchr(at, end, (size_t)(stop - at))))
			next = stop;
		line = (struct text){ at, (size_t)(next - at) };
		status = decoding ? decode(t, line, alone, end, err) : encode(t, line, alone, err);
	}
done:
	xfp_tokenizer_free(t);
	free(texts.bytes);
	return status;
}

int main(int count, char **words)
{
	struct xfp_error err = { 0 };
	bool decoding = false, alone = false;
	enum xfp_status status;
	int i = 1;

	for (; i < count && !strncmp(words[i], "--", 2); i++) {
		decoding = decoding || !strcmp(words[i], "--decode");
		alone = alone || !strcmp(words[i], "--alone");
	}
	if (i + 2 != count) {
		fputs("usage: tokenize [--decode] [--alone] FOLDER FILE\n", stderr);
		return XFP_USAGE;
	}
	status = all(words[i], words[i + 1], decoding, alone, &err);
	if (status)
		fprintf(stderr, "tokenize: %s\n", err.text);
	return (int)status;
}
