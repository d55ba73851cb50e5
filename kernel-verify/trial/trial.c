/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.c - buffers between inaccessible pages, random inputs, and signals raised by a kernel.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel-verify/trial/trial.h"
#include "kernels/common/number.h"

#define AROUND 0xff /* NaN as f64, f32, fp16 or bf16; -1 as an integer */

/* ---- random inputs ---------------------------------------------------------------------------------- */

/* splitmix64 */
uint64_t xfp_trial_random(struct xfp_trial *trial)
{
	uint64_t z = trial->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

size_t xfp_trial_random_below(struct xfp_trial *trial, size_t max)
{
	return (size_t)((xfp_trial_random(trial) >> 32) * max >> 32);
}

size_t xfp_trial_columns(struct xfp_trial *trial, size_t max)
{
	if (trial->timing)
		return 4096;
	/* All tails of a vector first, then widths around those of chunks, then any. */
	if (trial->number < 2 * XFP_LANES + 1)
		return trial->number + 1 < max ? trial->number + 1 : max;
	if (trial->number % 4 == 0) {
		size_t near = ((size_t)32 << xfp_trial_random_below(trial, 6)) + xfp_trial_random_below(trial, 3) - 1;

		return near < max ? near : max;
	}
	return 1 + xfp_trial_random_below(trial, max);
}

/* The sum of twelve uniform numbers, in integers: portable, and exact in f32. */
float xfp_trial_gaussian(struct xfp_trial *trial)
{
	int64_t sum = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t four = xfp_trial_random(trial);

		for (int j = 0; j < 4; j++)
			sum += (int64_t)(four >> (16 * j) & 0xffff);
	}
	return (float)(sum - 6 * 65536) / 65536;
}

void xfp_trial_gaussians(struct xfp_trial *trial, float *to, size_t count, float scale)
{
	for (size_t i = 0; i < count; i++)
		to[i] = xfp_trial_gaussian(trial) * scale;
}

void xfp_trial_halves(struct xfp_trial *trial, uint16_t *to, size_t count, float scale)
{
	for (size_t i = 0; i < count; i++)
		to[i] = xfp_float_to_half(xfp_trial_gaussian(trial) * scale);
}

/* ---- buffers ------------------------------------------------------------------------------------------- */

void *xfp_trial_buffer(struct xfp_trial *trial, const char *name, size_t bytes, size_t align)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (bytes + align - 1 + page) / page * page;
	struct xfp_trial_buffer *buffer = &trial->buffers[trial->buffer_count];
	size_t slack = (inner - bytes) / align * align;

	if (trial->buffer_count == XFP_TRIAL_BUFFERS)
		abort();
	*buffer =
		(struct xfp_trial_buffer){ .name = name, .mapped = inner + 2 * page, .bytes = bytes, .around = AROUND };
	buffer->map = mmap(NULL, buffer->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer->map == MAP_FAILED || mprotect(buffer->map + page, inner, PROT_READ | PROT_WRITE)) {
		perror("xfp-kernel-verify: memory for a kernel's data");
		exit(XFP_FAILED);
	}
	trial->buffer_count++;
	buffer->data = buffer->map + page + (trial->from_start ? 0 : slack);
	memset(buffer->map + page, AROUND, inner);
	memset(buffer->data, trial->sealed ? trial->fresh : AROUND, bytes);
	return buffer->data;
}

float *xfp_trial_row(struct xfp_trial *trial, const char *name, size_t cols)
{
	float *row = xfp_trial_buffer(trial, name, xfp_padded(cols) * sizeof *row, sizeof *row);

	memset(row + cols, 0, (xfp_padded(cols) - cols) * sizeof *row);
	return row;
}

void xfp_trial_seal(struct xfp_trial *trial)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (unsigned i = 0; i < trial->buffer_count; i++)
		mprotect(trial->buffers[i].map + page, trial->buffers[i].mapped - 2 * page, PROT_READ);
	trial->sealed = trial->buffer_count ? trial->buffer_count : 1;
}

static bool untouched(const uint8_t *from, const uint8_t *end)
{
	for (; from < end; from++)
		if (*from != AROUND)
			return false;
	return true;
}

static void release(struct xfp_trial *trial)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (unsigned i = 0; i < trial->buffer_count; i++) {
		struct xfp_trial_buffer *buffer = &trial->buffers[i];
		const uint8_t *end = buffer->data + buffer->bytes;

		if (!untouched(buffer->map + page, buffer->data))
			xfp_trial_fail(trial, "memory before \"%s\" was written", buffer->name);
		if (!untouched(end, buffer->map + buffer->mapped - page))
			xfp_trial_fail(trial, "memory after \"%s\" was written", buffer->name);
		munmap(buffer->map, buffer->mapped);
	}
	trial->buffer_count = 0;
}

/* ---- results ------------------------------------------------------------------------------------------- */

void xfp_trial_shape(struct xfp_trial *trial, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(trial->shape, sizeof trial->shape, format, list);
	va_end(list);
}

void xfp_trial_fail(struct xfp_trial *trial, const char *format, ...)
{
	va_list list;

	if (trial->failed)
		return;
	trial->failed = true;
	va_start(list, format);
	vsnprintf(trial->failure, sizeof trial->failure, format, list);
	va_end(list);
}

static size_t size_of(char type)
{
	return type == 'b' ? 1 : type == 'h' ? 2 : type == 'd' || type == 'l' ? 8 : 4;
}

/* Which NaN results depends on operand order and does not matter. */
static void plain_nans(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double value;

		memcpy(&value, bytes + 8 * i, 8);
		if (value != value)
			memset(bytes + 8 * i, 0xff, 8);
	}
}

void xfp_trial_record(struct xfp_trial *trial, const char *name, char type, const void *from, size_t count)
{
	size_t bytes = count * size_of(type);
	uint8_t *buffer = trial->recorded;

	if (trial->record_count == XFP_TRIAL_RECORDS)
		abort();
	if (trial->recorded_bytes + bytes > trial->recorded_capacity) {
		trial->recorded_capacity = (trial->recorded_bytes + bytes) * 2;
		if (!(buffer = realloc(buffer, trial->recorded_capacity))) {
			perror("xfp-kernel-verify: memory for outputs");
			exit(XFP_FAILED);
		}
		trial->recorded = buffer;
	}
	trial->records[trial->record_count++] = (struct xfp_trial_record){ name, type, count, trial->recorded_bytes };
	if (bytes)
		memcpy(buffer + trial->recorded_bytes, from, bytes);
	if (type == 'd')
		plain_nans(buffer + trial->recorded_bytes, count);
	trial->recorded_bytes += bytes;
}

static void describe(char type, const uint8_t *at, char *text, size_t bytes)
{
	uint16_t half;
	int32_t number;
	int64_t wide;
	float value;
	double exact;

	switch (type) {
	case 'b':
		snprintf(text, bytes, "%u", *at);
		break;
	case 'h':
		memcpy(&half, at, sizeof half);
		snprintf(text, bytes, "%#x", half);
		break;
	case 'i':
		memcpy(&number, at, sizeof number);
		snprintf(text, bytes, "%d", number);
		break;
	case 'l':
		memcpy(&wide, at, sizeof wide);
		snprintf(text, bytes, "%lld", (long long)wide);
		break;
	case 'f':
		memcpy(&value, at, sizeof value);
		snprintf(text, bytes, "%a", (double)value);
		break;
	default:
		memcpy(&exact, at, sizeof exact);
		snprintf(text, bytes, "%a", exact);
	}
}

void xfp_trial_compare(struct xfp_trial *trial, const struct xfp_trial *expected)
{
	if (expected->failed) {
		xfp_trial_fail(trial, "nothing to compare with: plain C: %s", expected->failure);
		return;
	}
	for (unsigned i = 0; i < expected->record_count && !trial->failed; i++) {
		const struct xfp_trial_record *want = &expected->records[i], *got = &trial->records[i];
		size_t size = size_of(want->type);

		if (i >= trial->record_count || got->count != want->count) {
			xfp_trial_fail(trial, "\"%s\" has %zu elements, not %zu", want->name,
				       i < trial->record_count ? got->count : 0, want->count);
			return;
		}
		for (size_t e = 0; e < want->count; e++) {
			const uint8_t *one = trial->recorded + got->at + e * size;
			const uint8_t *other = expected->recorded + want->at + e * size;
			char is[40], should[40];

			if (!memcmp(one, other, size))
				continue;
			describe(want->type, one, is, sizeof is);
			describe(want->type, other, should, sizeof should);
			xfp_trial_fail(trial, "\"%s\" [%zu] of %zu is %s, not %s", want->name, e, want->count, is,
				       should);
			return;
		}
	}
}

/* ---- signals -------------------------------------------------------------------------------------------- */

/* One per thread, since threads multiply by a bundle. */
static _Thread_local sigjmp_buf back;
static _Thread_local void *volatile fault_at;
static _Thread_local volatile sig_atomic_t active;

static void caught(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (!active) { /* not raised by a kernel: raise it again with the default action */
		signal(number, SIG_DFL);
		return;
	}
	fault_at = info->si_addr;
	siglongjmp(back, number);
}

const char *xfp_kernel_guarded(void (*run)(void *context), void *context, void **where)
{
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	static const char *const names[] = { "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE" };
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	int number;

	action.sa_sigaction = caught;
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < 4; i++)
		sigaction(numbers[i], &action, NULL);
	number = sigsetjmp(back, 1);
	active = 1;
	if (!number)
		run(context);
	active = 0;
	if (where)
		*where = fault_at;
	for (int i = 0; i < 4; i++)
		if (numbers[i] == number)
			return names[i];
	return NULL;
}

/* ---- a trial ---------------------------------------------------------------------------------------------- */

static void call(void *context)
{
	struct xfp_trial *trial = context;

	trial->op->run(trial);
}

/* "SIGSEGV 4 bytes after "w"". */
static void blame(struct xfp_trial *trial, const char *signal, const uint8_t *where)
{
	for (unsigned i = 0; i < trial->buffer_count; i++) {
		const struct xfp_trial_buffer *buffer = &trial->buffers[i];

		if (where < buffer->map || where >= buffer->map + buffer->mapped)
			continue;
		if (where < buffer->data)
			xfp_trial_fail(trial, "%s, %zu bytes before \"%s\"", signal, (size_t)(buffer->data - where),
				       buffer->name);
		else if (where >= buffer->data + buffer->bytes)
			xfp_trial_fail(trial, "%s, byte %zu after \"%s\"", signal,
				       (size_t)(where - buffer->data - buffer->bytes), buffer->name);
		else
			xfp_trial_fail(trial, "%s, byte %zu of \"%s\", which is read-only", signal,
				       (size_t)(where - buffer->data), buffer->name);
		return;
	}
	xfp_trial_fail(trial, "%s", signal);
}

bool xfp_trial_again(struct xfp_trial *trial)
{
	return trial->timing ? xfp_timing_again(trial->timing) : !trial->calls++;
}

void xfp_trial_run(struct xfp_trial *trial, const struct xfp_kernel_op *op, enum xfp_kernel_set set, uint64_t seed,
		   unsigned number)
{
	const char *signal;
	void *where;

	trial->op = op;
	trial->set = set;
	trial->number = number;
	trial->buffer_count = trial->sealed = trial->record_count = trial->calls = 0;
	trial->recorded_bytes = 0;
	trial->failed = false;
	*trial->shape = *trial->failure = 0;
	trial->random = seed * 0x9e3779b97f4a7c15 + number;
	for (const char *c = op->name; *c; c++)
		trial->random = (trial->random ^ (uint8_t)*c) * 0x100000001b3;
	signal = xfp_kernel_guarded(call, trial, &where);
	if (signal)
		blame(trial, signal, where);
	release(trial);
}

void xfp_trial_free(struct xfp_trial *trial)
{
	free(trial->recorded);
	trial->recorded = NULL;
	trial->recorded_capacity = 0;
}
