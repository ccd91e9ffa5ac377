/* OpenBLAS's sgemm as a peer; see matmul_peer.h. */
#include <cblas.h>

#include "matmul_peer.h"

typedef struct product {
  int n;
  float *a, *b, *c;
} product;

static void multiply(void *context) {
  product *p = context;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->n, p->n, p->n, 1, p->a, p->n, p->b, p->n, 0, p->c, p->n);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: matmul_openblas N\n"), 2;
  long n = atol(argv[1]);
  product p = {(int)n, peer_matrix(n), peer_matrix(n), peer_matrix(n)};
  return peer_serve(multiply, &p);
}
