/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory in a file, and copies from and to it; see driver.c. */
#include "tests/cuda/driver_calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The bits above this hold the number of the allocation, so that allocations are far apart; see ptx/memory.py. */
#define SHIFT 36
#define ALIGN 512
#define HEAD ((sizeof(struct table) + 65535) & ~(size_t)65535)

static struct table *table;
static unsigned char *data, *written;
static int file = -1;
static uint64_t numbers;
static long allocations;

static struct {
	unsigned char *at;
	size_t bytes;
	bool own;
	const struct context *context;
} host[256];

int memory_file(void)
{
	uint64_t all = (uint64_t)setting("STAND_IN_MEMORY", 4L << 30) * (uint64_t)devices();
	unsigned char *map;

	if (file >= 0)
		return file;
	file = memfd_create("stand-in device", 0);
	if (file < 0 || ftruncate(file, (off_t)(HEAD + 2 * all)) < 0)
		abort();
	map = mmap(NULL, HEAD + 2 * all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
	if (map == MAP_FAILED)
		abort();
	table = (struct table *)(void *)map;
	*table = (struct table){ .data = HEAD, .written = HEAD + all, .all = all };
	data = map + HEAD;
	written = data + all;
	return file;
}

static struct entry *find(address at, size_t bytes)
{
	for (uint64_t i = 0; table && i < table->count; i++) {
		struct entry *entry = &table->entry[i];
		uint64_t offset = at - (entry->number << SHIFT);

		if (at >> SHIFT == entry->number && offset <= entry->bytes && bytes <= entry->bytes - offset)
			return entry;
	}
	return NULL;
}

static uint64_t taken(int device)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; table && i < table->count; i++) {
		if (table->entry[i].device == (uint64_t)device)
			sum += (table->entry[i].bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	}
	return sum;
}

int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	int result = ready();

	if (result)
		return result;
	*all = (size_t)setting("STAND_IN_MEMORY", 4L << 30);
	*left = *all - taken(current()->device);
	return SUCCESS;
}

int cuMemAlloc_v2(address *memory, size_t bytes)
{
	uint64_t step = (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1), offset = 0, i;
	int result = ready();

	if (result || (result = not_capturing()))
		return result;
	if (!bytes)
		return INVALID_VALUE;
	memory_file();
	if (++allocations == setting("STAND_IN_FAIL_ALLOC", 0) ||
	    table->count == sizeof table->entry / sizeof *table->entry ||
	    taken(current()->device) + step > (uint64_t)setting("STAND_IN_MEMORY", 4L << 30))
		return OUT_OF_MEMORY;
	/* The first gap; entries are in the order of offsets. */
	for (i = 0; i < table->count && table->entry[i].offset - offset < step; i++)
		offset = (table->entry[i].offset + table->entry[i].bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	if (offset + step > table->all)
		return OUT_OF_MEMORY;
	memmove(&table->entry[i + 1], &table->entry[i], (table->count - i) * sizeof table->entry[0]);
	table->entry[i] = (struct entry){ ++numbers, offset, bytes, (uint64_t)current()->device };
	table->count++;
	/* Fill the memory, so that earlier contents cannot be used. */
	memset(data + offset, 0xa5, step);
	memset(written + offset, 0, step);
	*memory = numbers << SHIFT;
	return SUCCESS;
}

static void forget(struct entry *entry)
{
	uint64_t i = (uint64_t)(entry - table->entry);

	table->count--;
	memmove(entry, entry + 1, (table->count - i) * sizeof *entry);
}

int cuMemFree_v2(address memory)
{
	struct entry *entry;
	int result = ready();

	if (result || (result = not_capturing()) || (result = drain()))
		return result;
	if (!memory)
		return SUCCESS;
	entry = find(memory, 0);
	if (!entry || entry->number << SHIFT != memory)
		return INVALID_VALUE;
	forget(entry);
	return SUCCESS;
}

void free_device(int device)
{
	for (uint64_t i = table ? table->count : 0; i-- > 0;) {
		if (table->entry[i].device == (uint64_t)device)
			forget(&table->entry[i]);
	}
}

/* ---- copies */

int perform(const struct work *work)
{
	for (size_t row = 0; row < work->rows; row++) {
		address to = work->to + row * work->pitch_to, from = work->from + row * work->pitch_from;
		struct entry *target = work->what == COPY_OUT ? NULL : find(to, work->bytes);
		struct entry *source = work->what == COPY_OUT || work->what == COPY ? find(from, work->bytes) : NULL;
		uint64_t at = target ? target->offset + to - (target->number << SHIFT) : 0;
		uint64_t of = source ? source->offset + from - (source->number << SHIFT) : 0;

		if ((work->what != COPY_OUT && !target) || ((work->what == COPY_OUT || work->what == COPY) && !source))
			return INVALID_VALUE;
		switch (work->what) {
		case COPY_IN:
			memcpy(data + at, (char *)work->host + row * work->pitch_from, work->bytes);
			memset(written + at, 1, work->bytes);
			break;
		case COPY_OUT:
			memcpy((char *)work->host + row * work->pitch_to, data + of, work->bytes);
			break;
		case COPY:
			memmove(data + at, data + of, work->bytes);
			memmove(written + at, written + of, work->bytes);
			break;
		case FILL:
			memset(data + at, (int)work->value, work->bytes);
			memset(written + at, 1, work->bytes);
			break;
		case LAUNCH:
			break;
		}
	}
	return SUCCESS;
}

/* Staging: the caller may change or free its memory while the copy is queued. */
static int stage(struct work *work)
{
	size_t all = (work->rows - 1) * work->pitch_from + work->bytes;
	void *own = malloc(all);

	if (!own)
		return OUT_OF_MEMORY;
	memcpy(own, work->host, all);
	work->host = own;
	work->own = true;
	return SUCCESS;
}

/* A synchronous call waits only as long as CUDA documents ("API synchronization behavior"). A copy from pageable
 * memory waits for its stream, is staged and may reach the device later. Copies and fills within the device are only
 * queued. */
static int copy(struct work work, void *stream, bool synchronous)
{
	bool in = work.what == COPY_IN, out = work.what == COPY_OUT;
	bool pageable = (in || out) && !pinned(work.host);
	int result = ready_for(in && !synchronous ? "cuMemcpyHtoDAsync" : "");

	if (result || (synchronous && (result = not_capturing())))
		return result;
	if (!work.bytes || !work.rows)
		return SUCCESS;
	if (in && pageable && synchronous && (result = drain_stream(stream)))
		return result;
	if (in && pageable && (result = stage(&work)))
		return result;
	if ((result = enqueue(stream, work)))
		return result;
	if ((in && synchronous && !pageable) || (out && (synchronous || pageable)))
		return drain_stream(stream);
	return SUCCESS;
}

int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *stream)
{
	return copy((struct work){ .what = COPY_IN, .to = to, .host = (void *)from, .bytes = bytes, .rows = 1 }, stream,
		    false);
}

int cuMemcpyHtoD_v2(address to, const void *from, size_t bytes)
{
	return copy((struct work){ .what = COPY_IN, .to = to, .host = (void *)from, .bytes = bytes, .rows = 1 }, NULL,
		    true);
}

int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *stream)
{
	return copy((struct work){ .what = COPY_OUT, .from = from, .host = to, .bytes = bytes, .rows = 1 }, stream,
		    false);
}

int cuMemcpyDtoH_v2(void *to, address from, size_t bytes)
{
	return copy((struct work){ .what = COPY_OUT, .from = from, .host = to, .bytes = bytes, .rows = 1 }, NULL, true);
}

int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream)
{
	return copy((struct work){ .what = COPY, .to = to, .from = from, .bytes = bytes, .rows = 1 }, stream, false);
}

int cuMemcpyDtoD_v2(address to, address from, size_t bytes)
{
	return copy((struct work){ .what = COPY, .to = to, .from = from, .bytes = bytes, .rows = 1 }, NULL, true);
}

int cuMemsetD8Async(address to, unsigned char value, size_t count, void *stream)
{
	return copy((struct work){ .what = FILL, .to = to, .value = value, .bytes = count, .rows = 1 }, stream, false);
}

int cuMemsetD8_v2(address to, unsigned char value, size_t count)
{
	return copy((struct work){ .what = FILL, .to = to, .value = value, .bytes = count, .rows = 1 }, NULL, true);
}

static int copy_rows(const struct copy_2d *asked, void *stream, bool synchronous)
{
	struct work work = { .bytes = asked->width,
			     .rows = asked->height,
			     .pitch_to = asked->to_pitch ? asked->to_pitch : asked->width,
			     .pitch_from = asked->from_pitch ? asked->from_pitch : asked->width };
	size_t to = asked->to_y * work.pitch_to + asked->to_x, from = asked->from_y * work.pitch_from + asked->from_x;

	if (work.pitch_to < work.bytes || work.pitch_from < work.bytes)
		return INVALID_VALUE;
	work.to = asked->to_device + to;
	work.from = asked->from_device + from;
	if (asked->from_type == 1 && asked->to_type == 2) {
		work.what = COPY_IN;
		work.host = (char *)asked->from_host + from;
	} else if (asked->from_type == 2 && asked->to_type == 1) {
		work.what = COPY_OUT;
		work.host = (char *)asked->to_host + to;
	} else if (asked->from_type == 2 && asked->to_type == 2) {
		work.what = COPY;
	} else {
		return INVALID_VALUE;
	}
	return copy(work, stream, synchronous);
}

int cuMemcpy2DAsync_v2(const struct copy_2d *asked, void *stream)
{
	return copy_rows(asked, stream, false);
}

int cuMemcpy2D_v2(const struct copy_2d *asked)
{
	return copy_rows(asked, NULL, true);
}

/* host memory */

static int note_host(void *memory, size_t bytes, bool own)
{
	size_t all = bytes;

	for (size_t i = 0; i < sizeof host / sizeof *host; i++)
		all += host[i].at ? host[i].bytes : 0;
	if (all > (size_t)setting("STAND_IN_PINNED", 1L << 30))
		return OUT_OF_MEMORY;
	for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
		if (host[i].at)
			continue;
		host[i].at = memory;
		host[i].bytes = bytes;
		host[i].own = own;
		host[i].context = current();
		return SUCCESS;
	}
	return OUT_OF_MEMORY;
}

bool pinned(const void *memory)
{
	for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
		if (host[i].at && (const unsigned char *)memory >= host[i].at &&
		    (const unsigned char *)memory < host[i].at + host[i].bytes)
			return true;
	}
	return false;
}

static int drop_host(const void *memory, bool own)
{
	for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
		if (host[i].at != memory || host[i].own != own || !memory)
			continue;
		if (own)
			free(host[i].at);
		host[i].at = NULL;
		return SUCCESS;
	}
	return own ? INVALID_VALUE : HOST_MEMORY_NOT_REGISTERED;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
	int result = ready();

	(void)flags;
	if (result)
		return result;
	*memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	if (!*memory || (result = note_host(*memory, bytes, true))) {
		free(*memory);
		*memory = NULL;
		return OUT_OF_MEMORY;
	}
	return SUCCESS;
}

/* Pinned memory of a context is freed with it. */
void free_pinned(const struct context *context)
{
	for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
		if (!host[i].at || host[i].context != context)
			continue;
		if (host[i].own)
			free(host[i].at);
		host[i].at = NULL;
	}
}

int cuMemFreeHost(void *memory)
{
	int result = drain();

	return result ? result : drop_host(memory, true);
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
	int result = ready();

	(void)flags;
	if (result)
		return result;
	return pinned(memory) ? HOST_MEMORY_ALREADY_REGISTERED : note_host(memory, bytes, false);
}

int cuMemHostUnregister(void *memory)
{
	int result = drain();

	return result ? result : drop_host(memory, false);
}

/* Memory unknown to the driver is an error, as with a real driver. */
int cuPointerGetAttribute(void *value, int attribute, address of)
{
	struct entry *entry = find(of, 1);
	bool known = pinned((void *)(uintptr_t)of);
	address base = entry ? entry->number << SHIFT : 0;
	size_t bytes = entry ? entry->bytes : 0;
	int device = entry ? (int)entry->device : 0;
	unsigned type = entry ? 2 : 1;

	if (!entry && !known)
		return INVALID_VALUE;
	switch (attribute) {
	case 2:
		memcpy(value, &type, sizeof type);
		return SUCCESS;
	case 3:
		memcpy(value, &of, sizeof of);
		return SUCCESS;
	case 9:
		memcpy(value, &device, sizeof device);
		return SUCCESS;
	case 11:
		memcpy(value, &base, sizeof base);
		return entry ? SUCCESS : INVALID_VALUE;
	case 12:
		memcpy(value, &bytes, sizeof bytes);
		return entry ? SUCCESS : INVALID_VALUE;
	default:
		return INVALID_VALUE;
	}
}
