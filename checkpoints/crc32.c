/* SPDX-License-Identifier: Apache-2.0 */
/* Slicing by 8: eight table lookups, independent of each other, for eight bytes. */
#include "checkpoints/crc32.h"

#include "base/bytes.h"

#define POLYNOMIAL 0xedb88320u

void xfp_crc32_init(struct xfp_crc32_tables *tables)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		tables->table[0][byte] = crc;
	}
	for (int n = 1; n < 8; n++)
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t crc = tables->table[n - 1][byte];

			tables->table[n][byte] = crc >> 8 ^ tables->table[0][crc & 255];
		}
}

uint32_t xfp_crc32_update(const struct xfp_crc32_tables *tables, uint32_t crc, const void *data, size_t size)
{
	const uint32_t(*t)[256] = tables->table;
	const unsigned char *p = data;

	crc = ~crc;
	for (; size >= 8; size -= 8, p += 8) {
		uint32_t low = crc ^ xfp_load32(p), high = xfp_load32(p + 4);

		crc = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
		      t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
	}
	while (size--)
		crc = crc >> 8 ^ t[0][(crc ^ *p++) & 255];
	return ~crc;
}
