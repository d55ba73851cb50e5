/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs; see driver.c. Work is queued, and runs when the host waits for its stream. */
#include "tests/cuda/driver_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct graph {
	struct work *work;
	size_t count, room;
	bool launched;
};

struct stream {
	struct graph *captures;
	bool spoiled; /* the capture is invalid */
	bool non_blocking;
};

struct event {
	const struct stream *order;
	uint64_t place; /* number of the last work queued before it */
	const struct context *context;
	struct event *next;
};

static struct work *queue;
static size_t queued, queue_room;
static uint64_t told;
static struct stream *capturing;
static struct event *events;

void release_work(struct work *work)
{
	free(work->line);
	if (work->own)
		free(work->host);
}

void spoil_capture(void)
{
	if (capturing)
		capturing->spoiled = true;
}

int not_capturing(void)
{
	return capturing || setting("STAND_IN_CAPTURING", 0) ? STREAM_CAPTURE_UNSUPPORTED : SUCCESS;
}

/* NULL, 1 and 2 are the streams of every context. */
static bool common(const void *stream)
{
	return (uintptr_t)stream <= 2;
}

/* The legacy stream and all blocking streams wait for each other and share an order, NULL. A stream created with
 * CU_STREAM_NON_BLOCKING has its own. */
static const struct stream *order_of(const struct stream *stream)
{
	return common(stream) || !stream->non_blocking ? NULL : stream;
}

/* The first work of an order in the queue, up to that number; `queued` if none is left. */
static size_t find_work(const struct stream *order, uint64_t last)
{
	size_t at = 0;

	while (at < queued && (queue[at].order != order || queue[at].number > last))
		at++;
	return at;
}

static void run_work(size_t at)
{
	struct work work = queue[at];
	enum result result = sticky();

	queued--;
	memmove(queue + at, queue + at + 1, (queued - at) * sizeof *queue);
	if (!result) {
		result = work.what == LAUNCH ? launch_now(work.line) : perform(&work);
		if (result)
			set_sticky(result);
	}
	release_work(&work);
}

static int work_off(const struct stream *order, uint64_t last)
{
	for (size_t at; (at = find_work(order, last)) < queued;)
		run_work(at);
	return sticky();
}

int drain_stream(void *stream)
{
	return work_off(order_of(stream), told);
}

/* Non-blocking streams go first, as a device may run them before a copy on the legacy stream. */
int drain(void)
{
	size_t at = 0;

	while (at < queued) {
		if (queue[at].order)
			run_work(at);
		else
			at++;
	}
	return work_off(NULL, told);
}

static int append(struct work **list, size_t *count, size_t *have, struct work work)
{
	if (*count == *have) {
		size_t more = *have ? 2 * *have : 64;
		struct work *larger = realloc(*list, more * sizeof *larger);

		if (!larger) {
			release_work(&work);
			return OUT_OF_MEMORY;
		}
		*list = larger;
		*have = more;
	}
	(*list)[(*count)++] = work;
	return SUCCESS;
}

int enqueue(void *stream, struct work work)
{
	if (!common(stream) && ((struct stream *)stream)->captures) {
		struct graph *graph = ((struct stream *)stream)->captures;

		return append(&graph->work, &graph->count, &graph->room, work);
	}
	if (capturing && common(stream)) {
		release_work(&work);
		return STREAM_CAPTURE_IMPLICIT;
	}
	work.order = order_of(stream);
	work.number = ++told;
	return append(&queue, &queued, &queue_room, work);
}

/* ---- streams */

int cuStreamCreate(struct stream **stream, unsigned flags)
{
	int result = ready();

	if (result)
		return result;
	*stream = calloc(1, sizeof **stream);
	if (!*stream)
		return OUT_OF_MEMORY;
	(*stream)->non_blocking = flags & 1;
	return SUCCESS;
}

int cuStreamDestroy_v2(struct stream *stream)
{
	int result;

	if (common(stream))
		return INVALID_HANDLE;
	result = drain_stream(stream);
	free(stream);
	return result;
}

int cuStreamSynchronize(struct stream *stream)
{
	int result = ready();

	return result || (result = not_capturing()) ? result : drain_stream(stream);
}

int cuStreamQuery(struct stream *stream)
{
	size_t at = find_work(order_of(stream), told);
	int result = ready();

	if (result || (result = not_capturing()) || at == queued)
		return result;
	run_work(at);
	return sticky() ? sticky() : NOT_READY;
}

int cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags)
{
	int result = ready();

	(void)stream;
	(void)flags;
	if (!event || result)
		return event ? result : INVALID_HANDLE;
	/* Run the event's work before work that is queued later. */
	return work_off(event->order, event->place);
}

int cuStreamIsCapturing(struct stream *stream, int *state)
{
	int result = ready();

	*state = setting("STAND_IN_CAPTURING", 0) || (!common(stream) && stream->captures);
	return result ? result : capturing && common(stream) ? STREAM_CAPTURE_IMPLICIT : SUCCESS;
}

/* ---- graphs */

int cuStreamBeginCapture_v2(struct stream *stream, int mode)
{
	int result = ready();

	(void)mode;
	if (result || (result = not_capturing()))
		return result;
	if (common(stream))
		return STREAM_CAPTURE_UNSUPPORTED;
	stream->captures = calloc(1, sizeof *stream->captures);
	if (!stream->captures)
		return OUT_OF_MEMORY;
	capturing = stream;
	return SUCCESS;
}

int cuStreamEndCapture(struct stream *stream, struct graph **graph)
{
	if (common(stream) || !stream->captures)
		return STREAM_CAPTURE_UNMATCHED;
	*graph = stream->captures;
	stream->captures = NULL;
	capturing = NULL;
	if (stream->spoiled) {
		stream->spoiled = false;
		cuGraphDestroy(*graph);
		*graph = NULL;
		fprintf(stderr, "stand-in driver: something waited while a stream captured\n");
		return STREAM_CAPTURE_INVALIDATED;
	}
	return ready();
}

static bool duplicate(struct work *to, const struct work *from)
{
	*to = *from;
	if (from->line && !(to->line = strdup(from->line)))
		return false;
	if (!from->own)
		return true;
	to->host = malloc((from->rows - 1) * from->pitch_from + from->bytes);
	if (!to->host)
		return false;
	memcpy(to->host, from->host, (from->rows - 1) * from->pitch_from + from->bytes);
	return true;
}

int cuGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags)
{
	struct graph *copy = calloc(1, sizeof *copy);

	(void)flags;
	if (!copy || !(copy->work = calloc(graph->count + 1, sizeof *copy->work))) {
		free(copy);
		return OUT_OF_MEMORY;
	}
	for (size_t i = 0; i < graph->count; i++, copy->count++) {
		if (!duplicate(&copy->work[i], &graph->work[i]))
			return OUT_OF_MEMORY;
	}
	*executable = copy;
	return ready();
}

/* CUDA 12's header maps this name to the call above, by a macro; a program that looks up the name gets the version with
 * five arguments. Detect a program that passes three. */
int cuGraphInstantiate_v2(struct graph **executable, struct graph *graph, void **error_node, char *log,
			  size_t log_bytes)
{
	(void)executable, (void)graph, (void)error_node, (void)log, (void)log_bytes;
	fprintf(stderr,
		"stand-in driver: cuGraphInstantiate has five arguments; cuGraphInstantiateWithFlags has three\n");
	return INVALID_VALUE;
}

int cuGraphLaunch(struct graph *executable, struct stream *stream)
{
	int result = ready();

	if (executable->launched && setting("STAND_IN_IDLE", 0) == 2)
		return result;
	executable->launched = true;
	for (size_t i = 0; !result && i < executable->count; i++) {
		struct work work;

		result = duplicate(&work, &executable->work[i]) ? (int)enqueue(stream, work) : OUT_OF_MEMORY;
	}
	return result;
}

int cuGraphDestroy(struct graph *graph)
{
	for (size_t i = 0; i < graph->count; i++)
		release_work(&graph->work[i]);
	free(graph->work);
	free(graph);
	return SUCCESS;
}

int cuGraphExecDestroy(struct graph *executable)
{
	return cuGraphDestroy(executable);
}

/* ---- events */

int cuEventCreate(struct event **event, unsigned flags)
{
	int result = ready();

	(void)flags;
	if (result)
		return result;
	*event = calloc(1, sizeof **event);
	if (!*event)
		return OUT_OF_MEMORY;
	**event = (struct event){ .context = current(), .next = events };
	events = *event;
	return SUCCESS;
}

/* After the context is destroyed, the handle is invalid: a real driver may do anything. */
int cuEventDestroy_v2(struct event *event)
{
	struct event **at = &events;

	while (*at && *at != event)
		at = &(*at)->next;
	if (!*at) {
		fprintf(stderr, "stand-in driver: an event is destroyed that went with its context\n");
		abort();
	}
	*at = event->next;
	free(event);
	return SUCCESS;
}

void free_events(const struct context *context)
{
	for (struct event **at = &events; *at;) {
		struct event *event = *at;

		if (event->context == context) {
			*at = event->next;
			free(event);
		} else {
			at = &event->next;
		}
	}
}

int cuEventRecord(struct event *event, struct stream *stream)
{
	int result = ready();

	if (result)
		return result;
	event->order = order_of(stream);
	event->place = told;
	return SUCCESS;
}

int cuEventSynchronize(struct event *event)
{
	int result = ready();

	return result || (result = not_capturing()) ? result : work_off(event->order, event->place);
}

static bool pending(const struct event *event)
{
	return find_work(event->order, event->place) < queued;
}

int cuEventQuery(struct event *event)
{
	int result = ready();

	if (result || !pending(event))
		return result;
	run_work(find_work(event->order, event->place));
	return sticky() ? sticky() : pending(event) ? NOT_READY : SUCCESS;
}

int cuEventElapsedTime(float *milliseconds, struct event *begin, struct event *end)
{
	if (pending(begin) || pending(end))
		return NOT_READY;
	*milliseconds = (float)(end->place - begin->place);
	return SUCCESS;
}
