/* SPDX-License-Identifier: Apache-2.0 */
#include "model/batching.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

uint64_t xfp_largest_batch(uint64_t all, uint64_t memory, uint64_t (*needed)(void *context, uint64_t sequences),
			   void *context)
{
	uint64_t low = 1, high = all;

	while (low < high) {
		uint64_t middle = low + (high - low + 1) / 2;

		if (needed(context, middle) <= memory)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

uint64_t xfp_resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	uint64_t pages = 0, of_files = 0;

	if (file && (fscanf(file, "%*s %" SCNu64 " %" SCNu64, &pages, &of_files) != 2 || of_files > pages))
		pages = of_files = 0;
	if (file)
		fclose(file);
	return (pages - of_files) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t xfp_default_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	uint64_t kib = 0;
	char line[128];

	while (file && !kib && fgets(line, sizeof line, file)) {
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
			kib = 0;
	}
	if (file)
		fclose(file);
	return kib ? kib * 512 : UINT64_MAX;
}
