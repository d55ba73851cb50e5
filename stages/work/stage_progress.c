/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/stage_progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/file.h"

#define BEAT_SECONDS .5
#define WHOLE 1000000u
/* "outlier-extract  123456\n" */
#define SLOT_BYTES 24
#define SLOT_FORMAT "%-15.15s %7u\n"

static void write_slot(const struct xfp_stage_progress *progress)
{
	double share = progress->all > 0 ? progress->done / progress->all : 0;
	char *path = xfp_path(progress->work, XFP_STAGE_PROGRESS_FILE), slot[SLOT_BYTES + 1];
	int file = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;

	snprintf(slot, sizeof slot, SLOT_FORMAT, progress->stage, (unsigned)((share < 1 ? share : 1) * WHOLE));
	/* Success does not matter. */
	if (file >= 0 && pwrite(file, slot, SLOT_BYTES, (off_t)progress->unit * SLOT_BYTES) != SLOT_BYTES)
		(void)ftruncate(file, 0);
	if (file >= 0)
		close(file);
	free(path);
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

int xfp_stage_progress_open(const char *work)
{
	char *path = xfp_path(work, XFP_STAGE_PROGRESS_FILE);
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	free(path);
	return file;
}

double xfp_stage_progress_read(int file, uint32_t unit, const char *stage)
{
	char slot[SLOT_BYTES + 1] = "", name[16];
	unsigned share;

	if (file < 0 || pread(file, slot, SLOT_BYTES, (off_t)unit * SLOT_BYTES) != SLOT_BYTES ||
	    sscanf(slot, "%15s %7u", name, &share) != 2 || strcmp(name, stage) || share > WHOLE)
		return 0;
	return (double)share / WHOLE;
}
