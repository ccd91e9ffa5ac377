/* A sum of numbers that come one by one, as a tree of 16 each: the rounding error grows with the logarithm of how many
 * there are. */
#define CASCADE_LEVELS 5
typedef struct {
  CT level[CASCADE_LEVELS];
  long count;
} cascade;

static cascade cascade_of_none() {
  cascade c;
  c.count = 0;
  for (int l = 0; l < CASCADE_LEVELS; l++) c.level[l] = 0;
  return c;
}

static void cascade_add(cascade *c, CT v) {
  c->level[0] += v;
  c->count++;
  for (int l = 1; l < CASCADE_LEVELS; l++) {
    if ((c->count & ((1L << 4 * l) - 1)) == 0) {
      c->level[l] += c->level[l - 1];
      c->level[l - 1] = 0;
    }
  }
}

static CT cascade_total(const cascade *c) {
  CT total = 0;
  for (int l = 0; l < CASCADE_LEVELS; l++) total += c->level[l];
  return total;
}
