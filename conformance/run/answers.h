/* What the oracle answered in a case. Where a case runs once for each arithmetic of a plugin (arithmetics.h), it is
 * asked the same each time, which takes longer than to run the plugin: it computes each answer once. */
#ifndef GRAFT_CF_ANSWERS_H
#define GRAFT_CF_ANSWERS_H

#include "conformance/judge/array.h"

/* What becomes of the values that an op is asked about. */
typedef enum cf_transform { CF_AS_IS, CF_ABSOLUTE, CF_ONES } cf_transform;

/* What is asked, beside what the case says itself. */
typedef struct cf_question {
  cf_transform inputs, cotangents;
  uint64_t values; /* of the inputs and cotangents; see cf_answers_values */
  bool gradient, widen_integers;
  bool wants_second;
  uint32_t count;
} cf_question;

/* Another case begins: answers are forgotten, and, from now on, kept or not. */
void cf_answers_begin(bool keep);
/* A number for what was so far and `count` arrays, that other values hardly have. 0 where no answers are kept. */
uint64_t cf_answers_values(uint64_t so_far, const cf_array *arrays, uint32_t count);
/* The arrays of the same question's answer, of CF_MAX_TENSORS each; *second may be NULL. False: it was not asked yet.
 * The reference device's generator is where the answer left it. */
bool cf_answers_recall(const cf_question *question, cf_array *first, cf_array *second);
/* Keeps an answer; where there is no memory, it is computed again. */
void cf_answers_keep(const cf_question *question, const cf_array *first, const cf_array *second);

#endif
