/* Items that are sorted: a key, an unsigned number, and a place; of equal keys the lower place goes first. The head defines
 * NARROW where both have 32 bits. */
#ifdef NARROW /* in one number */
#define ITEM ulong
#define LESS(a, b) ((a) < (b))
#define MAKE_ITEM(key, place) ((ulong)(key) << 32 | (place))
#define KEY(item) ((item) >> 32)
#define PLACE_OF(item) ((item)&0xffffffffu)
#define DIGITS 4
#else
#define ITEM ulong2
#define LESS(a, b) ((a).x < (b).x || ((a).x == (b).x && (a).y < (b).y))
#define MAKE_ITEM(key, place) (ulong2)((ulong)(key), (ulong)(place))
#define KEY(item) ((item).x)
#define PLACE_OF(item) ((item).y)
#define DIGITS 8
#endif
/* What fills up comes after all. */
#define FILL MAKE_ITEM(sizeof(ITEM) == 8 ? 0xffffffffUL : ~0UL, 0)
