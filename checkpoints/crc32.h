/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32.h - CRC-32 of zip archives (IEEE 802.3, reflected, polynomial 0xedb88320). Private to checkpoints/.
 */
#ifndef XFP_CRC32_H
#define XFP_CRC32_H

#include <stddef.h>
#include <stdint.h>

struct xfp_crc32_tables {
	uint32_t table[8][256]; /* [n][b]: the remainder of byte b followed by n zero bytes */
};

void xfp_crc32_init(struct xfp_crc32_tables *tables);
/* Update a CRC-32 with more bytes; start with crc = 0. */
uint32_t xfp_crc32_update(const struct xfp_crc32_tables *tables, uint32_t crc, const void *data, size_t size);

#endif
