/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "cache/seal.h"
#include "stages/work/hosts.h"
#include "stages/work/stage_progress.h"
#include "stages/work/work.h"

#define LINE_BYTES 1400 /* below PIPE_BUF */

/* ---- writing ----------------------------------------------------------------------------------- */

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The line with its newline; returns its length. */
static size_t format_line(const struct xfp_event *event, char line[LINE_BYTES])
{
	char unit[16] = "-", message[sizeof event->message], seal[17];
	size_t size;

	if (event->unit != XFP_NO_UNIT)
		xfp_unit_format(event->unit, unit);
	snprintf(message, sizeof message, "%s", event->message);
	for (char *c = message; *c; c++)
		if (*c == '\t' || *c == '\n')
			*c = ' ';
	/* Seconds as an integer number of microseconds: independent of the locale. */
	size = (size_t)snprintf(line, LINE_BYTES, "%s\t%s\t%s\t%s\t%" PRIu64 "\t%d\t%s\t%" PRId64, unit, event->stage,
				event->outcome, *event->key ? event->key : "-", (uint64_t)(event->seconds * 1e6),
				event->status, message, now_us());
	xfp_seal_line(line, size, seal);
	return size + (size_t)snprintf(line + size, LINE_BYTES - size, "\t%s\n", seal);
}

enum xfp_status xfp_event_append(const char *work, const struct xfp_event *event, struct xfp_error *err)
{
	const int how = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
	char *folder = xfp_host_folder(work), *path = folder ? xfp_path(folder, XFP_EVENTS_FILE) : NULL;
	char line[LINE_BYTES];
	size_t size = format_line(event, line);
	enum xfp_status status;
	int fd = -1;

	if (!path) {
		status = xfp_no_memory(err);
	} else if ((fd = open(path, how, 0666)) < 0 &&
		   (errno != ENOENT || !xfp_host_folder_make(work) || (fd = open(path, how, 0666)) < 0)) {
		status = xfp_fail_errno(err, errno, "%s: cannot open", path);
	} else {
		/* A single write below PIPE_BUF: lines of concurrent stages of this host do not mix. */
		status = xfp_write(fd, line, size, path, err);
	}
	if (fd >= 0)
		close(fd);
	free(path);
	free(folder);
	return status;
}

/* ---- reading ----------------------------------------------------------------------------------- */

struct xfp_events_file {
	char *path;
	ino_t inode; /* 0: not read yet */
	uint64_t read;
	int64_t written_ns;
	/* The lines of the current call: the rest of them, and the time of the first. */
	char *text, *rest;
	int64_t time;
	bool gone; /* replaced, removed or shortened since it was read */
};

static void rewind_file(struct xfp_events_file *file)
{
	free(file->text);
	file->text = NULL;
	file->read = 0;
	file->inode = 0;
	file->written_ns = 0;
	file->gone = false;
}

/* The last newline of the lines to read now, or NULL. NULs: see events.h. */
static char *end_of_lines(char *lines, size_t size, bool final)
{
	if (!final)
		size = strnlen(lines, size);
	for (char *c = lines; (c = memchr(c, '\0', (size_t)(lines + size - c)));)
		*c = '?';
	return size ? memrchr(lines, '\n', size) : NULL;
}

/* Read the complete lines after the position into file->text, if there are any. */
static enum xfp_status read_file(struct xfp_events_file *file, bool final, struct xfp_error *err)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	enum xfp_status status = XFP_OK;
	char *lines = NULL, *end = NULL;
	ssize_t got = 0;
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		file->gone = file->inode != 0;
		return XFP_OK;
	}
	if (fd < 0 || fstat(fd, &st)) {
		status = xfp_fail_errno(err, errno, "%s: cannot open", file->path);
	} else if ((file->inode && file->inode != st.st_ino) || (uint64_t)st.st_size < file->read) {
		file->gone = true;
	} else if ((uint64_t)st.st_size > file->read) {
		size_t left = (size_t)((uint64_t)st.st_size - file->read);

		if (!(lines = malloc(left + 1)))
			status = xfp_no_memory_for(err, file->path);
		else if ((got = pread(fd, lines, left, (off_t)file->read)) < 0)
			status = xfp_fail_errno(err, errno, "%s: cannot read", file->path);
		else
			end = end_of_lines(lines, (size_t)got, final);
	}
	if (!status && !file->gone) {
		file->inode = st.st_ino;
		file->written_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	}
	if (fd >= 0)
		close(fd);
	if (!end) {
		free(lines);
		return status;
	}
	end[1] = '\0';
	file->read += (uint64_t)(end + 1 - lines);
	file->text = lines;
	return XFP_OK;
}

/* Add a file in its place: the run's host first, then the others in the order of their names. */
static enum xfp_status add_file(struct xfp_events_reader *reader, char *path, struct xfp_error *err)
{
	struct xfp_events_file *files = realloc(reader->files, (reader->count + 1) * sizeof *files);
	size_t at = reader->count;

	if (!files) {
		free(path);
		return xfp_no_memory(err);
	}
	reader->files = files;
	for (; at > 1 && strcmp(files[at - 1].path, path) > 0; at--)
		files[at] = files[at - 1];
	files[at] = (struct xfp_events_file){ .path = path };
	reader->count++;
	return XFP_OK;
}

static bool has_file(const struct xfp_events_reader *reader, const char *path)
{
	for (size_t i = 0; i < reader->count; i++)
		if (!strcmp(reader->files[i].path, path))
			return true;
	return false;
}

/* Add the files of hosts that appeared since the last call. */
static enum xfp_status find_files(const char *work, struct xfp_events_reader *reader, struct xfp_error *err)
{
	struct xfp_host_folders folders;
	enum xfp_status status = xfp_host_folders_list(work, &folders, err);

	for (size_t i = 0; !status && i < folders.count; i++) {
		char *path = xfp_path(folders.path[i], XFP_EVENTS_FILE);

		if (path && has_file(reader, path))
			free(path);
		else
			status = path ? add_file(reader, path, err) : xfp_no_memory(err);
	}
	xfp_host_folders_free(&folders);
	return status;
}

/* The time of a line, which is its last field but one. Lines without it, and damaged ones, are as old as the line
 * before: `otherwise`. */
static int64_t time_of(const char *line, int64_t otherwise)
{
	const char *end = strchrnul(line, '\n'), *seal = memrchr(line, '\t', (size_t)(end - line));
	const char *time = seal ? memrchr(line, '\t', (size_t)(seal - line)) : NULL;
	size_t digits = time ? strspn(time + 1, "0123456789") : 0, tabs = 0;
	int64_t value;

	for (const char *c = line; c < end; c++)
		tabs += *c == '\t';
	if (tabs != 8 || digits < 1 || digits > 18 || time + 1 + digits != seal)
		return otherwise;
	value = strtoll(time + 1, NULL, 10);
	return value > otherwise ? value : otherwise;
}

static enum xfp_status merge(struct xfp_events_reader *reader, size_t size, char **text, struct xfp_error *err)
{
	char *out = malloc(size + 1), *at = out;

	if (!out)
		return xfp_no_memory(err);
	for (size_t i = 0; i < reader->count; i++) {
		struct xfp_events_file *file = &reader->files[i];

		file->rest = file->text;
		file->time = file->rest ? time_of(file->rest, 0) : 0;
	}
	for (;;) {
		struct xfp_events_file *first = NULL;
		size_t length;

		for (size_t i = 0; i < reader->count; i++) {
			struct xfp_events_file *file = &reader->files[i];

			if (file->rest && *file->rest && (!first || file->time < first->time))
				first = file;
		}
		if (!first)
			break;
		length = (size_t)(strchr(first->rest, '\n') + 1 - first->rest);
		memcpy(at, first->rest, length);
		at += length;
		first->rest += length;
		if (*first->rest)
			first->time = time_of(first->rest, first->time);
	}
	*at = '\0';
	*text = out;
	return XFP_OK;
}

/* Combine the texts of all files, and free them. */
static enum xfp_status combine(struct xfp_events_reader *reader, char **text, struct xfp_error *err)
{
	struct xfp_events_file *only = NULL;
	enum xfp_status status = XFP_OK;
	size_t size = 0, texts = 0;

	for (size_t i = 0; i < reader->count; i++)
		if (reader->files[i].text) {
			only = &reader->files[i];
			size += strlen(only->text);
			texts++;
		}
	if (texts == 1) {
		*text = only->text;
		only->text = NULL;
	} else if (texts) {
		status = merge(reader, size, text, err);
	}
	for (size_t i = 0; i < reader->count; i++) {
		free(reader->files[i].text);
		reader->files[i].text = NULL;
	}
	return status;
}

/* Read all files, or on failure none. */
static enum xfp_status read_files(struct xfp_events_reader *reader, bool *gone, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	*gone = false;
	for (size_t i = 0; !status && i < reader->count; i++) {
		status = read_file(&reader->files[i], reader->final, err);
		*gone |= reader->files[i].gone;
	}
	for (size_t i = 0; status && i < reader->count; i++)
		if (reader->files[i].text) {
			reader->files[i].read -= strlen(reader->files[i].text);
			free(reader->files[i].text);
			reader->files[i].text = NULL;
		}
	return status;
}

enum xfp_status xfp_events_read(const char *work, struct xfp_events_reader *reader, char **text, struct xfp_error *err)
{
	enum xfp_status status;
	bool gone = false;

	*text = NULL;
	reader->restarted = false;
	if (!(status = find_files(work, reader, err)))
		status = read_files(reader, &gone, err);
	if (!status && gone) {
		reader->restarted = true;
		for (size_t i = 0; i < reader->count; i++)
			rewind_file(&reader->files[i]);
		status = read_files(reader, &gone, err);
	}
	reader->written_ns = 0;
	for (size_t i = 0; i < reader->count; i++)
		if (reader->files[i].written_ns > reader->written_ns)
			reader->written_ns = reader->files[i].written_ns;
	return status ? status : combine(reader, text, err);
}

void xfp_events_reader_free(struct xfp_events_reader *reader)
{
	for (size_t i = 0; i < reader->count; i++) {
		free(reader->files[i].path);
		free(reader->files[i].text);
	}
	free(reader->files);
	*reader = (struct xfp_events_reader){ 0 };
}

bool xfp_events_exist(const char *work)
{
	char *path = xfp_path(work, XFP_EVENTS_FILE), *hosts = xfp_path(work, XFP_HOSTS_FOLDER);
	bool exist = (path && !access(path, F_OK)) || (hosts && !access(hosts, F_OK));

	free(path);
	free(hosts);
	return exist;
}

enum xfp_status xfp_events_remove(const char *work, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_EVENTS_FILE), *slots = xfp_path(work, XFP_STAGE_PROGRESS_FILE);
	enum xfp_status status = path && slots ? xfp_remove_file(path, err) : xfp_no_memory(err);

	if (slots)
		unlink(slots);
	free(slots);
	free(path);
	return status ? status : xfp_host_folders_remove(work, err);
}

/* ---- lines ------------------------------------------------------------------------------------- */

static char *next_field(char **rest)
{
	char *field = *rest, *tab = field ? strchr(field, '\t') : NULL;

	if (tab)
		*tab = 0;
	*rest = tab ? tab + 1 : NULL;
	return field;
}

bool xfp_event_parse(const char *line, struct xfp_event *event)
{
	char copy[LINE_BYTES], *rest = copy, seal[17];
	char *unit, *stage, *outcome, *key, *micros, *status, *message, *tab;

	memset(event, 0, sizeof *event);
	if (snprintf(copy, sizeof copy, "%s", line) >= (int)sizeof copy || !(tab = strrchr(copy, '\t')))
		return false;
	xfp_seal_line(copy, (size_t)(tab - copy), seal);
	if (strcmp(seal, tab + 1))
		return false;
	*tab = 0;
	unit = next_field(&rest);
	stage = next_field(&rest);
	outcome = next_field(&rest);
	key = next_field(&rest);
	micros = next_field(&rest);
	status = next_field(&rest);
	message = next_field(&rest); /* what follows is the time, which earlier versions did not write */
	if (!message || strlen(stage) >= sizeof event->stage || strlen(outcome) >= sizeof event->outcome ||
	    strlen(key) >= sizeof event->key || strlen(message) >= sizeof event->message)
		return false;
	event->unit = XFP_NO_UNIT;
	if (xfp_layer_parse(unit, &event->unit))
		event->unit |= XFP_LAYER;
	else if (strcmp(unit, "-") && !xfp_unit_parse(unit, &event->unit))
		return false;
	strcpy(event->stage, stage);
	strcpy(event->outcome, outcome);
	strcpy(event->key, key);
	event->seconds = (double)strtoull(micros, NULL, 10) / 1e6;
	event->status = atoi(status);
	strcpy(event->message, message);
	/* These fields are printed, and anybody can compute the seal. */
	xfp_escape_message(event->stage, sizeof event->stage);
	xfp_escape_message(event->message, sizeof event->message);
	return true;
}
