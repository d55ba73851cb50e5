/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - what libxfp-cuda has open. Private to runtime/cuda/.
 */
#ifndef XFP_CUDA_PRIVATE_H
#define XFP_CUDA_PRIVATE_H

#include <pthread.h>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/plan.h"
#include "runtime/xfp_cuda.h"

/* Device code, as nvcc made it; the last has no data. Newer drivers than `version` run it, and older ones of the same
 * major version. */
struct xfp_cuda_fatbin {
	const char *name; /* of its source */
	const unsigned char *data;
};
extern const struct xfp_cuda_fatbin xfp_cuda_fatbins[];
extern const int xfp_cuda_toolkit; /* of the nvcc: 1000 * major + 10 * minor */

#define XFP_CUDA_MOST_FATBINS 16
#define XFP_CUDA_KS 5 /* 2 ... 6; methods without codebooks have the first */

struct xfp_cuda {
	struct xfp_cu_driver cu;
	xfp_cu_handle context;
	unsigned long long context_id; /* no other context ever has it; handles come again */
	int device;
	char name[96];  /* of the device */
	int shared_all; /* bytes of shared memory of a multiprocessor */
	struct xfp_cuda_info info;

	xfp_cu_handle library[XFP_CUDA_MOST_FATBINS];
	xfp_cu_handle multiply[XFP_CUDA_METHODS][XFP_CUDA_KS][XFP_CUDA_FORMS];
	xfp_cu_handle prepare[3]; /* by type, from XFP_FLOAT32 on */
	xfp_cu_handle repack[3];  /* by k, from 2 on */

	/* For uploads, one at a time; see upload.c. */
	pthread_mutex_t uploads;
	void *staging[2];
	xfp_cu_handle copied[2];
};

struct xfp_cuda_linear {
	struct xfp_cuda *cuda;
	struct xfp_cuda_plan plan;
	char *name; /* of the plan, whose bundle may be closed once all is uploaded */
	uint64_t base;
	uint8_t vectors[32]; /* digest of what vectors are prepared by: equal for units that can share them */
};

/* XFP_USAGE unless the current context is the one that all is open in. */
enum xfp_status xfp_cuda_check_context(const struct xfp_cuda *cuda, struct xfp_error *err);

/* XFP_USAGE unless device memory that a caller gives for something is there, in its place, and has the bytes that are
 * wanted, which `see` tells. */
enum xfp_status xfp_cuda_check_memory(struct xfp_cuda *cuda, const char *what, uint64_t memory, uint64_t bytes,
				      uint64_t wanted, const char *see, struct xfp_error *err);
/* XFP_USAGE while the stream captures a graph. */
enum xfp_status xfp_cuda_check_stream(struct xfp_cuda *cuda, const char *what, void *stream, struct xfp_error *err);
/* XFP_USAGE unless it can have been opened. */
enum xfp_status xfp_cuda_check_queue(const struct xfp_cuda_linear *linear, const struct xfp_cuda_queue *queue,
				     struct xfp_error *err);

/* Write an image to device memory; it is there when this returns. */
enum xfp_status xfp_cuda_upload(struct xfp_cuda *cuda, const struct xfp_cuda_plan *plan, uint64_t base,
				xfp_cu_handle stream, struct xfp_error *err);
void xfp_cuda_upload_end(struct xfp_cuda *cuda);

#endif
