/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/state/present.h"

/* Tries twice before reporting damage: libhdf5 reports the same error if memory runs out, and an intact artifact must
 * not be removed for that. */
enum xfp_status xfp_present_read(const struct xfp_conversion *c, const char *kind, uint32_t version, const char *key,
				 enum xfp_status (*read)(void *own, struct xfp_artifact *artifact), void *own)
{
	char *path = xfp_store_path(&c->place.store, key);
	enum xfp_status status = path ? XFP_DAMAGED : XFP_FAILED;

	for (int attempt = 0; attempt < 2 && status == XFP_DAMAGED; attempt++) {
		struct xfp_artifact artifact = { 0 };

		status = xfp_artifact_open(path, kind, version, key, &artifact, NULL);
		if (!status && read)
			status = read(own, &artifact);
		xfp_artifact_close(&artifact);
	}
	free(path);
	if (status == XFP_DAMAGED)
		xfp_store_remove(&c->place.store, key);
	return status;
}

bool xfp_is_present(const struct xfp_conversion *c, const char *key, bool check)
{
	if (!c->place.manifest || !*key)
		return false;
	if (xfp_store_has(&c->place.store, key) &&
	    (!check || xfp_present_read(c, NULL, 0, key, NULL, NULL) != XFP_DAMAGED))
		return true;
	if (xfp_manifest_has(c->place.manifest, key))
		xfp_manifest_remove_artifact(c->place.manifest, key, NULL);
	return false;
}
