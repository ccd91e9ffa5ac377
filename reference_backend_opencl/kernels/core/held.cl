/* Rows that the work-items of a GPU hold in registers. A row has a team of work-items, a power of two of them; each has
 * VECTORS vectors of the row, and side by side they read what lies side by side. With VEC > 1 rows are whole vectors.
 */
typedef struct {
  long rows, size, team;
} held_space;

typedef struct {
  long start;                       /* of the row; elements */
  int team, member, size, is_there; /* is_there: there is such a row */
} held_row;

static INLINED held_row row_of(held_space space) {
  held_row r;
  int id = (int)get_local_id(0);
  r.team = (int)space.team;
  r.member = id & (r.team - 1);
  long row = (long)get_group_id(0) * (LOCAL / r.team) + id / r.team;
  r.start = row * space.size;
  r.size = (int)space.size;
  r.is_there = row < space.rows;
  return r;
}

/* Which elements of its row vector k of this work-item begins at, and whether it is there. */
#define HELD_AT(r, k) (((k) * (r).team + (r).member) * VEC)
#define IS_HELD(r, k) ((r).is_there && HELD_AT(r, k) < (r).size)
#define EACH_HELD     _Pragma("unroll") for (int k = 0; k < VECTORS; k++)

/* DEFINE_HELD(name, dtype): hold_name(v, r, row, nothing) reads a row, with `nothing` beyond its end, and give_name(v,
 * r, row) writes one; `row` is where it begins. A vector of a type that may lie anywhere is read in parts: where rows
 * lie at multiples of a vector, as they do if one does, it is read as one. */
#define DEFINE_HELD(name, dtype)                                                                    \
  static INLINED void hold_##name(VT *v, held_row r, __global const RAW(dtype) * row, CT nothing) { \
    if (VEC > 1 && (ulong)row % sizeof(VEC_OF(RAW(dtype))) == 0) {                                  \
      EACH_HELD {                                                                                   \
        v[k] = (VT)nothing;                                                                         \
        if (!IS_HELD(r, k)) continue;                                                               \
        VEC_OF(RAW(dtype)) lanes = *(__global const VEC_OF(RAW(dtype)) *)(row + HELD_AT(r, k));     \
        v[k] = LOAD(dtype, __private, (__private const RAW(dtype) *)&lanes);                        \
      }                                                                                             \
    } else {                                                                                        \
      EACH_HELD v[k] = IS_HELD(r, k) ? LOAD(dtype, __global, row + HELD_AT(r, k)) : (VT)nothing;    \
    }                                                                                               \
  }                                                                                                 \
  static INLINED void give_##name(const VT *v, held_row r, __global RAW(dtype) * row) {             \
    if (VEC > 1 && (ulong)row % sizeof(VEC_OF(RAW(dtype))) == 0) {                                  \
      EACH_HELD {                                                                                   \
        if (!IS_HELD(r, k)) continue;                                                               \
        VEC_OF(RAW(dtype)) lanes;                                                                   \
        STORE(dtype, __private, (__private RAW(dtype) *)&lanes, v[k]);                              \
        *(__global VEC_OF(RAW(dtype)) *)(row + HELD_AT(r, k)) = lanes;                              \
      }                                                                                             \
    } else {                                                                                        \
      EACH_HELD {                                                                                   \
        if (IS_HELD(r, k)) STORE(dtype, __global, row + HELD_AT(r, k), v[k]);                       \
      }                                                                                             \
    }                                                                                               \
  }

#define added(a, b)  ((a) + (b))

/* name(v, r, shared): all that a team holds, combined in a tree, for each of it. All work-items of a group take part.
 */
#define DEFINE_TEAM_TOTAL(name, combine)                                                  \
  static INLINED CT name(const VT *v, held_row r, __local CT *shared) {                   \
    CT lanes[VEC];                                                                        \
    VT all = v[0];                                                                        \
    int id = (int)get_local_id(0);                                                        \
    for (int k = 1; k < VECTORS; k++) all = combine(all, v[k]);                           \
    VSTORE(all, lanes);                                                                   \
    for (int j = 1; j < VEC; j++) lanes[0] = combine(lanes[0], lanes[j]);                 \
    shared[id] = lanes[0];                                                                \
    for (int half_team = r.team / 2; half_team > 0; half_team /= 2) {                     \
      barrier(CLK_LOCAL_MEM_FENCE);                                                       \
      if (r.member < half_team) shared[id] = combine(shared[id], shared[id + half_team]); \
    }                                                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                         \
    CT total = shared[id - r.member];                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                         \
    return total;                                                                         \
  }
DEFINE_TEAM_TOTAL(team_sum, added)
DEFINE_TEAM_TOTAL(team_max, LARGER)
