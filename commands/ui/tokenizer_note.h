/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_TOKENIZER_NOTE_H
#define XFP_TOKENIZER_NOTE_H

#include "schemas/ledger.h"

/* Print a note if the bundle gets no tokenizer, or one that xfp eval and xfp generate cannot use. */
void xfp_note_tokenizer(const char *program, const char *model, const struct xfp_ledger *ledger);

#endif
