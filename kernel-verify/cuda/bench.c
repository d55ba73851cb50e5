/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c - the device bench's table of cases, and the plain reads used for comparison.
 */
#include "kernel-verify/cuda/bench.h"

#include <string.h>

#include "base/dtype.h"
#include "base/system/output.h"
#include "schemas/layout/classes.h"

#define MIN_READ ((size_t)64 << 20)
#define MAX_READ ((size_t)1 << 30)
#define READS 8                          /* per graph */
#define READ_STEP ((size_t)512 * 8 * 16) /* bytes per block of measure.cu */
#define COLS 8192                        /* of matrices of --mib */

/* 1, 2, 4, 8, 16, 32 and 512 vectors, and one alone. */
#define ALL 0x7f
#define ONE 1
#define ONE_AND_MANY 0x51

static const struct xfp_bench_case cases[] = {
	{ "matvec v2 k=4", XFP_MODE_V2, 4, 0, 0, 0, COLS, 1, false, ALL },
	{ "matvec v2 k=3", XFP_MODE_V2, 3, 0, 0, 0, COLS, 1, false, ALL },
	{ "matvec v2 k=2", XFP_MODE_V2, 2, 0, 0, 0, COLS, 1, false, ALL },
	{ "matvec v2c k=4", XFP_MODE_V2C, 4, 5, 3, 0, COLS, 1, false, ALL },
	{ "matvec v2c k=3", XFP_MODE_V2C, 3, 5, 3, 0, COLS, 1, false, ALL },
	{ "matvec v2c k=2", XFP_MODE_V2C, 2, 5, 3, 0, COLS, 1, false, ALL },
	{ "matvec v2 k=5", XFP_MODE_V2, 5, 0, 0, 0, COLS, 1, false, ONE_AND_MANY },
	{ "matvec v2 k=6", XFP_MODE_V2, 6, 0, 0, 0, COLS, 1, false, ONE_AND_MANY },
	{ "matvec v2c k=4", XFP_MODE_V2C, 4, 4, 3, 0, COLS, 1, false, ONE_AND_MANY },
	{ "matvec v2c k=4", XFP_MODE_V2C, 4, 6, 3, 0, COLS, 1, false, ONE_AND_MANY },
	{ "matvec v2a k=4", XFP_MODE_V2A, 4, 7, 5, 0, COLS, 1, false, ONE_AND_MANY },
	{ "matvec v2a k=3", XFP_MODE_V2A, 3, 7, 5, 0, COLS, 1, false, ONE_AND_MANY },
	{ "matvec v2a k=2", XFP_MODE_V2A, 2, 7, 5, 0, COLS, 1, false, ONE_AND_MANY },
	{ "matvec fp8", XFP_MODE_FP8, 0, 0, 0, 0, COLS, 1, false, ONE_AND_MANY },
	{ "matvec bf16", XFP_MODE_KEEP, 0, 0, 0, 0, COLS, 1, false, ONE_AND_MANY },
	/* Small matrices, dominated by launches and the last blocks. */
	{ "matvec v2 k=4", XFP_MODE_V2, 4, 0, 0, 4096, 4096, 1, false, ONE },
	{ "matvec v2 k=2", XFP_MODE_V2, 2, 0, 0, 4096, 14336, 1, false, ONE },
	{ "matvec v2c k=4", XFP_MODE_V2C, 4, 5, 3, 4096, 4096, 1, false, ONE },
	{ "matvec v2c k=4", XFP_MODE_V2C, 4, 5, 3, 1024, 4096, 1, false, ONE },
	{ "matvec v2c k=2", XFP_MODE_V2C, 2, 5, 3, 4096, 14336, 1, false, ONE },
	/* Eight of 128 experts: gate and up, and down. */
	{ "experts v2 k=4", XFP_MODE_V2, 4, 0, 0, 2048, 4096, 128, false, ONE },
	{ "experts v2c k=4", XFP_MODE_V2C, 4, 5, 3, 2048, 4096, 128, false, ONE },
	{ "experts v2c k=4", XFP_MODE_V2C, 4, 5, 3, 4096, 1024, 128, true, ONE },
	{ "experts v2c k=3", XFP_MODE_V2C, 3, 5, 3, 2048, 4096, 128, false, ONE },
};

/* ---- numbers --------------------------------------------------------------------------------------- */

double xfp_median(struct xfp_rounds rounds)
{
	return xfp_median_of(rounds.of, XFP_BENCH_ROUNDS);
}

static uint64_t next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	return *random ^= *random << 17;
}

/* ---- weights ---------------------------------------------------------------------------------------- */

/* Numbers that are finite and small as fp16 and as bf16. */
static void small_halves(struct xfp_bench *bench, uint8_t *to, uint64_t bytes)
{
	for (uint64_t i = 0; i + 2 <= bytes; i += 2) {
		uint16_t half = (uint16_t)(0x3000 | (next(&bench->random) & 0x83ff));

		memcpy(to + i, &half, 2);
	}
}

void xfp_bench_vectors(struct xfp_bench *bench, uint8_t *x, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint16_t half = (uint16_t)(0x3c00 | (next(&bench->random) & 0x807f));

		memcpy(x + 2 * i, &half, 2);
	}
}

static void any_bytes(struct xfp_bench *bench, uint8_t *to, uint64_t bytes, uint64_t of)
{
	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t eight = next(&bench->random) & of;

		memcpy(to + i, &eight, bytes - i < 8 ? (size_t)(bytes - i) : 8);
	}
}

/* Fill in scales of groups and codebook indices; `unit` has the bytes of groups and rows. */
static void fill_groups(struct xfp_bench *bench, const struct xfp_unit_file *unit)
{
	uint64_t groups = unit->rows * xfp_row_groups(unit->cols, unit->group), codebooks = (1u << unit->library) - 1;

	for (uint32_t e = 0; e < unit->experts; e++) {
		uint8_t *to = unit->part[XFP_PART_GROUP] + xfp_unit_file_offset(unit, XFP_PART_GROUP, e);

		if (unit->mode == XFP_MODE_V2A) {
			small_halves(bench, to, groups * 4);
			any_bytes(bench, to + groups * 4, groups, codebooks * 0x0101010101010101);
		} else {
			any_bytes(bench, to, groups, UINT64_MAX);
			memset(to + groups, 40, unit->rows);
		}
	}
}

/* Rows that fit in --mib, rounded down to a multiple of 256. A case's own number of rows is for --mib 64. */
static uint64_t rows_of(const struct xfp_bench *bench, const struct xfp_bench_case *of)
{
	uint64_t bytes = of->mode == XFP_MODE_KEEP  ? of->cols * 2
			 : of->mode == XFP_MODE_FP8 ? of->cols
						    : xfp_index_row_bytes(of->cols, of->k);

	if (of->rows)
		return (of->rows * bench->report->request->mib / 64 + 15) / 16 * 16;
	return (((uint64_t)bench->report->request->mib << 20) / bytes + 255) / 256 * 256;
}

enum xfp_status xfp_bench_unit(struct xfp_bench *bench, const struct xfp_bench_case *of, struct xfp_unit_file *unit,
			       struct xfp_error *err)
{
	enum xfp_status status;

	*unit = (struct xfp_unit_file){ .mode = of->mode,
					.dtype = XFP_BF16,
					.k = of->k,
					.group = of->group,
					.library = of->library,
					.rows = rows_of(bench, of),
					.cols = of->cols,
					.experts = of->experts };
	if ((status = xfp_unit_file_experts(unit, err)) || (status = xfp_unit_file_parts(unit, false, err)))
		return status;
	/* Every byte is a valid index; with these bits it is also a small finite number in fp8 and bf16. */
	any_bytes(bench, unit->part[XFP_PART_INDEX], unit->bytes[XFP_PART_INDEX],
		  of->mode == XFP_MODE_KEEP || of->mode == XFP_MODE_FP8 ? 0xbfbfbfbfbfbfbfbf : UINT64_MAX);
	if (of->mode == XFP_MODE_FP8)
		for (uint64_t r = 0; r < unit->rows; r++)
			memcpy(unit->part[XFP_PART_CODE] + 4 * r, &(float){ 0x1p-9f }, 4);
	else if (unit->part[XFP_PART_CODE])
		small_halves(bench, unit->part[XFP_PART_CODE], unit->bytes[XFP_PART_CODE]);
	if (unit->part[XFP_PART_GROUP])
		fill_groups(bench, unit);
	return XFP_OK;
}

/* ---- time -------------------------------------------------------------------------------------------- */

static enum xfp_status launch(struct xfp_bench *bench, xfp_cu_handle function, void **parameters, struct xfp_error *err)
{
	struct xfp_device *device = bench->device;
	unsigned blocks = (unsigned)device->info.processors * 4;

	return xfp_device_check(
		device,
		device->cu.cuLaunchKernel(function, blocks, 1, 1, 512, 1, 1, 0, device->stream, parameters, NULL),
		"cuLaunchKernel", err);
}

static enum xfp_status begin_time(struct xfp_bench *bench, struct xfp_error *err)
{
	struct xfp_device *device = bench->device;

	return xfp_device_check(device, device->cu.cuEventRecord(bench->begin, device->stream), "cuEventRecord", err);
}

static enum xfp_status end_time(struct xfp_bench *bench, double *seconds, struct xfp_error *err)
{
	struct xfp_device *device = bench->device;
	float milliseconds = 0;
	enum xfp_status status;

	if ((status = xfp_device_check(device, device->cu.cuEventRecord(bench->end, device->stream), "cuEventRecord",
				       err)) ||
	    (status = xfp_device_check(device, device->cu.cuEventSynchronize(bench->end), "cuEventSynchronize", err)) ||
	    (status = XFP_DEVICE_DO(device, cuEventElapsedTime, (&milliseconds, bench->begin, bench->end), err)))
		return status;
	*seconds = milliseconds > 0 ? (double)milliseconds * 1e-3 : 1e-9;
	return XFP_OK;
}

enum xfp_status xfp_bench_time(struct xfp_bench *bench, xfp_cu_handle graph, double *seconds, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = begin_time(bench, err)) ||
	    (status = XFP_DEVICE_DO(bench->device, cuGraphLaunch, (graph, bench->device->stream), err)))
		return status;
	return end_time(bench, seconds, err);
}

static enum xfp_status enqueue_reads(void *context, struct xfp_error *err)
{
	struct xfp_bench *bench = context;
	uint64_t count = bench->read_bytes / 16, sink = bench->reads + bench->read_bytes;
	void *parameters[] = { &bench->reads, &count, &sink };
	enum xfp_status status = XFP_OK;

	for (int i = 0; !status && i < READS; i++)
		status = launch(bench, bench->read, parameters, err);
	return status;
}

enum xfp_status xfp_bench_read(struct xfp_bench *bench, double *seconds, struct xfp_error *err)
{
	enum xfp_status status;

	*seconds = 0;
	if (!bench->reading)
		return XFP_OK;
	status = xfp_bench_time(bench, bench->reading, seconds, err);
	*seconds /= READS;
	return status;
}

enum xfp_status xfp_bench_fill(struct xfp_bench *bench, uint64_t memory, uint64_t bytes, struct xfp_error *err)
{
	uint64_t count = bytes / 4;
	void *parameters[] = { &memory, &count };

	if (bench->fill)
		return launch(bench, bench->fill, parameters, err);
	return XFP_DEVICE_DO(bench->device, cuMemsetD8Async, (memory, 0x3c, bytes, bench->device->stream), err);
}

/* ---- opening and closing ----------------------------------------------------------------------------- */

/* Load the verifier's own kernels, which a build without nvcc does not have. */
static enum xfp_status load_code(struct xfp_bench *bench, struct xfp_error *err)
{
	const struct xfp_cu_driver *cu = &bench->device->cu;
	static const char *const names[] = { "xfp_measure_read", "xfp_measure_fill" };
	xfp_cu_handle *const functions[] = { &bench->read, &bench->fill }, kernel;
	enum xfp_status status;
	int result;

	if (!xfp_device_code)
		return XFP_OK;
	if ((result = cu->cuLibraryLoadData(&bench->code, xfp_device_code, NULL, NULL, 0, NULL, NULL, 0)))
		return xfp_cu_fail(cu, result, "cuLibraryLoadData", "measure.cu", 0, err);
	for (int i = 0; i < 2; i++)
		if ((result = cu->cuLibraryGetKernel(&kernel, bench->code, names[i])) ||
		    (result = cu->cuKernelGetFunction(functions[i], kernel)))
			return xfp_cu_fail(cu, result, "cuLibraryGetKernel", names[i], 0, err);
		else if ((status = xfp_cu_load(cu, *functions[i], names[i], err)))
			return status;
	return XFP_OK;
}

static enum xfp_status begin(struct xfp_bench *bench, struct xfp_error *err)
{
	struct xfp_device *device = bench->device;
	size_t bytes = 4 * device->cache;
	enum xfp_status status;

	bytes = bytes < MIN_READ ? MIN_READ : bytes > MAX_READ ? MAX_READ : bytes;
	bench->read_bytes = bytes / READ_STEP * READ_STEP;
	if ((status = load_code(bench, err)) ||
	    (status = xfp_device_check(device, device->cu.cuEventCreate(&bench->begin, 0), "cuEventCreate", err)) ||
	    (status = xfp_device_check(device, device->cu.cuEventCreate(&bench->end, 0), "cuEventCreate", err)) ||
	    (status = xfp_device_alloc(device, XFP_BLAS_WORKSPACE, &bench->workspace, err)) ||
	    (status = xfp_device_alloc(device, bench->read_bytes + 256, &bench->reads, err)) ||
	    (status = xfp_bench_fill(bench, bench->reads, bench->read_bytes, err)) ||
	    (bench->read && (status = xfp_device_graph(device, enqueue_reads, bench, &bench->reading, err))))
		return status;
	bench->blas_found = xfp_blas_open(&bench->blas, device->stream, bench->workspace);
	return XFP_OK;
}

static void end(struct xfp_bench *bench)
{
	struct xfp_device *device = bench->device;

	device->cuCtxSynchronize();
	xfp_blas_close(&bench->blas);
	xfp_device_graph_free(device, bench->reading);
	xfp_device_free(device, bench->reads);
	xfp_device_free(device, bench->workspace);
	if (bench->begin)
		device->cu.cuEventDestroy(bench->begin);
	if (bench->end)
		device->cu.cuEventDestroy(bench->end);
	if (bench->code)
		device->cu.cuLibraryUnload(bench->code);
}

/* Print the read bandwidth and the cuBLAS version, if any. */
static enum xfp_status print_machine(struct xfp_bench *bench, struct xfp_error *err)
{
	struct xfp_kernel_report *report = bench->report;
	struct xfp_rounds seconds;
	enum xfp_status status = XFP_OK;
	double rate = 0;

	for (int i = -1; !status && i < XFP_BENCH_ROUNDS; i++)
		status = xfp_bench_read(bench, &seconds.of[i < 0 ? 0 : i], err);
	if (status)
		return status;
	if (bench->read)
		rate = (double)bench->read_bytes / xfp_median(seconds);
	if (report->request->json) {
		printf("%s\n    {\"op\": \"reads\", \"set\": \"cuda\", \"bytes\": %zu, \"bytes_per_second\": %.4g, "
		       "\"cublas\": ",
		       report->any ? "," : "", bench->read_bytes, rate);
		printf(bench->blas_found ? "%d}" : "null}", bench->blas.version);
		report->any = true;
	} else {
		if (bench->read)
			printf("reads: %.1f GB/s of %.0f MB, plainly read\n", rate * 1e-9,
			       (double)bench->read_bytes * 1e-6);
		else
			printf("reads: not measured: this was built without nvcc\n");
		if (bench->blas_found)
			printf("cuBLAS: %s, version %d\n", bench->blas.name, bench->blas.version);
		else
			printf("cuBLAS: %s\n", bench->blas.reason);
	}
	return XFP_OK;
}

/* Other cases are still measured, unless the device is lost. */
void xfp_bench_failed(struct xfp_bench *bench, const char *op, const struct xfp_error *failure)
{
	struct xfp_kernel_report *report = bench->report;

	if (report->request->json) {
		printf("%s\n    {\"op\": \"%s\", \"set\": \"cuda\", \"failed\": ", report->any ? "," : "", op);
		xfp_report_string(failure->text);
		printf("}");
		report->any = true;
	} else {
		printf("%-19s FAILED: %s\n", op, failure->text);
	}
	if (!bench->failure.status || (failure->status == XFP_UNMET && bench->failure.status != XFP_UNMET)) {
		bench->failure = *failure;
		xfp_context(&bench->failure, failure->status, "%s", op);
	}
	xfp_device_check_lost(bench->device);
}

enum xfp_status xfp_device_bench(struct xfp_device *device, struct xfp_kernel_report *report, struct xfp_error *err)
{
	struct xfp_bench bench = { .device = device, .report = report, .random = 88172645463325252 };
	struct xfp_error failure = { .status = XFP_OK };
	unsigned vectors = report->request->vectors;
	enum xfp_status status;

	if (report->request->json)
		printf(",\n  \"bench\": [");
	if (!(status = begin(&bench, err)))
		status = print_machine(&bench, err);
	xfp_output_flush();
	for (size_t i = 0; !status && !device->lost && i < sizeof cases / sizeof *cases; i++)
		if (xfp_kernel_wanted(report->request, cases[i].op, XFP_SET_CUDA) &&
		    (!vectors || cases[i].vectors & vectors)) {
			if (xfp_bench_products(&bench, &cases[i], &failure))
				xfp_bench_failed(&bench, cases[i].op, &failure);
			xfp_output_flush();
		}
	if (!status && !device->lost && !vectors && xfp_kernel_wanted(report->request, "upload", XFP_SET_CUDA) &&
	    xfp_bench_upload(&bench, &failure))
		xfp_bench_failed(&bench, "upload", &failure);
	if (report->request->json)
		printf("\n  ]");
	end(&bench);
	return status || !bench.failure.status ? status : xfp_fail(err, bench.failure.status, "%s", bench.failure.text);
}
