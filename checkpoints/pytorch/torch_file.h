/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_file.h - read a file of torch.save: a zip of storages, and a pickle that lists the tensors in them. Private to
 * checkpoints/pytorch/.
 *
 *   NAME/data.pkl    the pickle (pickle.h)
 *   NAME/data/KEY    bytes of a storage, in the order that NAME/byteorder names: "little", or missing
 */
#ifndef XFP_TORCH_FILE_H
#define XFP_TORCH_FILE_H

#include "checkpoints/shards.h"

enum xfp_status xfp_torch_file_read(const struct xfp_place *place, struct xfp_checkpoint *notes,
				    struct xfp_tensor_file *out, struct xfp_error *err);

/* Layout of a file, by its first bytes. */
enum xfp_torch_layout {
	XFP_TORCH_NONE,
	XFP_TORCH_POINTER, /* not a torch.save file, but a Git LFS pointer */
	XFP_TORCH_ZIP,     /* or another zip */
	XFP_TORCH_OLD,     /* before PyTorch 1.6; not supported */
};
enum xfp_status xfp_torch_layout(const struct xfp_place *place, enum xfp_torch_layout *layout, struct xfp_error *err);

#endif
