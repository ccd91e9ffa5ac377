/* What may be the largest of a line, or the smallest: LARGEST or not. Of equals the first counts; a NaN goes before all. */
#ifdef LARGEST
#define GOES_BEFORE(b, a) (((b) > (a)) | (((b) != (b)) & ((a) == (a))))
#else
#define GOES_BEFORE(b, a) (((b) < (a)) | (((b) != (b)) & ((a) == (a))))
#endif

typedef struct {
  CT value;
  long at; /* -1: none */
} candidate;

static candidate better(candidate a, candidate b) {
  int equal = (a.value == b.value) | ((a.value != a.value) & (b.value != b.value));
  int second = a.at < 0 || (b.at >= 0 && (GOES_BEFORE(b.value, a.value) || (equal && b.at < a.at)));
  return second ? b : a;
}
