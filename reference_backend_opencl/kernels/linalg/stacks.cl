/* Stacks of matrices, after direct.cl: a work-group has a matrix, its lanes the rows or columns of a step. On a CPU it
 * is one work-item, and a matrix is a piece of its work. Matrices lie row by row. */
#if LOCAL == 1
#define LANE 0L
#define SYNC
#define EACH_MATRIX(b) EACH_UNIT(b)
#else
#define LANE ((long)get_local_id(0))
#define SYNC barrier(CLK_GLOBAL_MEM_FENCE)
#define EACH_MATRIX(b) for (long b = (long)get_group_id(0); b < n.units / LOCAL; b += n.units)
#endif
#define EACH_LANE(i, from, to) for (long i = (from) + LANE; i < (to); i += LOCAL)

typedef __global CT *matrix;
typedef __global const CT *const_matrix;
#define MATRIX(name) ((matrix)(name + offset_##name))
#define CONST_MATRIX(name) ((const_matrix)(name + offset_##name))
#define WHOLE(name) ((__global int *)(name + offset_##name))
