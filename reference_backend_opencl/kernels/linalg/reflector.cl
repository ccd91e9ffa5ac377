/* One of Householder's reflectors, by what a team of work-items found of its column; after stacks.cl. */

/* A reflector: what it leaves of its column, its factor, and what numbers of the column, divided by the largest below,
 * are times `each` below its 1. */
typedef struct {
  RT beta;
  CT factor, each;
} reflector;

/* The length is taken by the largest number below, so that no square overflows, and where that is next to nothing by a
 * scale, since lengths among denormals are too coarse for a reflection; `squares` is of what is divided. */
static reflector reflector_of(CT head, RT most, RT squares) {
  const RT scale = fmax(most, MODULUS(head)) < MINIMUM / EPSILON ? (RT)MINIMUM : (RT)1;
  const CT alpha = head / scale;
  const RT below = most / scale * sqrt(squares), length = hypot(MODULUS(alpha), below);
  const RT beta = REAL(alpha) >= 0 ? -length : length;
  if (below == 0 && IMAGINARY(alpha) == 0) return (reflector){REAL(alpha) * scale, (CT)0, (CT)0};
  const CT each = below == 0 ? (CT)0 : DIVIDE(FROM_REAL(most / scale), alpha - FROM_REAL(beta));
  return (reflector){beta * scale, (FROM_REAL(beta) - alpha) / beta, each};
}
