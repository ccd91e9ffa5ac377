/* Pieces of a fused kernel's text that its ways of going through elements share: fused_kernel.c has them. */
#ifndef OCL_FUSED_WRITE_H
#define OCL_FUSED_WRITE_H

#include "kernels/pointwise/fused.h"

/* Vectors of which one has all that a step of a team has: lanes of each, and how many. */
int ocl_fused_lanes(const ocl_fused_kernel *k);
int ocl_fused_parts(const ocl_fused_kernel *k);
/* The name of a value: one of a row is one for all of it; else each vector has its own. */
void ocl_fused_add_value(ocl_text *text, const ocl_fused_kernel *k, int value, int vector);
void ocl_fused_declare(ocl_text *text, const ocl_fused_kernel *k, int value, int vector);
/* Where each operand begins: with the row at hand, or at its first element. */
void ocl_fused_write_begins(ocl_text *text, const ocl_fused_kernel *k, bool of_row);
void ocl_fused_add_number(ocl_text *text, const ocl_dtype *compute, int number);
void ocl_fused_write_call(ocl_text *text, const ocl_fused_kernel *k, int number, int vector);
/* The calls on what a line has one of that can be made before this phase. */
void ocl_fused_write_kept(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors);
/* FETCH or PUT: a vector of an operand, at a place along its innermost dimension; `row` is NULL, or how many rows on.
 */
void ocl_fused_write_access(ocl_text *text, const ocl_fused_kernel *k, int operand, int vector, const char *row,
                            const char *place);

#endif
