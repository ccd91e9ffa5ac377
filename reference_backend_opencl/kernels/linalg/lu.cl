/* The LU factorization by many work-groups, after direct.cl and stacks.cl: WIDE columns at a time, a launch that
 * factorizes these from their first row on, one that exchanges the rows of the others and solves for the block's rows of
 * those behind, and one that takes the product from what is left. The head (lu.c) defines LANES, work-items of a panel's
 * group; EACH, rows that one has; WIDE; TILE, of the product; and CHUNK, columns whose rows are whole pieces of memory. */
#define SQUARE_LANES 64
#define TILE_LANES 256
#define SIDE 16 /* of the lanes of a tile */
#define EDGE (TILE / SIDE)

/* The matrix, nothing wrong with it so far. */
KERNEL_OF(TILE_LANES, 1) begin(PLACE(lu), PLACE(info), CONST_PLACE(a), long elements, long count) {
  const long i = (long)get_global_id(0);
  if (i < count) WHOLE(info)[i] = 0;
  if (i < elements) MATRIX(lu)[i] = CONST_MATRIX(a)[i];
}

/* What a row bids for being the pivot's in row k: NaN there stays, and elsewhere is none, as comparisons have it. */
static RT bid_of(CT v, int place, int k) {
  const RT size = PIVOT_SIZE(v);
  return place < k ? (RT)-2 : size == size ? size : place == k ? (RT)INFINITY : (RT)-1;
}

typedef struct {
  RT size;
  int place;
} bid;

static bid better(bid a, bid b) { return b.size > a.size || (b.size == a.size && b.place < a.place) ? b : a; }

/* The place of the best bid, the first of equals; each lane's is in `sizes` and `places`. */
#define FIRST_BIDS (LANES < 32 ? LANES : 32)
static INLINED int best_of(__local RT *sizes, __local int *places, __local RT *few, __local int *few_places) {
  const int id = (int)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id < FIRST_BIDS) {
    bid best = {sizes[id], places[id]};
    AT_THE_SAME_TIME for (int i = FIRST_BIDS; i < LANES; i += FIRST_BIDS)
      best = better(best, (bid){sizes[i + id], places[i + id]});
    few[id] = best.size;
    few_places[id] = best.place;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  bid best = {few[0], few_places[0]};
  AT_THE_SAME_TIME for (int i = 1; i < FIRST_BIDS; i++) best = better(best, (bid){few[i], few_places[i]});
  return best.place;
}

/* A lane keeps its rows, and `place` says where each would stand by now. After each step the columns of a row move by one
 * in a circle, so that the step's is always the first: `left` are still to come. Of each block that is left, `moves` gets
 * the row that has come to each of its places, and the place to which each of its rows has gone. */
KERNEL_OF(LANES, 1) panel(PLACE(lu), PLACE(pivots), PLACE(info), PLACE(moves), long rows, long columns, long exchanged,
                          long first) {
  __local CT staged[LANES][CHUNK + 1], pivot[WIDE];
  __local RT sizes[LANES], few[FIRST_BIDS];
  __local int places[LANES], few_places[FIRST_BIDS];
  const long b = (long)get_group_id(0), steps = min(rows, columns);
  const int id = (int)get_local_id(0), count = (int)(rows - first), wide = (int)min((long)WIDE, steps - first);
  matrix at = MATRIX(lu) + b * rows * columns + first * columns + first;
  CT x[EACH][WIDE];
  int place[EACH], bad = 0;
  AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
    place[e] = e * LANES + id;
    AT_THE_SAME_TIME for (int chunk = 0; chunk < WIDE; chunk += CHUNK) {
      for (int p = id; p < LANES * CHUNK; p += LANES) {
        const int i = e * LANES + p / CHUNK, j = chunk + p % CHUNK;
        staged[p / CHUNK][p % CHUNK] = i < count && j < wide ? at[i * columns + j] : (CT)0;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      AT_THE_SAME_TIME for (int j = 0; j < CHUNK; j++) x[e][chunk + j] = staged[id][j];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  for (int k = 0; k < WIDE; k++) { /* to the end, so that the columns come full circle */
    const int left = WIDE - k - 1;
    const bool real = k < wide;
    bid best = {-2, 0};
    AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
      if (place[e] < count) best = better(best, (bid){bid_of(x[e][0], place[e], k), place[e]});
    }
    sizes[id] = best.size;
    places[id] = best.place;
    const int winner = best_of(sizes, places, few, few_places), row = exchanged && real ? winner : k;
    AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
      const bool ahead = place[e] == row;
      place[e] = ahead ? k : place[e] == k ? row : place[e];
      for (int j = 0; ahead && j < WIDE; j++) pivot[j] = x[e][j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const CT head = pivot[0];
    if (real && !bad && !NONZERO(head)) bad = (int)first + k + 1;
    if (real && id == 0) WHOLE(pivots)[b * steps + first + k] = (int)first + row + 1;
    AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
      const bool below = real && place[e] > k && is_changed(head, x[e][0]);
      const CT factor = below ? DIVIDE(x[e][0], head) : x[e][0];
      AT_THE_SAME_TIME for (int j = 0; j + 1 < WIDE; j++) {
        const CT now = x[e][j + 1];
        x[e][j] = below && j < left ? MULTIPLY_ADD(-factor, pivot[j + 1], now) : now;
      }
      x[e][WIDE - 1] = factor;
    }
  }
  __global int *from = WHOLE(moves) + b * 2 * WIDE, *to = from + WIDE;
  AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
    const int row = e * LANES + id;
    if (place[e] < WIDE) from[place[e]] = row;
    if (row < WIDE) to[row] = place[e];
  }
  if (id == 0 && bad && !WHOLE(info)[b]) WHOLE(info)[b] = bad;
  barrier(CLK_GLOBAL_MEM_FENCE); /* who writes an element is not who read it */
  AT_THE_SAME_TIME for (int e = 0; e < EACH; e++) {
    places[id] = place[e];
    AT_THE_SAME_TIME for (int chunk = 0; chunk < WIDE; chunk += CHUNK) {
      AT_THE_SAME_TIME for (int j = 0; j < CHUNK; j++) staged[id][j] = x[e][chunk + j];
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int p = id; p < LANES * CHUNK; p += LANES) {
        const int i = places[p / CHUNK], j = chunk + p % CHUNK;
        if (i < count && j < wide) at[i * columns + j] = staged[p / CHUNK][p % CHUNK];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
}

/* The columns beside the panel, each a lane's. */
KERNEL_OF(SQUARE_LANES, 1) across(PLACE(lu), PLACE(moves), long rows, long columns, long parts, long first) {
  __local CT square[WIDE][WIDE + 1];
  __local int from[WIDE], to[WIDE];
  const long b = (long)get_group_id(0) / parts, part = (long)get_group_id(0) % parts;
  const int id = (int)get_local_id(0), wide = (int)min((long)WIDE, min(rows, columns) - first);
  matrix at = MATRIX(lu) + b * rows * columns + first * columns;
  for (int p = id; p < WIDE * WIDE; p += SQUARE_LANES) {
    const int i = p / WIDE, j = p % WIDE;
    square[i][j] = i < wide && j < i ? at[i * columns + first + j] : (CT)0;
  }
  for (int k = id; k < WIDE; k += SQUARE_LANES) {
    from[k] = WHOLE(moves)[b * 2 * WIDE + k];
    to[k] = WHOLE(moves)[b * 2 * WIDE + WIDE + k];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const long beside = part * SQUARE_LANES + id, column = beside < first ? beside : beside + wide;
  if (column >= columns) return;
  CT x[WIDE], old[WIDE];
  AT_THE_SAME_TIME for (int k = 0; k < WIDE; k++) {
    old[k] = k < wide ? at[k * columns + column] : (CT)0;
    x[k] = k < wide ? at[from[k] * columns + column] : (CT)0;
  }
  AT_THE_SAME_TIME for (int k = 0; k < WIDE; k++) {
    if (k < wide && to[k] >= wide) at[to[k] * columns + column] = old[k];
  }
  if (column > first) {
    AT_THE_SAME_TIME for (int k = 0; k < WIDE; k++) {
      AT_THE_SAME_TIME for (int i = k + 1; i < WIDE; i++) x[i] = MULTIPLY_ADD(-square[i][k], x[k], x[i]);
    }
  }
  AT_THE_SAME_TIME for (int k = 0; k < WIDE; k++) {
    if (k < wide) at[k * columns + column] = x[k];
  }
}

/* A work-group takes from a tile behind the panel what its rows and its columns make. */
KERNEL_OF(TILE_LANES, 1) update(PLACE(lu), long rows, long columns, long tiles, long across, long first) {
  __local CT down[WIDE][TILE + 1], over[WIDE][TILE + 1];
  const long b = (long)get_group_id(0) / tiles, tile = (long)get_group_id(0) % tiles, behind = first + WIDE;
  const long top = behind + tile / across * TILE, left = behind + tile % across * TILE;
  const int id = (int)get_local_id(0), y = id / SIDE, x = id % SIDE;
  matrix at = MATRIX(lu) + b * rows * columns;
  for (int p = id; p < TILE * WIDE; p += TILE_LANES) {
    const int i = p / WIDE, k = p % WIDE;
    down[k][i] = top + i < rows ? at[(top + i) * columns + first + k] : (CT)0;
  }
  for (int p = id; p < TILE * WIDE; p += TILE_LANES) {
    const int k = p / TILE, j = p % TILE;
    over[k][j] = left + j < columns ? at[(first + k) * columns + left + j] : (CT)0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  CT sums[EDGE][EDGE];
  AT_THE_SAME_TIME for (int r = 0; r < EDGE; r++) {
    AT_THE_SAME_TIME for (int c = 0; c < EDGE; c++) {
      const long i = top + y + r * SIDE, j = left + x + c * SIDE;
      sums[r][c] = i < rows && j < columns ? at[i * columns + j] : (CT)0;
    }
  }
  for (int k = 0; k < WIDE; k++) {
    AT_THE_SAME_TIME for (int r = 0; r < EDGE; r++) {
      const CT factor = -down[k][y + r * SIDE];
      AT_THE_SAME_TIME for (int c = 0; c < EDGE; c++)
        sums[r][c] = MULTIPLY_ADD(factor, over[k][x + c * SIDE], sums[r][c]);
    }
  }
  AT_THE_SAME_TIME for (int r = 0; r < EDGE; r++) {
    AT_THE_SAME_TIME for (int c = 0; c < EDGE; c++) {
      const long i = top + y + r * SIDE, j = left + x + c * SIDE;
      if (i < rows && j < columns) at[i * columns + j] = sums[r][c];
    }
  }
}
