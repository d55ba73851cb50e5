/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/inspect/measure.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "commands/ui/meter.h"
#include "commands/ui/pace.h"
#include "stages/quantize/threads.h"

#define REDRAW 0.1 /* seconds */

/* Shared by all threads. The critical section `measure` protects all but the first two members. */
struct measured_tensors {
	const struct xfp_checkpoint *checkpoint;
	struct xfp_distribution *found;
	struct xfp_signals *signals;
	struct xfp_meter meter;
	uint64_t done, total; /* bytes, over all passes */
	uint32_t tensors, finished;
	double started, drawn;
	enum xfp_status status; /* of the first failed tensor in tensor order, regardless of thread timing */
	uint32_t failed;
	struct xfp_error *err;
};

static void draw(struct measured_tensors *run)
{
	const double now = xfp_now();
	const struct xfp_pace pace = { (double)run->total, 0, (double)run->done, now - run->started, 0 };
	double left = xfp_pace_remaining(&pace);
	char rest[48] = "";

	if (now - run->drawn < REDRAW)
		return;
	run->drawn = now;
	if (left >= 0)
		xfp_remaining_text(left, rest);
	xfp_meter_draw(&run->meter, "measuring %3.0f %%, %u of %u tensors%s%s",
		       run->total ? 100 * pace.fresh / pace.total : 0, run->finished, run->tensors, *rest ? ", " : "",
		       rest);
}

/* Add finished bytes to the progress. Returns false if the threads must stop. */
static bool add_progress(struct measured_tensors *run, uint64_t bytes)
{
	bool on;

#pragma omp critical(measure)
	{
		run->done += bytes;
		if (run->meter.terminal)
			draw(run);
		if (!run->status && xfp_signals_arrived(run->signals))
			run->status = XFP_FAILED;
		on = !run->status;
	}
	return on;
}

static void fail(struct measured_tensors *run, uint32_t tensor, enum xfp_status status, const struct xfp_error *err)
{
#pragma omp critical(measure)
	if (!run->signals->interrupted && (!run->status || tensor < run->failed)) {
		run->status = status;
		run->failed = tensor;
		*run->err = *err;
	}
}

static enum xfp_status read_pass(struct measured_tensors *run, const struct xfp_source_tensor *tensor,
				 struct xfp_distribution_work *work, void *block, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_checkpoint_source(run->checkpoint, tensor);
	struct xfp_element_reader *reader = NULL;
	enum xfp_status status = xfp_elements_open(&source, &reader, err);

	for (uint64_t at = 0, size; !status && at < tensor->bytes; at += size) {
		size = tensor->bytes - at < XFP_DISTRIBUTION_BLOCK ? tensor->bytes - at : XFP_DISTRIBUTION_BLOCK;
		if ((status = xfp_elements_read(reader, at, size, block, err)))
			break;
		xfp_distribution_add(work, block, size);
		if (!add_progress(run, size))
			status = XFP_FAILED;
	}
	xfp_elements_close(reader);
	return status;
}

static void measure(struct measured_tensors *run, uint32_t t, struct xfp_distribution_work *work, void *block)
{
	const struct xfp_source_tensor *tensor = &run->checkpoint->tensors[t];
	unsigned passes = xfp_distribution_passes(tensor->dtype);
	struct xfp_error err = { .text = "" };
	enum xfp_status status = XFP_OK;

	if (!work || !block)
		status = xfp_no_memory(&err);
	for (unsigned pass = 0; !status && pass < passes; pass++) {
		xfp_distribution_begin(work, tensor->dtype, pass);
		if (tensor->bytes)
			status = read_pass(run, tensor, work, block, &err);
	}
	if (!status && passes)
		run->found[t] = xfp_distribution_end(work);
	/* A thread stopped by another's failure has no message. */
	if (status && *err.text)
		fail(run, t, status, &err);
#pragma omp critical(measure)
	run->finished++;
}

static int largest_first(const void *a, const void *b, void *context)
{
	const struct xfp_source_tensor *tensors = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (tensors[x].bytes != tensors[y].bytes)
		return tensors[x].bytes < tensors[y].bytes ? 1 : -1;
	return (x > y) - (x < y);
}

enum xfp_status xfp_measure(const struct xfp_checkpoint *checkpoint, uint32_t *tensors, uint32_t count,
			    struct xfp_signals *signals, struct xfp_distribution *found, struct xfp_error *err)
{
	struct measured_tensors run = {
		.checkpoint = checkpoint,
		.found = found,
		.signals = signals,
		.tensors = count,
		.started = xfp_now(),
		.err = err,
	};

	xfp_meter_begin(&run.meter);
	/* Sort so that no thread starts a large tensor when the others have finished. */
	if (count)
		qsort_r(tensors, count, sizeof *tensors, largest_first, checkpoint->tensors);
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_source_tensor *tensor = &checkpoint->tensors[tensors[i]];

		run.total += xfp_distribution_passes(tensor->dtype) * tensor->bytes;
	}
#pragma omp parallel if (count > 1)
	{
		struct xfp_distribution_work *work = xfp_distribution_work_new();
		void *block = malloc(XFP_DISTRIBUTION_BLOCK);

#pragma omp for schedule(dynamic)
		for (uint32_t i = 0; i < count; i++)
			if (add_progress(&run, 0))
				measure(&run, tensors[i], work, block);
		xfp_distribution_work_free(work);
		free(block);
	}
	xfp_meter_clear(&run.meter);
	return run.status;
}
