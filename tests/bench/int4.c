/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int4 - the baseline: plain round-to-nearest int4 in groups of 32 weights with an fp16 scale.
 *
 * It does what a good plain quantizer does: each thread reads a block of a tensor, finds every group's weight of
 * largest magnitude, divides it by -8 for the scale, rounds, packs and writes the block to its place: 18 bytes per
 * group, the scale, then 16 bytes whose low halves are the first 16 weights. It quantizes all bf16 tensors of two and
 * more dimensions whose last one is a multiple of 32.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoints/checkpoint.h"
#include "kernels/common/number.h"
#include "tests/bench/bench.h"

#define GROUP 32
#define GROUP_BYTES 18
#define BLOCK_GROUPS 32768 /* 2 MiB read, 576 KiB written */

/* The wide instructions of x86-64, if the processor has them. */
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
#define EVERY_PROCESSOR __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), optimize("O3")))
#elif defined __x86_64__ && defined __clang__
#define EVERY_PROCESSOR __attribute__((target_clones("default", "avx2", "avx512bw")))
#else
#define EVERY_PROCESSOR
#endif

struct block {
	int in;
	off_t from, to;
	size_t groups;
};

struct plan {
	struct block *blocks;
	size_t count, capacity;
	uint64_t weights;
};

EVERY_PROCESSOR
static void quantize(const uint16_t *in, size_t groups, uint8_t *out)
{
	for (size_t g = 0; g < groups; g++, in += GROUP, out += GROUP_BYTES) {
		float w[GROUP], scale, inverse;
		uint8_t code[GROUP];
		uint16_t half, top = 0;
		uint32_t bits;

		/* The sign goes to the lowest bit, so that the patterns order by magnitude. */
		for (int i = 0; i < GROUP; i++) {
			uint16_t key = (uint16_t)(in[i] << 1 | in[i] >> 15);

			top = key > top ? key : top;
		}
		bits = (uint32_t)(top >> 1 | top << 15) << 16;
		memcpy(&scale, &bits, sizeof bits);
		scale /= -8;
		for (int i = 0; i < GROUP; i++) {
			bits = (uint32_t)in[i] << 16;
			memcpy(&w[i], &bits, sizeof bits);
		}
		inverse = scale != 0 ? 1 / scale : 0;
		half = xfp_float_to_half(scale);
		memcpy(out, &half, sizeof half);
		for (int i = 0; i < GROUP; i++) {
			int q = (int)(w[i] * inverse + 8.5f);

			code[i] = (uint8_t)(q < 15 ? q : 15);
		}
		for (int i = 0; i < GROUP / 2; i++)
			out[2 + i] = (uint8_t)(code[i] | code[i + GROUP / 2] << 4);
	}
}

static void add_tensor(struct plan *plan, const struct xfp_source_tensor *t, int in)
{
	uint64_t count = t->bytes / 2;

	if (t->dtype != XFP_BF16 || t->recipe || t->rank < 2 || !count || t->shape[t->rank - 1] % GROUP)
		return;
	for (uint64_t done = 0; done < count; done += BLOCK_GROUPS * GROUP) {
		uint64_t left = count - done;

		if (plan->count == plan->capacity) {
			plan->capacity = plan->capacity ? plan->capacity * 2 : 1024;
			plan->blocks = realloc(plan->blocks, plan->capacity * sizeof *plan->blocks);
			if (!plan->blocks)
				bench_die("memory", "out of it");
		}
		plan->blocks[plan->count++] = (struct block){
			.in = in,
			.from = (off_t)(t->offset + done * 2),
			.to = (off_t)((plan->weights + done) / GROUP * GROUP_BYTES),
			.groups = left / GROUP < BLOCK_GROUPS ? left / GROUP : BLOCK_GROUPS,
		};
	}
	plan->weights += count;
}

static void move(ssize_t (*how)(int, void *, size_t, off_t), int fd, void *data, size_t bytes, off_t at)
{
	char *next = data;

	while (bytes) {
		ssize_t done = how(fd, next, bytes, at);

		if (done <= 0)
			bench_die(how == pread ? "reading" : "writing",
				  done ? strerror(errno) : "the file has become shorter");
		next += done;
		at += done;
		bytes -= (size_t)done;
	}
}

static ssize_t pwrite_from(int fd, void *data, size_t bytes, off_t at)
{
	return pwrite(fd, data, bytes, at);
}

static void run(const struct plan *plan, int out)
{
#pragma omp parallel
	{
		uint16_t *in = malloc((size_t)BLOCK_GROUPS * GROUP * sizeof *in);
		uint8_t *packed = malloc((size_t)BLOCK_GROUPS * GROUP_BYTES);

		if (!in || !packed)
			bench_die("memory", "out of it");
#pragma omp for schedule(dynamic)
		for (size_t i = 0; i < plan->count; i++) {
			const struct block *b = &plan->blocks[i];

			move(pread, b->in, in, b->groups * GROUP * sizeof *in, b->from);
			quantize(in, b->groups, packed);
			move(pwrite_from, out, packed, b->groups * GROUP_BYTES, b->to);
		}
		free(in);
		free(packed);
	}
}

PROGRAM("int4")
{
	struct xfp_checkpoint *checkpoint;
	struct plan plan = { 0 };
	struct xfp_error err;
	int out, *in;

	if (argc != 3) {
		fputs("usage: int4 MODEL OUT\n"
		      "Quantize the bf16 matrices of MODEL to int4 in groups of 32; print the number of weights.\n",
		      stderr);
		return 2;
	}
	if (xfp_checkpoint_open(argv[1], &checkpoint, &err))
		bench_die(argv[1], err.text);
	out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out < 0)
		bench_die(argv[2], strerror(errno));
	in = malloc((checkpoint->file_count + 1) * sizeof *in);
	for (uint32_t i = 0; in && i < checkpoint->file_count; i++)
		if ((in[i] = open(checkpoint->files[i].path, O_RDONLY | O_CLOEXEC)) < 0)
			bench_die(checkpoint->files[i].path, strerror(errno));
	for (uint32_t i = 0; in && i < checkpoint->tensor_count; i++)
		add_tensor(&plan, &checkpoint->tensors[i], in[checkpoint->tensors[i].file]);
	run(&plan, out);
	if (close(out))
		bench_die(argv[2], strerror(errno));
	printf("%" PRIu64 "\n", plan.weights);
	free(plan.blocks);
	free(in);
	xfp_checkpoint_close(checkpoint);
	return fflush(stdout) ? 1 : 0;
}
