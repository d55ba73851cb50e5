/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_file.h - one file of torch.save: a zip of storages, and a pickle that says which tensors are in them. Private
 * to checkpoints/pytorch/.
 *
 *   NAME/data.pkl    the pickle (pickle.h)
 *   NAME/data/KEY    bytes of a storage, in the order that NAME/byteorder says: "little" or nothing
 */
#ifndef XFP_TORCH_FILE_H
#define XFP_TORCH_FILE_H

#include "checkpoints/shards.h"

enum xfp_status xfp_torch_file_read(const struct xfp_place *place, struct xfp_checkpoint *notes,
				    struct xfp_tensor_file *out, struct xfp_error *err);

/* What the first bytes of a file say that it is. */
enum xfp_torch_layout {
	XFP_TORCH_NONE,
	XFP_TORCH_POINTER, /* none either, but what Git LFS leaves in place of it */
	XFP_TORCH_ZIP,     /* or another zip */
	XFP_TORCH_OLD,     /* before PyTorch 1.6; not read */
};
enum xfp_status xfp_torch_layout(const struct xfp_place *place, enum xfp_torch_layout *layout, struct xfp_error *err);

#endif
