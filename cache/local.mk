# SPDX-License-Identifier: Apache-2.0
#
# cache/: keys, the artifact store, the manifest.

noinst_LIBRARIES += cache/libcache.a
cache_libcache_a_SOURCES = \
	cache/census.c \
	cache/census.h \
	cache/check.c \
	cache/check.h \
	cache/check_manifest.c \
	cache/drop.c \
	cache/drop.h \
	cache/explain.c \
	cache/explain.h \
	cache/gc.c \
	cache/gc.h \
	cache/key.c \
	cache/key.h \
	cache/lock.c \
	cache/lock.h \
	cache/manifest.c \
	cache/manifest.h \
	cache/manifest_artifacts.c \
	cache/manifest_db.c \
	cache/manifest_db.h \
	cache/manifest_runs.c \
	cache/rebuild.c \
	cache/rebuild.h \
	cache/seal.c \
	cache/seal.h \
	cache/steps.c \
	cache/steps.h \
	cache/store.c \
	cache/store.h \
	cache/store_walk.c \
	cache/survey_file.c \
	cache/survey_file.h \
	cache/surveys.c \
	cache/surveys.h \
	cache/wait.c \
	cache/wait.h

nodist_cache_libcache_a_SOURCES = schemas/manifest_sql.h

# BUILT_SOURCES precedes the targets all, check and install only, not converter or a single program.
cache/manifest.$(OBJEXT): schemas/manifest_sql.h
