/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cuda/devices.h"

#define KIB(n) ((n)*1024)

/* Shared memory per compute capability, less the KiB that the driver reserves per block. */
const struct xfp_cuda_device xfp_cuda_devices[] = {
	{ "a10", 86, 72, KIB(99) },           { "a100", 80, 108, KIB(163) },    { "a40", 86, 84, KIB(99) },
	{ "b200", 100, 148, KIB(227) },       { "b300", 103, 148, KIB(227) },   { "gb10", 121, 48, KIB(99) },
	{ "gh200", 90, 132, KIB(227) },       { "h100", 90, 132, KIB(227) },    { "h100-pcie", 90, 114, KIB(227) },
	{ "h200", 90, 132, KIB(227) },        { "l4", 89, 58, KIB(99) },        { "l40s", 89, 142, KIB(99) },
	{ "rtx-3090", 86, 82, KIB(99) },      { "rtx-4090", 89, 128, KIB(99) }, { "rtx-5090", 120, 170, KIB(99) },
	{ "rtx-6000-ada", 89, 142, KIB(99) }, { "rtx-a6000", 86, 84, KIB(99) }, { "rtx-pro-6000", 120, 188, KIB(99) },
};
const size_t xfp_cuda_device_count = sizeof xfp_cuda_devices / sizeof *xfp_cuda_devices;

/* Return the next letter or digit, in lower case. */
static char significant(const char **text)
{
	char c;

	while ((c = *(*text)++))
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			return c;
		else if (c >= 'A' && c <= 'Z')
			return (char)(c - 'A' + 'a');
	return 0;
}

static int same(const char *a, const char *b)
{
	char c;

	while ((c = significant(&a)) == significant(&b))
		if (!c)
			return 1;
	return 0;
}

const struct xfp_cuda_device *xfp_cuda_device(const char *name)
{
	for (size_t i = 0; i < xfp_cuda_device_count; i++)
		if (same(name, xfp_cuda_devices[i].name))
			return &xfp_cuda_devices[i];
	return NULL;
}
