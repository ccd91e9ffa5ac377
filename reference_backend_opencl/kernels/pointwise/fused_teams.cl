/* The index space of a fused kernel with reductions on a GPU: teams of work-items share lines, as those of teams.cl do,
 * so that sums are made in the same order. A line is a row, of which a step is TEAM_VEC elements side by side; or a step
 * is a row, and a work-item has TEAM_VEC columns side by side. Teams, and steps, that are one too many do what the last
 * one does, and write nothing: all work-items of a group go through the same barriers.
 *
 * The head defines RANK, OPERANDS and STAGES; TEAM_VEC, and SHARED: how many elements of local memory a team's stage asks
 * for. */
typedef struct {
  long size[RANK];
  STRIDES(RANK) stride[OPERANDS];
  long inner[OPERANDS]; /* from element to element of a row, or from column to column */
  long lines, steps, steps_per_split, width, depth;
  long partial[STAGES]; /* where a stage's partial results lie in memory of the kernel's own; bytes */
} space;

#define STRETCH 64
#define BEGIN_TEAM                                                                              \
  __local ulong8 shared[2][SHARED]; /* of two stages in turn */                                 \
  const int width = (int)shape.width, depth = (int)shape.depth, id = (int)get_local_id(0);      \
  const int place = id / width % depth;                                                         \
  const long unit = (long)get_group_id(0) * (LOCAL / (width * depth)) + id / (width * depth);   \
  const long first_step = (long)get_group_id(1) * shape.steps_per_split;                        \
  const long steps = min(first_step + shape.steps_per_split, shape.steps);
#define BEGIN_LINE                                                                              \
  const bool is_there = unit < shape.lines;                                                     \
  const long line = min(unit, shape.lines - 1);
#define BEGIN_COLUMNS                                                                           \
  const long column = (unit * width + id % width) * TEAM_VEC;                                   \
  const bool is_there = column < shape.lines;                                                   \
  const long line = min(column, shape.lines - TEAM_VEC);
