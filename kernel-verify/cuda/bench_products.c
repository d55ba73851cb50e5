/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_products.c - time products: a graph of many launches over enough copies of a matrix to exceed the cache, in
 * turns with plain reads and with cuBLAS.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel-verify/cuda/bench.h"
#include "schemas/layout/classes.h"

#define MAX_COPIES 64
#define MIN_LAUNCHES 24 /* per graph; with many vectors: */
#define FEW_LAUNCHES 4
#define MANY_VECTORS 32
#define CHOSEN 8 /* experts */
#define NUMBERS 7
static const unsigned numbers[NUMBERS] = { 1, 2, 4, 8, 16, 32, 512 };

bool xfp_bench_counts_parse(const char *text, unsigned *selected)
{
	*selected = 0;
	for (;;) {
		size_t length = strcspn(text, ",");
		unsigned i;

		for (i = 0; i < NUMBERS; i++) {
			char number[8];

			snprintf(number, sizeof number, "%u", numbers[i]);
			if (strlen(number) == length && !strncmp(number, text, length))
				break;
		}
		if (i == NUMBERS)
			return false;
		*selected |= 1u << i;
		if (!text[length])
			return true;
		text += length + 1;
	}
}

/* Whether --vectors selects entry i of the case. */
static bool selected(const struct xfp_bench *bench, const struct xfp_bench_case *of, unsigned i)
{
	unsigned vectors = bench->report->request->vectors;

	return of->vectors >> i & 1 && (!vectors || vectors >> i & 1);
}

struct bench_subject {
	struct xfp_bench *bench;
	const struct xfp_bench_case *of;
	struct xfp_device_linear linear[MAX_COPIES];
	unsigned copies;
	struct xfp_unit_file unit; /* the matrix that is copied */
	uint64_t x, y, lists;      /* sized for the most vectors; lists of CHOSEN products */
	uint8_t *host_x;
	struct xfp_product products[256]; /* of all lists */
	unsigned list_count;
	uint64_t others; /* bf16 matrices for cuBLAS; 0: none */
	unsigned other_copies;
	const char *no_others; /* the reason if there are none */
};

/* One measurement, with a number of vectors at once. */
struct bench_measured {
	struct bench_subject *subject;
	unsigned count, launches;
	bool wrong; /* or failed: no line is printed */
	struct xfp_device_vectors vectors;
	xfp_cu_handle graph, others, preparing;
	struct xfp_rounds seconds, share, other_seconds, preparing_seconds;
};

/* ---- launches ----------------------------------------------------------------------------------------- */

static size_t vectors_of(const struct bench_measured *m)
{
	return m->subject->of->sum ? CHOSEN : m->count;
}

static struct xfp_cuda_input input_of(const struct bench_measured *m)
{
	return (struct xfp_cuda_input){ m->subject->x, XFP_BFLOAT16, vectors_of(m), m->subject->linear[0].info.cols };
}

static enum xfp_status enqueue_product(void *context, struct xfp_error *err)
{
	struct bench_measured *m = context;
	struct bench_subject *s = m->subject;
	bool experts = s->of->experts > 1;
	struct xfp_cuda_output out = { s->y, XFP_BFLOAT16, experts ? s->of->sum ? 1 : CHOSEN : m->count,
				       s->linear[0].info.rows };
	enum xfp_status status = XFP_OK;

	for (unsigned i = 0; !status && i < m->launches; i++) {
		const struct xfp_device_linear *linear = &s->linear[i % s->copies];
		uint64_t list =
			s->lists + i % (s->list_count ? s->list_count : 1) * CHOSEN * sizeof(struct xfp_product);

		status = experts ? xfp_device_multiply_experts(s->bench->device, linear, list, CHOSEN, &m->vectors,
							       &out, err)
				 : xfp_device_multiply(s->bench->device, linear, 0, &m->vectors, &out, err);
	}
	return status;
}

static enum xfp_status enqueue_preparing(void *context, struct xfp_error *err)
{
	struct bench_measured *m = context;
	struct xfp_cuda_input in = input_of(m);
	enum xfp_status status = XFP_OK;

	for (unsigned i = 0; !status && i < m->launches; i++)
		status = xfp_device_prepare(m->subject->bench->device, &m->subject->linear[0], &in, &m->vectors, err);
	return status;
}

static enum xfp_status enqueue_others(void *context, struct xfp_error *err)
{
	struct bench_measured *m = context;
	struct bench_subject *s = m->subject;
	uint64_t rows = s->linear[0].info.rows, cols = s->linear[0].info.cols;
	unsigned each = s->of->experts > 1 ? CHOSEN : 1;

	for (unsigned i = 0; i < m->launches * each; i++) {
		int result = xfp_blas_multiply(&s->bench->blas, s->others + i % s->other_copies * rows * cols * 2, s->x,
					       s->y, (int)rows, (int)cols, (int)m->count);

		if (result)
			return xfp_fail(err, XFP_FAILED, "cublasGemmEx failed (%d)", result);
	}
	return XFP_OK;
}

/* ---- device memory ------------------------------------------------------------------------------------ */

static size_t free_bytes(const struct xfp_device *device)
{
	size_t left = 0, all;

	return device->cu.cuMemGetInfo(&left, &all) ? 0 : left;
}

/* Copies needed to exceed the cache three times, within half of the memory. */
static unsigned copies_of(const struct xfp_device *device, uint64_t bytes)
{
	uint64_t wanted = (3 * (uint64_t)device->cache + bytes - 1) / bytes, room = free_bytes(device) / 2 / bytes;

	wanted = wanted < room ? wanted : room;
	return wanted < 1 ? 1 : wanted < MAX_COPIES ? (unsigned)wanted : MAX_COPIES;
}

static enum xfp_status upload(struct bench_subject *s, const struct xfp_unit_file *unit, struct xfp_error *err)
{
	struct xfp_device *device = s->bench->device;
	struct xfp_bundle *bundle = NULL;
	enum xfp_status status;
	char path[32];
	int file = memfd_create("xfp-kernel-verify", MFD_CLOEXEC);

	if (file < 0)
		return xfp_fail(err, XFP_FAILED, "cannot create a file in memory");
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	if (!(status = xfp_unit_file_write(unit, file, err)) &&
	    !(status = device->lib.xfp_bundle_open(path, &bundle, err)) &&
	    !(status = xfp_device_linear_open(device, bundle, false, NULL, &s->linear[0], err))) {
		unsigned wanted = unit->experts > 1 ? 1 : copies_of(device, s->linear[0].bytes);

		for (s->copies = 1; !status && s->copies < wanted; s->copies++)
			status = xfp_device_linear_open(device, bundle, false, NULL, &s->linear[s->copies], err);
	}
	device->lib.xfp_bundle_close(bundle);
	close(file);
	return status;
}

/* Each list uses other experts, so that none is repeated while it is still cached. */
static enum xfp_status make_lists(struct bench_subject *s, struct xfp_error *err)
{
	struct xfp_product *products = s->products;
	enum xfp_status status;

	s->list_count = s->of->experts / CHOSEN;
	if (s->of->experts < 2)
		return XFP_OK;
	for (unsigned i = 0; i < s->list_count * CHOSEN; i++)
		/* spread out, like the experts a router chooses */
		products[i] = (struct xfp_product){ .expert = i % CHOSEN * s->list_count + i / CHOSEN,
						    .x = s->of->sum ? i % CHOSEN : 0,
						    .y = s->of->sum ? 0 : i % CHOSEN,
						    .weight = 0.125f };
	if ((status = xfp_device_alloc(s->bench->device, s->list_count * CHOSEN * sizeof *products, &s->lists, err)))
		return status;
	return xfp_device_copy_in(s->bench->device, s->lists, products, s->list_count * CHOSEN * sizeof *products, err);
}

static enum xfp_status make_others(struct bench_subject *s, struct xfp_error *err)
{
	uint64_t bytes = s->linear[0].info.rows * s->linear[0].info.cols * 2;
	struct xfp_device *device = s->bench->device;

	s->no_others = "no cuBLAS";
	if (!s->bench->blas_found)
		return XFP_OK;
	s->no_others = "no room";
	if (bytes > free_bytes(device) / 2)
		return XFP_OK;
	s->other_copies = copies_of(device, bytes);
	if (xfp_device_alloc(device, s->other_copies * bytes, &s->others, err))
		return XFP_OK;
	return xfp_bench_fill(s->bench, s->others, s->other_copies * bytes, err);
}

static enum xfp_status begin(struct bench_subject *s, struct xfp_error *err)
{
	struct xfp_device *device = s->bench->device;
	unsigned most = s->of->experts > 1 ? CHOSEN : 1;
	enum xfp_status status;

	for (unsigned i = 0; i < NUMBERS; i++)
		most = selected(s->bench, s->of, i) && numbers[i] > most ? numbers[i] : most;
	if (!(s->host_x = malloc(most * s->of->cols * 2)))
		return xfp_no_memory(err);
	xfp_bench_vectors(s->bench, s->host_x, most * s->of->cols);
	if ((status = xfp_bench_unit(s->bench, s->of, &s->unit, err)) || (status = upload(s, &s->unit, err)) ||
	    (status = xfp_device_alloc(device, most * s->linear[0].info.cols * 2, &s->x, err)) ||
	    (status = xfp_device_alloc(device, most * s->linear[0].info.rows * 2, &s->y, err)) ||
	    (status = xfp_device_copy_in(device, s->x, s->host_x, most * s->of->cols * 2, err)) ||
	    (status = make_lists(s, err)))
		return status;
	return make_others(s, err);
}

static void end(struct bench_subject *s)
{
	struct xfp_device *device = s->bench->device;

	device->cuCtxSynchronize();
	for (unsigned i = 0; i < MAX_COPIES; i++)
		if (s->linear[i].linear)
			xfp_device_linear_close(device, &s->linear[i]);
	xfp_device_free(device, s->x);
	xfp_device_free(device, s->y);
	xfp_device_free(device, s->lists);
	xfp_device_free(device, s->others);
	xfp_unit_file_free(&s->unit);
	free(s->host_x);
}

/* ---- measuring ---------------------------------------------------------------------------------------- */

/* Bytes of weights read by a launch: the whole image, although kernels read the codebooks either as stored (few
 * vectors) or as integers (many). With 8192 columns either is at most a hundredth. */
static double bytes_of(const struct bench_subject *s)
{
	return (double)s->linear[0].bytes * (s->of->experts > 1 ? (double)CHOSEN / s->of->experts : 1);
}

/* Run the graph once and check its results. */
static enum xfp_status check(struct bench_measured *m, struct xfp_error *err)
{
	struct bench_subject *s = m->subject;
	struct xfp_device *device = s->bench->device;
	bool experts = s->of->experts > 1;
	struct xfp_bench_results results = { .unit = &s->unit, .x = s->host_x, .y = s->y, .count = m->count };
	enum xfp_status status;
	double ignored;

	if (experts) {
		results.count = s->of->sum ? 1 : CHOSEN;
		results.list = s->products + (m->launches - 1) % s->list_count * CHOSEN;
		results.listed = CHOSEN;
	}
	/* Results that no kernel writes stay NaN. */
	if ((status = XFP_DEVICE_DO(device, cuMemsetD8Async,
				    (s->y, 0xff, results.count * s->unit.rows * 2, device->stream), err)) ||
	    (status = xfp_bench_time(s->bench, m->graph, &ignored, err)) || s->bench->report->request->unchecked)
		return status;
	return xfp_bench_check(s->bench, &results, err);
}

/* Run cuBLAS once outside of a graph, since it loads code lazily. If that fails, the rest is still measured. */
static enum xfp_status make_others_graph(struct bench_measured *m, struct xfp_error *err)
{
	struct xfp_device *device = m->subject->bench->device;
	double ignored;

	if (!enqueue_others(m, err) && !xfp_device_graph(device, enqueue_others, m, &m->others, err) &&
	    !xfp_bench_time(m->subject->bench, m->others, &ignored, err))
		return XFP_OK;
	xfp_device_check_lost(device);
	if (device->lost)
		return err->status;
	m->subject->no_others = "cuBLAS fails";
	xfp_device_graph_free(device, m->others);
	m->others = NULL;
	return XFP_OK;
}

static enum xfp_status make_graphs(struct bench_measured *m, struct xfp_error *err)
{
	struct bench_subject *s = m->subject;
	struct xfp_device *device = s->bench->device;
	unsigned least = m->count >= MANY_VECTORS ? FEW_LAUNCHES : MIN_LAUNCHES,
		 cycle = s->list_count > s->copies ? s->list_count : s->copies;
	struct xfp_cuda_input in = input_of(m);
	enum xfp_status status;
	double ignored;

	m->launches = (least + cycle - 1) / cycle * cycle;
	if ((status = xfp_device_vectors_alloc(device, &s->linear[0], vectors_of(m), &m->vectors, err)) ||
	    (status = xfp_device_prepare(device, &s->linear[0], &in, &m->vectors, err)) ||
	    (status = xfp_device_graph(device, enqueue_product, m, &m->graph, err)) ||
	    (status = xfp_device_graph(device, enqueue_preparing, m, &m->preparing, err)) || (status = check(m, err)) ||
	    (status = xfp_bench_time(s->bench, m->preparing, &ignored, err)) || !s->others)
		return status;
	return make_others_graph(m, err);
}

static enum xfp_status measure(struct bench_measured *m, int round, struct xfp_error *err)
{
	struct xfp_bench *bench = m->subject->bench;
	enum xfp_status status;
	double reading = 0, took;

	if ((status = xfp_bench_read(bench, &reading, err)) || (status = xfp_bench_time(bench, m->graph, &took, err)))
		return status;
	m->seconds.of[round] = took / m->launches;
	m->share.of[round] = bytes_of(m->subject) / m->seconds.of[round] * (reading / (double)bench->read_bytes);
	if ((status = xfp_bench_time(bench, m->preparing, &took, err)))
		return status;
	m->preparing_seconds.of[round] = took / m->launches;
	if (!m->others)
		return XFP_OK;
	status = xfp_bench_time(bench, m->others, &took, err);
	m->other_seconds.of[round] = took / m->launches;
	return status;
}

static void print_json(struct bench_measured *m, double seconds, double share, double others)
{
	struct bench_subject *s = m->subject;
	struct xfp_kernel_report *report = s->bench->report;

	printf("%s\n    {\"op\": \"%s\", \"set\": \"cuda\", \"group\": %u, \"experts\": %u, "
	       "\"rows\": %llu, \"cols\": %llu, "
	       "\"vectors\": %u, \"kernel\": \"%s\", \"bytes\": %.0f, \"seconds\": %.4g, \"preparing_seconds\": %.4g, "
	       "\"bytes_per_second\": %.4g",
	       report->any ? "," : "", s->of->op, s->of->group ? 1u << s->of->group : 0, s->of->experts,
	       (unsigned long long)s->linear[0].info.rows, (unsigned long long)s->linear[0].info.cols, m->count,
	       s->linear[0].info.kernel, bytes_of(s), seconds, xfp_median(m->preparing_seconds), bytes_of(s) / seconds);
	report->any = true;
	if (s->bench->read)
		printf(", \"of_reading\": %.3f", share);
	if (m->others)
		printf(", \"cublas_seconds\": %.4g, \"of_cublas\": %.4g", others, others / seconds);
	printf("}");
}

static void print_line(struct bench_measured *m, double seconds, double share, double others)
{
	struct bench_subject *s = m->subject;
	char name[64];

	snprintf(name, sizeof name, s->of->group ? "%s G%u" : "%s", s->of->op, 1u << s->of->group);
	printf("%-19s %6llu x %-5llu%s %7.1f MB M=%-3u %9.2f us %7.1f GB/s", name,
	       (unsigned long long)s->linear[0].info.rows, (unsigned long long)s->linear[0].info.cols,
	       s->of->experts > 1 ? " x 8" : "    ", bytes_of(s) * 1e-6, m->count, seconds * 1e6,
	       bytes_of(s) / seconds * 1e-9);
	if (s->bench->read)
		printf(" %4.0f %% of reads", 100 * share);
	if (m->others)
		printf("  cuBLAS bf16 %9.2f us: %5.2f x", others * 1e6, others / seconds);
	else
		printf("  (%s)", s->no_others);
	printf("  prepared in %.2f us\n", xfp_median(m->preparing_seconds) * 1e6);
}

static void print_measured(struct bench_measured *m)
{
	double seconds = xfp_median(m->seconds), share = xfp_median(m->share),
	       others = m->others ? xfp_median(m->other_seconds) : 0;

	if (m->subject->bench->report->request->json)
		print_json(m, seconds, share, others);
	else
		print_line(m, seconds, share, others);
}

static void release(struct bench_measured *m)
{
	struct xfp_device *device = m->subject->bench->device;

	xfp_device_graph_free(device, m->graph);
	xfp_device_graph_free(device, m->preparing);
	xfp_device_graph_free(device, m->others);
	xfp_device_free(device, m->vectors.memory);
}

enum xfp_status xfp_bench_products(struct xfp_bench *bench, const struct xfp_bench_case *of, struct xfp_error *err)
{
	struct bench_subject *s = calloc(1, sizeof *s);
	struct bench_measured measured[NUMBERS];
	enum xfp_status status;
	struct xfp_error failure;
	unsigned count = 0;

	if (!s)
		return xfp_no_memory(err);
	*s = (struct bench_subject){ .bench = bench, .of = of };
	status = begin(s, err);
	for (unsigned i = 0; !status && i < NUMBERS; i++) {
		if (!selected(bench, of, i))
			continue;
		measured[count] = (struct bench_measured){ .subject = s, .count = numbers[i] };
		if (make_graphs(&measured[count], &failure)) {
			xfp_context(&failure, failure.status, "M=%u", numbers[i]);
			xfp_bench_failed(bench, of->op, &failure);
			measured[count].wrong = true;
		}
		count++;
		if (bench->device->lost)
			break;
	}
	for (int round = 0; !status && !bench->device->lost && round < XFP_BENCH_ROUNDS; round++)
		for (unsigned i = 0; !status && i < count; i++)
			if (!measured[i].wrong)
				status = measure(&measured[i], round, err);
	for (unsigned i = 0; i < count; i++) {
		if (!status && !bench->device->lost && !measured[i].wrong)
			print_measured(&measured[i]);
		release(&measured[i]);
	}
	end(s);
	free(s);
	return status;
}
