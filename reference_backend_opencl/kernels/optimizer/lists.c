/* Which tensors of lists go into one launch, and the table that its kernel reads. See lists.h. */
#include "kernels/optimizer/lists.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/optimizer/chain.h"

/* ---- Groups ---- */

static bool same_dtypes(const ocl_lists *call, uint32_t a, uint32_t b) {
  for (int k = 0; k < call->operands; k++) {
    if (ocl_lists_operand(call, k, a)->dl.dtype != ocl_lists_operand(call, k, b)->dl.dtype) return false;
  }
  return !call->chain || ocl_chain_same_dtypes(call->chain, a, b);
}

/* The group of this tensor's dtypes, a new one if need be; NULL without memory. */
static ocl_group *group_of(ocl_groups *groups, const ocl_lists *call, uint32_t tensor) {
  for (uint32_t i = 0; i < groups->count; i++) {
    if (same_dtypes(call, groups->items[i].tensor[0], tensor)) return &groups->items[i];
  }
  ocl_group *items = realloc(groups->items, (groups->count + 1) * sizeof *items);
  if (!items) return NULL;
  groups->items = items;
  ocl_group *group = &items[groups->count];
  uint64_t most = call->list[0].count;
  *group = (ocl_group){.tensor = calloc(most, sizeof *group->tensor), .first = calloc(most + 1, sizeof *group->first)};
  groups->count++;
  return group->tensor && group->first ? group : NULL;
}

graft_status ocl_groups_make(ocl_groups *groups, const ocl_lists *call, bool empty) {
  for (uint32_t t = 0; t < call->list[0].count; t++) {
    if (!empty && ocl_elements(ocl_lists_operand(call, 0, t)) == 0) continue;
    ocl_group *group = group_of(groups, call, t);
    if (!group) return GRAFT_OUT_OF_MEMORY;
    group->tensor[group->count++] = t;
  }
  return GRAFT_OK;
}

void ocl_groups_free(ocl_groups *groups) {
  for (uint32_t i = 0; i < groups->count; i++) {
    free(groups->items[i].tensor);
    free(groups->items[i].first);
  }
  free(groups->items);
}

/* ---- Places ---- */

/* Buffers that are arguments, for each size of a batch. A kernel of its own for each size, so few of them. */
static const int sizes[OCL_LIST_SIZES] = {4, 16, OCL_LIST_BUFFERS};

enum { OFFSET_BITS = 56, STACK_WORDS = 2048 };

typedef struct places {
  ocl_batch *batch;
  int count, most;
  int last[OCL_LISTS_MAX]; /* where an operand's last tensor lay: the next one often lies there, too */
} places;

/* The number of the buffer among the batch's, or -1 where there is no room for another. */
static int number_of(places *p, int k, cl_mem handle) {
  cl_mem *buffers = p->batch->buffers;
  if (p->last[k] < p->count && buffers[p->last[k]] == handle) return p->last[k];
  int i = 0;
  while (i < p->count && buffers[i] != handle) i++;
  if (i == p->most) return -1;
  if (i == p->count) buffers[p->count++] = handle;
  return p->last[k] = i;
}

/* The words for the operands of one tensor; false where its buffers are too many. What has no elements may have no
 * buffer, and is not looked at. */
static bool put_places(places *p, const ocl_lists *call, uint32_t tensor, uint64_t *words) {
  int before = p->count;
  for (int k = 0; k < call->operands; k++) {
    const graft_tensor_desc *desc = ocl_lists_operand(call, k, tensor);
    words[k] = 0;
    if (!desc->dl.data) continue;
    int number = number_of(p, k, desc->dl.data->handle);
    if (number < 0) {
      p->count = before;
      return false;
    }
    words[k] = (uint64_t)number << OFFSET_BITS | desc->dl.byte_offset;
  }
  return true;
}

/* The most buffers that a kernel of this device may have as arguments, beside 128 bytes of others. */
static int most_buffers(const graft_device *device) {
  size_t bytes = device->parameter_bytes;
  int most = sizes[0];
  for (int i = 0; i < OCL_LIST_SIZES; i++) {
    if ((size_t)sizes[i] * sizeof(cl_mem) + 128 <= bytes) most = sizes[i];
  }
  return most;
}

/* ---- Batches ---- */

/* The numbers of the call, in the compute type. */
static void put_numbers(uint64_t *words, const graft_device *device, const ocl_lists *call, uint32_t tensor) {
  const ocl_dtype *dtype = ocl_dtype_of(device, ocl_lists_operand(call, 0, tensor)->dl.dtype);
  memset(words, 0, OCL_TABLE_NUMBERS * sizeof *words);
  for (uint32_t i = 0; i < OCL_TABLE_NUMBERS; i++) {
    ocl_number number = {.re = call->numbers[i]};
    ocl_value value;
    size_t bytes = ocl_number_as(&number, dtype, &value);
    memcpy((char *)words + i * bytes, &value, bytes);
  }
}

/* One of a tensor, likewise. */
static uint64_t own_number(const graft_device *device, const ocl_lists *call, int k, uint32_t tensor) {
  uint64_t word = 0;
  const ocl_list_number *own = &call->own[k];
  if (!own->items) return word;
  ocl_number number;
  ocl_value value;
  ocl_number_of_scalar(&own->items[own->each ? tensor : 0], &number);
  size_t bytes = ocl_number_as(&number, ocl_dtype_of(device, ocl_lists_operand(call, 0, tensor)->dl.dtype), &value);
  memcpy(&word, &value, bytes);
  return word;
}

static uint32_t record_words(const ocl_lists *call) {
  return (uint32_t)(1 + call->owns + call->operands);
}

/* Records of the tensors from batch->begin on, as many as fit; sets batch->end. Returns how many buffers they need. */
static int fill_records(ocl_batch *batch, const graft_device *device, const ocl_lists *call, const ocl_group *group,
                        uint64_t *records) {
  places p = {.batch = batch, .most = most_buffers(device)};
  uint32_t i = batch->begin;
  for (; i < group->count; i++) {
    uint64_t *record = records + (size_t)(i - batch->begin) * record_words(call);
    record[0] = (uint64_t)ocl_elements(ocl_lists_operand(call, 0, group->tensor[i]));
    for (int k = 0; k < call->owns; k++) record[1 + k] = own_number(device, call, k, group->tensor[i]);
    if (!put_places(&p, call, group->tensor[i], record + 1 + call->owns)) break;
  }
  batch->end = i;
  return p.count;
}

graft_status ocl_batch_make(ocl_batch *batch, graft_device *device, const ocl_lists *call, const ocl_group *group,
                            uint32_t begin) {
  uint64_t local[STACK_WORDS], *words = local;
  uint32_t most = group->count - begin, record = record_words(call);
  size_t room = OCL_TABLE_NUMBERS + most + 1 + (size_t)most * record;
  if (room > STACK_WORDS && !(words = malloc(room * sizeof *words))) return GRAFT_OUT_OF_MEMORY;
  batch->begin = begin;
  batch->table = NULL;
  uint64_t *first = words + OCL_TABLE_NUMBERS, *records = first + most + 1;
  int buffers = fill_records(batch, device, call, group, records);
  uint32_t count = batch->end - begin;
  put_numbers(words, device, call, group->tensor[begin]);
  memcpy(first, group->first + begin, (count + 1) * sizeof *first);
  if (count < most) memmove(first + count + 1, records, (size_t)count * record * sizeof *records);
  batch->size = 0;
  while (sizes[batch->size] < buffers) batch->size++;
  for (int i = buffers; i < sizes[batch->size]; i++) batch->buffers[i] = NULL;
  size_t used = OCL_TABLE_NUMBERS + count + 1 + (size_t)count * record;
  graft_status status = count ? ocl_table_get(device, words, used * sizeof *words, &batch->table)
                              : ocl_fail(device->plugin, GRAFT_INTERNAL,
                                         "the operands of one tensor lie in more buffers "
                                         "than a kernel may have");
  if (words != local) free(words);
  return status;
}

void ocl_batch_free(graft_device *device, ocl_batch *batch) {
  if (batch->table) ocl_table_release(device, batch->table);
}

void ocl_batch_head(ocl_text *head, const ocl_lists *call, int size) {
  ocl_text_add(head, "#define OWNS %d\n", call->owns);
  ocl_text_add(head, "#define PARAMETERS __global const long *table");
  for (int i = 0; i < sizes[size]; i++) ocl_text_add(head, ", __global uchar *buffer_%d", i);
  ocl_text_add(head, "\n#define CASES ");
  for (int i = 0; i < sizes[size]; i++) ocl_text_add(head, "case %d: base = buffer_%d; break; ", i, i);
  ocl_text_add(head, "\n#define OFFSET_BITS %d\n", OFFSET_BITS);
}

/* Where there are fewer buffers than arguments, the rest are NULL. */
cl_uint ocl_batch_arguments(const ocl_batch *batch, ocl_argument *arguments) {
  cl_uint n = 0;
  arguments[n++] = (ocl_argument){sizeof(cl_mem), &batch->table};
  for (int i = 0; i < sizes[batch->size]; i++) arguments[n++] = (ocl_argument){sizeof(cl_mem), &batch->buffers[i]};
  return n;
}
