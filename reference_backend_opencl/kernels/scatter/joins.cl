/* How two elements that meet become one, beside what common.cl has: the extremum, a NaN before all. */
#define MAXIMUM(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))
#define MINIMUM(a, b) (((a) < (b)) | ((a) != (a)) ? (a) : (b))
