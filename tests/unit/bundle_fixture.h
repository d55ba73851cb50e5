/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_fixture.h - a synthetic checkpoint and the description of its bundle.
 *
 * Weights are generated backwards: random parts are decoded here by a simple reference decoder, and the checkpoint's
 * weights are the result plus noise. Decoders can thus be compared with the reference, and the bundle's cosines are
 * true.
 */
#ifndef XFP_TEST_BUNDLE_FIXTURE_H
#define XFP_TEST_BUNDLE_FIXTURE_H

#include "runtime/xfp.h"
#include "schemas/bundle.h"

#define FIXTURE_UNITS 16
#define FIXTURE_TENSORS 24
#define FIXTURE_MATRICES 32

struct fixture {
	char folder[64];   /* removed by fixture_free */
	char *model, *out; /* FOLDER/model, FOLDER/out.xfp */
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	struct xfp_ledger_tensor tensors[FIXTURE_TENSORS];
	struct xfp_ledger_unit units[FIXTURE_UNITS];
	struct xfp_ledger_matrix matrices[FIXTURE_MATRICES];
	char *extras[4];
	uint8_t *data[FIXTURE_TENSORS];   /* the tensors' bytes */
	float *decoded[FIXTURE_MATRICES]; /* what each matrix decodes to */
	struct xfp_packed packed[FIXTURE_UNITS];
	struct xfp_packed_matrix packed_matrices[FIXTURE_UNITS][4];
	struct xfp_bundle_unit bundle_units[FIXTURE_UNITS];
	struct xfp_bundle_input input;
	uint64_t random;
	uint32_t less; /* number of bits by which every other matrix of a stack has less */
};

#define FIXTURE_HALF_KEPT 5
#define FIXTURE_TWO_SIZES 6
#define FIXTURE_TILES 7

/* Small: one unit with all parts that its mode (1: v2, 2: v2a, 3: v2c) has, and one kept tensor; or one bf16 tensor
 * with a unit that has codebooks and one kept at source precision; or a stack of v2 in which every other expert has a
 * bit less; or units of more than sixteen rows (FIXTURE_TILES). Otherwise (0): every mode, dtype, view and fate. */
void fixture_make(struct fixture *f, int small);
void fixture_free(struct fixture *f);

/* Write its bundle to f->out. */
enum xfp_status fixture_write_bundle(struct fixture *f, struct xfp_error *err);
void fixture_make_bundle(struct fixture *f, int small);
struct xfp_bundle *fixture_open(const char *path);
/* Open the bundle and verify all of it, as verify does. */
enum xfp_status fixture_accept(const char *path, struct xfp_error *err);

/* The result of a command with these arguments, the last of them NULL. Empty if zeroed; run frees the previous
 * result. */
struct result {
	int status;
	char *out, *err;
};
void fixture_run(struct fixture *f, struct result *result, int (*command)(int, char **), const char *const *words);
void fixture_result_free(struct result *result);

#define RUN(f, result, command, ...) fixture_run(f, result, command, (const char *const[]){ __VA_ARGS__, NULL })
#define EXPECT(result, wanted)                                                                     \
	do {                                                                                       \
		if ((result).status != (wanted))                                                   \
			fail_msg("status %d:\n%s%s", (result).status, (result).out, (result).err); \
	} while (0)

/* Read and write whole files by path. */
uint8_t *fixture_read(const char *path, size_t *size);
void fixture_write(const char *path, const void *data, size_t size);
void fixture_remove(const char *folder);

#endif
