/* Rows of the ops that plugins bring: the cases that the plugin gives, or calls made from the schema. */
#ifndef GRAFT_CF_CUSTOM_ROWS_H
#define GRAFT_CF_CUSTOM_ROWS_H

#include "graft/error.h"

/* Makes the rows of all such ops that this process knows and that have a reference function. INVALID_ARGUMENT where a
 * case of the plugin's can't be read, with its text. Rows stay. */
graft_status cf_custom_take(void);

#endif
