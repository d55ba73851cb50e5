/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - declarations shared by the files of the stand-in CUDA driver; see driver.c. Types are those of the
 * driver's documented interface.
 */
#ifndef TESTS_CUDA_DRIVER_H
#define TESTS_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum result {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201,
	NO_BINARY_FOR_GPU = 209,
	UNSUPPORTED_PTX_VERSION = 222,
	OPERATING_SYSTEM = 304,
	INVALID_HANDLE = 400,
	NOT_FOUND = 500,
	NOT_READY = 600,
	ILLEGAL_ADDRESS = 700,
	LAUNCH_OUT_OF_RESOURCES = 701,
	CONTEXT_IS_DESTROYED = 709,
	HOST_MEMORY_ALREADY_REGISTERED = 712,
	HOST_MEMORY_NOT_REGISTERED = 713,
	STREAM_CAPTURE_UNSUPPORTED = 900,
	STREAM_CAPTURE_INVALIDATED = 901,
	STREAM_CAPTURE_UNMATCHED = 903,
	STREAM_CAPTURE_IMPLICIT = 906,
};

typedef uint64_t address;

enum { DEVICES = 8, FUNCTION_MAX_SHARED = 8, PLAIN_SHARED = 49152 };

struct context {
	int device;
	bool alive;
	int uses; /* references to a primary context */
	unsigned long long id;
};

struct stream;

/* Work that was queued on a stream. A stream's work runs in order, when the host waits for the stream. */
struct work {
	enum { COPY_IN, COPY_OUT, COPY, FILL, LAUNCH } what;
	address to, from;
	void *host;
	bool own; /* `host` is a copy, to be freed */
	size_t bytes, pitch_to, pitch_from, rows;
	unsigned value;
	int device;
	char *line;                 /* a launch, as a line for the server */
	const struct stream *order; /* a non-blocking stream; NULL: all others, in one order */
	uint64_t number;            /* number of the work, in the order of queueing, from 1 */
};

struct kernel {
	struct kernel *next;
	struct library *library;
	char *name;
	int max_shared, static_shared, local;
	bool loaded; /* its code is loaded; capturing a launch does not load it */
	size_t parameter_count, parameter_bytes;
	struct {
		size_t offset, bytes;
	} parameter[64];
};

/* driver.c */
/* Return a number from the environment, or `otherwise` if it is not set. */
long setting(const char *name, long otherwise);
/* Return SUCCESS, or the reason why no call can work: not initialized, no current context, a destroyed context, a
 * sticky error, or a requested failure. */
int ready_for(const char *call);
/* Return the requested result of a call that must fail. */
int failure(const char *call);
#define ready() ready_for(__func__)
struct context *current(void);
int compute_capability(void);
int shared_optin(void);
int devices(void);
int version(void);
/* Set an error of a launch that all later calls report. */
void set_sticky(enum result why);
int sticky(void);

/* driver_memory.c */
struct entry {
	uint64_t number, offset, bytes, device;
};
/* The header of the file shared by this process and the server; data follows, then one byte for each byte that was
 * written. */
struct table {
	uint64_t count, data, written, all;
	struct entry entry[4096];
};
int memory_file(void);
/* Copy or fill now. */
int perform(const struct work *work);
/* Return whether the driver knows this host memory, so that copies may be delayed. */
bool pinned(const void *memory);
void free_device(int device);
void free_pinned(const struct context *context);

/* driver_queue.c */
/* Queue the work on the stream, or add it to the graph being captured. Takes ownership of what `work` points to. */
int enqueue(void *stream, struct work work);
/* Run the work queued on the stream, and on streams that wait for it. */
int drain_stream(void *stream);
/* Run all queued work. */
int drain(void);
/* Return SUCCESS if nothing is being captured; calls that wait are not allowed during capture. */
int not_capturing(void);
/* Invalidate the capture. */
void spoil_capture(void);
void release_work(struct work *work);
void free_events(const struct context *context);

/* driver_launch.c */
int launch_now(const char *line);

#endif
