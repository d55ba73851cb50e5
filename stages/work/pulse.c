/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/pulse.h"

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

static void write_slot(const struct xfp_pulse *pulse)
{
	double share = pulse->all > 0 ? pulse->done / pulse->all : 0;
	char *path = xfp_path(pulse->work, XFP_PULSES_FILE), slot[SLOT_BYTES + 1];
	int file = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;

	snprintf(slot, sizeof slot, SLOT_FORMAT, pulse->stage, (unsigned)((share < 1 ? share : 1) * WHOLE));
	/* Success does not matter. */
	if (file >= 0 && pwrite(file, slot, SLOT_BYTES, (off_t)pulse->unit * SLOT_BYTES) != SLOT_BYTES)
		(void)ftruncate(file, 0);
	if (file >= 0)
		close(file);
	free(path);
}

static void add(struct xfp_watcher *watcher, uint64_t work)
{
	struct xfp_pulse *pulse = (struct xfp_pulse *)watcher;

	pthread_mutex_lock(&pulse->lock);
	pulse->all += (double)work;
	pthread_mutex_unlock(&pulse->lock);
}

static void take(struct xfp_watcher *watcher, uint64_t work)
{
	struct xfp_pulse *pulse = (struct xfp_pulse *)watcher;
	double now = xfp_now();

	pthread_mutex_lock(&pulse->lock);
	pulse->done += (double)work;
	if (now - pulse->written >= BEAT_SECONDS) {
		write_slot(pulse);
		pulse->written = now;
	}
	pthread_mutex_unlock(&pulse->lock);
}

void xfp_pulse_begin(struct xfp_pulse *pulse, const char *work, uint32_t unit, const char *stage, uint64_t all)
{
	*pulse = (struct xfp_pulse){ .watcher = { add, take },
				     .work = work,
				     .stage = stage,
				     .unit = unit,
				     .all = (double)all,
				     .written = xfp_now(),
				     .lock = PTHREAD_MUTEX_INITIALIZER };
}

int xfp_pulses_open(const char *work)
{
	char *path = xfp_path(work, XFP_PULSES_FILE);
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	free(path);
	return file;
}

double xfp_pulses_read(int file, uint32_t unit, const char *stage)
{
	char slot[SLOT_BYTES + 1] = "", name[16];
	unsigned share;

	if (file < 0 || pread(file, slot, SLOT_BYTES, (off_t)unit * SLOT_BYTES) != SLOT_BYTES ||
	    sscanf(slot, "%15s %7u", name, &share) != 2 || strcmp(name, stage) || share > WHOLE)
		return 0;
	return (double)share / WHOLE;
}
