/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - the open state of libxfp-cuda. Private to runtime/cuda/.
 */
#ifndef XFP_CUDA_PRIVATE_H
#define XFP_CUDA_PRIVATE_H

#include <pthread.h>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/plan.h"
#include "runtime/xfp_cuda.h"

/* Device code from nvcc; the last entry has no data. It runs on drivers of `version` and newer, and on older ones of
 * the same major version. */
struct xfp_cuda_fatbin {
	const char *name; /* name of the source */
	const unsigned char *data;
};
extern const struct xfp_cuda_fatbin xfp_cuda_fatbins[];
extern const int xfp_cuda_toolkit; /* CUDA version of nvcc: 1000 * major + 10 * minor */

#define XFP_CUDA_MAX_FATBINS 16
#define XFP_CUDA_KS 5 /* 2 ... 6; methods without codebooks use the first */

struct xfp_cuda {
	struct xfp_cu_driver cu;
	xfp_cu_handle context;
	unsigned long long context_id; /* unique forever; context handles are reused */
	int device;
	char name[96];  /* device name */
	int shared_all; /* bytes of shared memory per multiprocessor */
	struct xfp_cuda_info info;

	xfp_cu_handle library[XFP_CUDA_MAX_FATBINS];
	xfp_cu_handle multiply[XFP_CUDA_METHODS][XFP_CUDA_KS][XFP_CUDA_FORMS];
	xfp_cu_handle prepare[3]; /* by type, from XFP_FLOAT32 on */
	xfp_cu_handle repack[3];  /* by k, from 2 on */

	/* State of the upload; one runs at a time. See upload.c. */
	pthread_mutex_t uploads;
	void *staging[2];
	xfp_cu_handle copied[2];
};

struct xfp_cuda_linear {
	struct xfp_cuda *cuda;
	struct xfp_cuda_plan plan;
	char *name; /* copy of the plan's name: the bundle may be closed after the upload */
	uint64_t base;
	uint8_t vectors[32]; /* digest of columns and balance; linears with equal digests share prepared vectors */
};

/* Return XFP_USAGE unless the context that the kernels were loaded into is current. */
enum xfp_status xfp_cuda_check_context(const struct xfp_cuda *cuda, struct xfp_error *err);

/* Return XFP_USAGE unless `memory` is aligned memory of the device with at least the needed size. The message refers to
 * `see` for that size. */
enum xfp_status xfp_cuda_check_memory(struct xfp_cuda *cuda, const char *what, uint64_t memory, uint64_t bytes,
				      uint64_t wanted, const char *see, struct xfp_error *err);
/* Return XFP_USAGE if the stream is capturing a graph. */
enum xfp_status xfp_cuda_check_stream(struct xfp_cuda *cuda, const char *what, void *stream, struct xfp_error *err);
/* Return XFP_USAGE unless `queue` is valid: not NULL, with an aligned workspace. */
enum xfp_status xfp_cuda_check_queue(const struct xfp_cuda_linear *linear, const struct xfp_cuda_queue *queue,
				     struct xfp_error *err);

/* Write an image to device memory. The copy is complete on return. */
enum xfp_status xfp_cuda_upload(struct xfp_cuda *cuda, const struct xfp_cuda_plan *plan, uint64_t base,
				xfp_cu_handle stream, struct xfp_error *err);
void xfp_cuda_upload_end(struct xfp_cuda *cuda);

#endif
