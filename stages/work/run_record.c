/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/run_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/text.h"

#define LARGEST (4 << 20)
#define RECORD_BYTES 16384

enum line_kind { TEXT, WORD, NUMBER };

static const struct field {
	const char *name;
	enum line_kind kind;
	size_t at;
} fields[] = {
#define FIELD(name, kind)                                          \
	{                                                          \
#name, kind, offsetof(struct xfp_run_record, name) \
	}
	FIELD(state, WORD),     FIELD(phase, WORD),   FIELD(pid, NUMBER),    FIELD(started, NUMBER),
	FIELD(working, NUMBER), FIELD(ended, NUMBER), FIELD(status, NUMBER), FIELD(model, TEXT),
	FIELD(out, TEXT),       FIELD(cache, TEXT),   FIELD(folder, TEXT),   FIELD(command, TEXT),
	FIELD(message, TEXT),
#undef FIELD
};
#define FIELDS (sizeof fields / sizeof fields[0])

int64_t xfp_wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reserve space for a later error message, in case the disk is full by then: all records have the same size, unless
 * paths are very long. */
static void pad_out(struct xfp_text *text)
{
	size_t size;

	if (!text->stream || fflush(text->stream))
		return;
	size = text->size;
	for (size_t max = size < RECORD_BYTES ? RECORD_BYTES : 4 * RECORD_BYTES; size < max; size++)
		fputc(0, text->stream);
}

/* Overwrite the file in place with as much of the text as fits. */
static enum xfp_status overwrite(const char *path, const char *text, size_t size, struct xfp_error *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	enum xfp_status status;
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		status = xfp_fail_errno(err, errno, "%s", path);
	} else {
		status = xfp_pwrite(fd, text, size < (size_t)st.st_size ? size : (size_t)st.st_size, 0, path, err);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

enum xfp_status xfp_run_record_write(const char *work, struct xfp_run_record *record, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_RUN_FILE);
	enum xfp_status status;
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	size_t size = 0;

	for (size_t i = 0; out && i < FIELDS; i++) {
		const char *at = (const char *)record + fields[i].at;

		if (fields[i].kind == NUMBER)
			fprintf(out, "%s=%" PRId64 "%c", fields[i].name, *(const int64_t *)(const void *)at, 0);
		else if (fields[i].kind == WORD)
			fprintf(out, "%s=%s%c", fields[i].name, at, 0);
		else if (*(char *const *)(const void *)at)
			fprintf(out, "%s=%s%c", fields[i].name, *(char *const *)(const void *)at, 0);
	}
	if (out && !fflush(out))
		size = text.size;
	pad_out(&text);
	if (!xfp_text_end(&text) || !path)
		status = xfp_no_memory(err);
	else if ((status = xfp_write_file(path, text.bytes, text.size, false, err)) && record->written)
		status = overwrite(path, text.bytes, text.size, err);
	if (status && path && !record->written)
		unlink(path);
	record->written |= !status;
	record->text_bytes = size;
	free(text.bytes);
	free(path);
	return status;
}

static enum xfp_status take(struct xfp_run_record *record, const char *entry, struct xfp_error *err)
{
	for (size_t i = 0; i < FIELDS; i++) {
		size_t length = strlen(fields[i].name);
		char *at = (char *)record + fields[i].at;
		const char *value = entry + length + 1;

		if (strncmp(entry, fields[i].name, length) || entry[length] != '=')
			continue;
		if (fields[i].kind == NUMBER) {
			*(int64_t *)(void *)at = strtoll(value, NULL, 10);
		} else if (fields[i].kind == WORD) {
			snprintf(at, sizeof record->state, "%s", value);
			xfp_escape_message(at, sizeof record->state);
		} else {
			char **text = (char **)(void *)at;

			free(*text);
			if (!(*text = strdup(value)))
				return xfp_no_memory(err);
		}
	}
	return XFP_OK;
}

enum xfp_status xfp_run_record_read(const char *work, struct xfp_run_record *record, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_RUN_FILE), *text = NULL;
	size_t size = 0;
	enum xfp_status status = path ? xfp_slurp(path, LARGEST, &text, &size, err) : xfp_no_memory(err);

	xfp_run_record_free(record);
	for (const char *entry = text; !status && entry < text + size; entry += strlen(entry) + 1)
		status = take(record, entry, err);
	free(text);
	free(path);
	return status;
}

void xfp_run_record_free(struct xfp_run_record *record)
{
	free(record->model);
	free(record->out);
	free(record->cache);
	free(record->command);
	free(record->folder);
	free(record->message);
	*record = (struct xfp_run_record){ 0 };
}
