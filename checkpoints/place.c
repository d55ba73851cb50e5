/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/filesystem.h"

enum xfp_status xfp_place_open(const struct xfp_place *place, int *fd, uint64_t *bytes, struct xfp_identity *identity,
			       struct xfp_error *err)
{
	enum xfp_status status;
	struct stat st;

	if ((status = xfp_open_regular(place->path, fd, &st, err)))
		return status;
	*identity = xfp_identity_at(place->path, &st);
	*bytes = place->bytes;
	if (place->bytes == UINT64_MAX)
		*bytes = (uint64_t)st.st_size - place->offset;
	else if (place->offset > (uint64_t)st.st_size || place->bytes > (uint64_t)st.st_size - place->offset)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has become shorter; download it again", place->shown);
	return XFP_OK;
}

enum xfp_status xfp_place_slurp(const struct xfp_place *place, size_t limit, char **text, size_t *size,
				struct xfp_error *err)
{
	struct xfp_identity identity;
	enum xfp_status status;
	char *all = NULL;
	uint64_t bytes;
	int fd = -1;

	if (!place->offset && place->bytes == UINT64_MAX)
		return xfp_slurp_regular(place->path, limit, text, size, err);
	if ((status = xfp_place_open(place, &fd, &bytes, &identity, err)))
		goto done;
	if (bytes > limit) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: has %" PRIu64 " bytes, more than the supported %zu",
				  place->shown, bytes, limit);
		goto done;
	}
	if (!(all = malloc((size_t)bytes + 1))) {
		status = xfp_no_memory_for(err, place->shown);
		goto done;
	}
	if ((status = xfp_pread(fd, all, (size_t)bytes, place->offset, place->shown, err)))
		goto done;
	all[bytes] = 0;
	*text = all;
	*size = (size_t)bytes;
	all = NULL;

done:
	free(all);
	if (fd >= 0)
		close(fd);
	return status;
}
