/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/stage_progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/file.h"
#include "stages/work/hosts.h"

#define BEAT_SECONDS .5
#define WHOLE 1000000u
/* "outlier-extract  123456\n" */
#define SLOT_BYTES 24
#define SLOT_FORMAT "%-15.15s %7u\n"

static void write_slot(const struct xfp_stage_progress *progress)
{
	double share = progress->all > 0 ? progress->done / progress->all : 0;
	char *folder = xfp_host_folder(progress->work), slot[SLOT_BYTES + 1];
	char *path = folder ? xfp_path(folder, XFP_STAGE_PROGRESS_FILE) : NULL;
	int file = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;

	snprintf(slot, sizeof slot, SLOT_FORMAT, progress->stage, (unsigned)((share < 1 ? share : 1) * WHOLE));
	/* Success does not matter. */
	if (file >= 0 && pwrite(file, slot, SLOT_BYTES, (off_t)progress->unit * SLOT_BYTES) != SLOT_BYTES)
		(void)ftruncate(file, 0);
	if (file >= 0)
		close(file);
	free(path);
	free(folder);
}

static void add(struct xfp_watcher *watcher, uint64_t work)
{
	struct xfp_stage_progress *progress = (struct xfp_stage_progress *)watcher;

	pthread_mutex_lock(&progress->lock);
	progress->all += (double)work;
	pthread_mutex_unlock(&progress->lock);
}

static void take(struct xfp_watcher *watcher, uint64_t work)
{
	struct xfp_stage_progress *progress = (struct xfp_stage_progress *)watcher;
	double now = xfp_now();

	pthread_mutex_lock(&progress->lock);
	progress->done += (double)work;
	if (now - progress->written >= BEAT_SECONDS) {
		write_slot(progress);
		progress->written = now;
	}
	pthread_mutex_unlock(&progress->lock);
}

void xfp_stage_progress_begin(struct xfp_stage_progress *progress, const char *work, uint32_t unit, const char *stage,
			      uint64_t all)
{
	*progress = (struct xfp_stage_progress){ .watcher = { add, take },
						 .work = work,
						 .stage = stage,
						 .unit = unit,
						 .all = (double)all,
						 .written = xfp_now(),
						 .lock = PTHREAD_MUTEX_INITIALIZER };
}

struct xfp_stage_slots xfp_stage_progress_open(const char *work)
{
	struct xfp_stage_slots slots = { 0 };
	struct xfp_host_folders folders;

	if (xfp_host_folders_list(work, &folders, NULL))
		return slots;
	slots.files = malloc(folders.count * sizeof *slots.files);
	for (size_t i = 0; slots.files && i < folders.count; i++) {
		char *path = xfp_path(folders.path[i], XFP_STAGE_PROGRESS_FILE);
		int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

		if (file >= 0)
			slots.files[slots.count++] = file;
		free(path);
	}
	xfp_host_folders_free(&folders);
	return slots;
}

void xfp_stage_progress_close(struct xfp_stage_slots *slots)
{
	while (slots->count)
		close(slots->files[--slots->count]);
	free(slots->files);
	slots->files = NULL;
}

double xfp_stage_progress_read(const struct xfp_stage_slots *slots, uint32_t unit, const char *stage)
{
	unsigned largest = 0;

	for (size_t i = 0; i < slots->count; i++) {
		char slot[SLOT_BYTES + 1] = "", name[16];
		unsigned share;

		if (pread(slots->files[i], slot, SLOT_BYTES, (off_t)unit * SLOT_BYTES) == SLOT_BYTES &&
		    sscanf(slot, "%15s %7u", name, &share) == 2 && !strcmp(name, stage) && share <= WHOLE &&
		    share > largest)
			largest = share;
	}
	return (double)largest / WHOLE;
}
