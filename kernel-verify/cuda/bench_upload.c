/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_upload.c - time the upload of a unit from its file to the device, next to reading the file and to copying as
 * many bytes, in turns: with the file in the page cache, and after asking the system to drop it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel-verify/cuda/bench.h"
#include "schemas/layout/classes.h"

#define STEP ((size_t)4 << 20)
#define TIMES 4 /* size relative to other matrices */

struct bench_upload {
	struct xfp_bench *bench;
	char path[4096];
	int file;
	uint64_t bytes; /* size of the file */
	void *host;     /* pinned memory of STEP bytes */
	struct xfp_device_linear linear;
};

static enum xfp_status read_file(struct bench_upload *up, double *seconds, struct xfp_error *err)
{
	double start = xfp_seconds_now();
	ssize_t some;

	for (uint64_t at = 0; at < up->bytes; at += (uint64_t)some)
		if ((some = pread(up->file, up->host, STEP, (off_t)at)) <= 0)
			return xfp_fail_errno(err, some ? errno : 0, "%s: cannot be read", up->path);
	*seconds = xfp_seconds_now() - start;
	return XFP_OK;
}

static enum xfp_status copy(struct bench_upload *up, double *seconds, struct xfp_error *err)
{
	struct xfp_device *device = up->bench->device;
	double start = xfp_seconds_now();
	enum xfp_status status = XFP_OK;

	for (uint64_t at = 0; !status && at < up->linear.bytes; at += STEP) {
		uint64_t left = up->linear.bytes - at;

		status = xfp_device_check(device,
					  device->cu.cuMemcpyHtoDAsync(up->linear.memory + at, up->host,
								       left < STEP ? (size_t)left : STEP,
								       device->stream),
					  "cuMemcpyHtoDAsync", err);
	}
	if (!status)
		status = XFP_DEVICE_DO(device, cuStreamSynchronize, (device->stream), err);
	*seconds = xfp_seconds_now() - start;
	return status;
}

/* The bundle is reopened each time, since mapped pages stay with the mapping. */
static enum xfp_status upload(struct bench_upload *up, double *seconds, struct xfp_error *err)
{
	struct xfp_device *device = up->bench->device;
	struct xfp_bundle *bundle = NULL;
	double start = xfp_seconds_now();
	enum xfp_status status = device->lib.xfp_bundle_open(up->path, &bundle, err);

	if (!status)
		status = up->linear.memory ? xfp_device_linear_upload(device, bundle, false, &up->linear, err)
					   : xfp_device_linear_open(device, bundle, false, NULL, &up->linear, err);
	*seconds = xfp_seconds_now() - start;
	device->lib.xfp_bundle_close(bundle);
	return status;
}

static void forget(const struct bench_upload *up, bool cold)
{
	if (cold)
		posix_fadvise(up->file, 0, 0, POSIX_FADV_DONTNEED);
}

static void print_upload(struct bench_upload *up, bool cold, struct xfp_rounds uploading, struct xfp_rounds reading,
			 struct xfp_rounds copying, double share)
{
	struct xfp_kernel_report *report = up->bench->report;
	double bytes = (double)up->linear.bytes;

	if (report->request->json)
		printf("%s\n    {\"op\": \"upload\", \"set\": \"cuda\", \"cached\": %s, \"bytes\": %.0f, "
		       "\"bytes_per_second\": "
		       "%.4g, \"reading\": %.4g, \"copying\": %.4g, \"of_slower\": %.3f}",
		       report->any ? "," : "", cold ? "false" : "true", bytes, bytes / xfp_median(uploading),
		       (double)up->bytes / xfp_median(reading), bytes / xfp_median(copying), share);
	else
		printf("upload %s of %.1f MB: %.2f GB/s; reading the file %.2f, copying to the device %.2f: %.0f %% of "
		       "the slower\n",
		       cold ? "from the disk   " : "from the cache  ", bytes * 1e-6,
		       bytes / xfp_median(uploading) * 1e-9, (double)up->bytes / xfp_median(reading) * 1e-9,
		       bytes / xfp_median(copying) * 1e-9, 100 * share);
	report->any = true;
}

static enum xfp_status measure(struct bench_upload *up, bool cold, struct xfp_error *err)
{
	struct xfp_rounds uploading, reading, copying, share;
	enum xfp_status status = XFP_OK;

	for (int round = 0; !status && round < XFP_BENCH_ROUNDS; round++) {
		forget(up, cold);
		if ((status = read_file(up, &reading.of[round], err)))
			break;
		forget(up, cold);
		if ((status = upload(up, &uploading.of[round], err)) || (status = copy(up, &copying.of[round], err)))
			break;
		share.of[round] = (reading.of[round] > copying.of[round] ? reading.of[round] : copying.of[round]) /
				  uploading.of[round];
	}
	if (!status)
		print_upload(up, cold, uploading, reading, copying, xfp_median(share));
	return status;
}

static enum xfp_status begin(struct bench_upload *up, struct xfp_error *err)
{
	static const struct xfp_bench_case of = { "upload", XFP_MODE_V2C, 4, 5, 3, 0, 8192, 1, false, 1 };
	struct xfp_device *device = up->bench->device;
	const char *folder = getenv("TMPDIR");
	struct xfp_bench_case large = of;
	struct xfp_unit_file unit;
	enum xfp_status status;
	double ignored;

	snprintf(up->path, sizeof up->path, "%s/xfp-kernel-verify-XXXXXX", folder && *folder ? folder : "/tmp");
	if ((up->file = mkstemp(up->path)) < 0)
		return xfp_fail_errno(err, errno, "%s: cannot create a file there; set TMPDIR to another folder",
				      up->path);
	large.rows = TIMES * (64u << 20) / 4096; /* as with --mib */
	if ((status = xfp_bench_unit(up->bench, &large, &unit, err)))
		return status;
	status = xfp_unit_file_write(&unit, up->file, err);
	xfp_unit_file_free(&unit);
	if (!status && fsync(up->file))
		status = xfp_fail_errno(err, errno, "%s: cannot be written", up->path);
	if (status)
		return status;
	up->bytes = (uint64_t)lseek(up->file, 0, SEEK_END);
	if ((status = xfp_device_check(device, device->cu.cuMemHostAlloc(&up->host, STEP, 0), "cuMemHostAlloc", err)))
		return status;
	return upload(up, &ignored, err);
}

enum xfp_status xfp_bench_upload(struct xfp_bench *bench, struct xfp_error *err)
{
	struct bench_upload up = { .bench = bench, .file = -1 };
	enum xfp_status status;

	if (!(status = begin(&up, err)) && !(status = measure(&up, false, err)))
		status = measure(&up, true, err);
	xfp_device_linear_close(bench->device, &up.linear);
	if (up.host)
		bench->device->cu.cuMemFreeHost(up.host);
	if (up.file >= 0) {
		unlink(up.path);
		close(up.file);
	}
	return status;
}
