/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening ROUNDS MEMBERS EXPERTS - time xfp_bundle_open on a bundle with this many members, four of five of which are
 * parts of units with this many experts, and count the weights read meanwhile. Prints the bytes of the index, the
 * median and least microseconds, the pages of the file that opening put into memory, and its other pages.
 *
 * The file is in memory and its weights are holes: reading one allocates a page.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/xfp.h"
#include "tests/bench/bench.h"
#include "tests/unit/many_members.h"

static unsigned long pages_of(int file)
{
	struct stat st = { 0 };

	fstat(file, &st);
	return (unsigned long)st.st_blocks * 512 / (unsigned long)sysconf(_SC_PAGESIZE);
}

PROGRAM("opening")
{
	size_t rounds = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long members = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long experts = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	int file = memfd_create("open", MFD_CLOEXEC);
	double *took = calloc(rounds + 1, sizeof *took), median;
	unsigned long before;
	uint64_t index_bytes;
	struct many many;
	char path[40];

	if (file < 0 || !took || !rounds || members < 5 || !experts) {
		fprintf(stderr, "usage: opening ROUNDS MEMBERS EXPERTS\n");
		return 2;
	}
	many = (struct many){ .units = (uint32_t)members / 5,
			      .experts = (uint32_t)experts,
			      .tensors = (uint32_t)(members - members / 5 * 4),
			      .rows = 1024,
			      .cols = 4096 };
	many_members(file, &many, &index_bytes);
	before = pages_of(file);
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	for (size_t i = 0; i < rounds; i++) {
		double begin = bench_seconds(CLOCK_MONOTONIC);
		struct xfp_error err;
		struct xfp_bundle *bundle;

		if (xfp_bundle_open(path, &bundle, &err))
			bench_die("opening", err.text);
		took[i] = bench_seconds(CLOCK_MONOTONIC) - begin;
		xfp_bundle_close(bundle);
	}
	median = bench_median(took, rounds);
	printf("%llu %.1f %.1f %lu %lu\n", (unsigned long long)index_bytes, median * 1e6, took[0] * 1e6,
	       pages_of(file) - before, before);
	free(took);
	return 0;
}
