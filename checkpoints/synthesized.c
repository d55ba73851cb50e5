/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"

#define CONFIG "config.json"

enum xfp_status xfp_checkpoint_make(struct xfp_checkpoint *c, const char *name, char *bytes, size_t size,
				    struct xfp_error *err)
{
	struct xfp_synthesized_file *grown =
		realloc(c->synthesized, (c->synthesized_count + (size_t)1) * sizeof *grown);
	char *copy = strdup(name);
	uint32_t at;

	if (grown)
		c->synthesized = grown;
	if (!grown || !copy) {
		free(copy);
		free(bytes);
		return xfp_no_memory_for(err, c->folder);
	}
	for (at = c->synthesized_count++; at && strcmp(grown[at - 1].name, name) > 0; at--)
		grown[at] = grown[at - 1];
	grown[at] = (struct xfp_synthesized_file){ copy, bytes, size };
	return XFP_OK;
}

/* Return whether a member of an archive only describes packed weights, and so is not needed any more. */
static bool is_done_with(struct xfp_checkpoint *c, const char *name)
{
	if (!xfp_is_packing_file(name))
		return false;
	if (!c->packed)
		xfp_checkpoint_leave_out(c, name);
	return true;
}

static void drop_synthesized(struct xfp_checkpoint *c, uint32_t number)
{
	free(c->synthesized[number].name);
	free(c->synthesized[number].bytes);
	c->synthesized_count--;
	memmove(c->synthesized + number, c->synthesized + number + 1,
		(c->synthesized_count - number) * sizeof *c->synthesized);
}

static void note_config(struct xfp_checkpoint *c)
{
	xfp_checkpoint_note(c, CONFIG ": exists, but a new one from the metadata is carried along");
}

bool xfp_checkpoint_keeps_file(struct xfp_checkpoint *c, const char *name)
{
	uint32_t at = 0;

	while (at < c->synthesized_count && strcmp(c->synthesized[at].name, name) != 0)
		at++;
	if (at == c->synthesized_count)
		return true;
	if (!strcmp(name, CONFIG)) {
		note_config(c);
		return false;
	}
	drop_synthesized(c, at);
	return true;
}

/* Return the position of a name among the extras, or where to insert it. */
static uint32_t place_of(const struct xfp_checkpoint *c, const char *name)
{
	uint32_t at = 0;

	while (at < c->extra_count && strcmp(c->extras[at], name) < 0)
		at++;
	return at;
}

enum xfp_status xfp_checkpoint_add_synthesized(struct xfp_checkpoint *c, struct xfp_error *err)
{
	char **grown = realloc(c->extras, ((size_t)c->extra_count + c->synthesized_count + 1) * sizeof *grown);

	if (!grown)
		return xfp_no_memory_for(err, c->folder);
	c->extras = grown;
	for (uint32_t m = 0; m < c->synthesized_count; m++) {
		const char *name = c->synthesized[m].name;
		uint32_t at = place_of(c, name);
		bool there = at < c->extra_count && !strcmp(grown[at], name);
		char *copy;

		if ((there && strcmp(name, CONFIG) != 0) || is_done_with(c, name)) {
			drop_synthesized(c, m--);
		} else if (there) {
			note_config(c);
		} else {
			if (!(copy = strdup(name)))
				return xfp_no_memory_for(err, c->folder);
			memmove(grown + at + 1, grown + at, (c->extra_count - at) * sizeof *grown);
			grown[at] = copy;
			c->extra_count++;
		}
	}
	return XFP_OK;
}
