/* The set of free parts: a treap, whose shape comes from random priorities, so that no sequence of sizes degrades it
 * and there is nothing to rebalance. Ties go to the lower address, which keeps the high ends of segments empty. */
#include "memory/internal.h"

static bool before(const mem_part *a, const mem_part *b) {
  if (a->block.bytes != b->block.bytes) return a->block.bytes < b->block.bytes;
  if (a->block.address != b->block.address) return a->block.address < b->block.address;
  return a < b;
}

/* Splits into what comes before `part` and what does not. */
static void split(mem_part *root, const mem_part *part, mem_part **lower, mem_part **upper) {
  if (!root) {
    *lower = *upper = NULL;
  } else if (before(root, part)) {
    split(root->right, part, &root->right, upper);
    *lower = root;
  } else {
    split(root->left, part, lower, &root->left);
    *upper = root;
  }
}

static mem_part *join(mem_part *lower, mem_part *upper) {
  if (!lower || !upper) return lower ? lower : upper;
  if (lower->priority > upper->priority) {
    lower->right = join(lower->right, upper);
    return lower;
  }
  upper->left = join(lower, upper->left);
  return upper;
}

void mem_tree_insert(mem_tree *tree, mem_part *part, uint32_t priority) {
  mem_part **at = &tree->root;
  while (*at && (*at)->priority >= priority) at = before(*at, part) ? &(*at)->right : &(*at)->left;
  part->priority = priority;
  split(*at, part, &part->left, &part->right);
  *at = part;
}

void mem_tree_remove(mem_tree *tree, mem_part *part) {
  mem_part **at = &tree->root;
  while (*at != part) at = before(*at, part) ? &(*at)->right : &(*at)->left;
  *at = join(part->left, part->right);
  part->left = part->right = NULL;
}

mem_part *mem_tree_at_least(const mem_tree *tree, uint64_t bytes) {
  mem_part *best = NULL;
  for (mem_part *at = tree->root; at;) {
    if (at->block.bytes < bytes) {
      at = at->right;
    } else {
      best = at;
      at = at->left;
    }
  }
  return best;
}
