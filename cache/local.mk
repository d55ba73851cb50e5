# SPDX-License-Identifier: Apache-2.0
#
# cache/: keys, the artifact store, the manifest.

noinst_LIBRARIES += cache/libcache.a
cache_libcache_a_SOURCES = \
	cache/key.c \
	cache/key.h \
	cache/manifest.c \
	cache/manifest.h \
	cache/manifest_artifacts.c \
	cache/manifest_db.c \
	cache/manifest_db.h \
	cache/manifest_runs.c \
	cache/store.c \
	cache/store.h

nodist_cache_libcache_a_SOURCES = schemas/manifest_sql.h
