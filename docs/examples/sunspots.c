/* Which cycles are in three centuries of sunspots? Spectra and least squares on a backend that is loaded at run time.
 *
 *   sunspots DATA [BACKEND [CYCLES]]
 *
 * DATA is docs/examples/data/sunspots.csv; BACKEND a name or the path of a plugin (default: opencl). Each round takes
 * the strongest frequency of what is not yet explained, adds its cosine and sine to the columns, and fits all columns
 * anew (orthogonal matching pursuit; Pati, Rezaiifar, Krishnaprasad, 1993). Exit status 0 when the first period is the
 * solar cycle of about eleven years and the columns explain more than half of the variance.
 *
 * What the example shows: a Fourier transform and its complex result, a QR-based least squares solution, columns made
 * on the device, and numbers that come back only where the program decides by them. */
#include <graft/graft.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_YEARS = 1024, MAX_CYCLES = 32, PADDED = 8192, SHORTEST = 4, LONGEST = 150 };
static const double TURN = 6.283185307179586; /* radians */

/* Ends the program with libgraft's text when a call failed. */
static void must(graft_status status) {
  if (status == GRAFT_OK) return;
  fprintf(stderr, "sunspots: %s: %s\n", graft_status_name(status), graft_last_error());
  exit(1);
}

/* --- data --- */

typedef struct series {
  int64_t count;
  float values[MAX_YEARS];
} series;

/* The second column of a table with a heading. */
static void load(const char *path, series *s) {
  char line[128];
  FILE *file = fopen(path, "r");
  if (!file) {
    perror(path);
    exit(2);
  }
  for (int n = 0; s->count < MAX_YEARS && fgets(line, sizeof line, file); n++)
    if (n && sscanf(line, "%*[^,],%f", &s->values[s->count]) == 1) s->count++;
  fclose(file);
  if (s->count < 2 * SHORTEST) {
    fprintf(stderr, "%s: expected a heading and lines of YEAR,NUMBER\n", path);
    exit(2);
  }
}

/* --- on the device --- */

typedef struct fit {
  graft_rt_device *device;
  int64_t count;
  graft_tensor *years, *window, *values; /* [count], [count], [count, 1] */
  graft_tensor *columns;                 /* [count, 1 + two a cycle]: ones, then a cosine and a sine of each cycle */
  graft_tensor *residual;                /* [count, 1]: values - columns x */
} fit;

/* The second replaces the first. */
static void replace(graft_tensor **held, graft_tensor *by) {
  graft_tensor_release(*held);
  *held = by;
}

static double number(graft_tensor *t) {
  graft_scalar value;
  must(graft_tensor_item(t, &value));
  return value.dtype == GRAFT_I64 ? (double)value.value.i : value.value.f;
}

static double sum_of_squares(graft_tensor *t) {
  graft_tensor *norm = NULL;
  must(graft_op_linalg_vector_norm(t, graft_scalar_int(2), NULL, 0, false, GRAFT_DTYPE_NONE, &norm));
  double result = number(norm);
  graft_tensor_release(norm);
  return result * result;
}

/* Least squares: the columns' weights, and what they leave. */
static void solve(fit *f) {
  graft_tensor *weights = NULL, *squares = NULL, *rank = NULL, *values = NULL, *explained = NULL, *left = NULL;
  must(graft_op_linalg_lstsq(f->columns, f->values, NULL, "gels", &weights, &squares, &rank, &values));
  must(graft_op_mm(f->columns, weights, &explained));
  must(graft_op_sub_Tensor(f->values, explained, graft_scalar_int(1), &left));
  replace(&f->residual, left);
  graft_tensor *const made[] = {weights, squares, rank, values, explained};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) graft_tensor_release(made[i]);
}

/* The period in years of the strongest line in the residual's spectrum. */
static double strongest_period(const fit *f) {
  graft_tensor *flat = NULL, *tapered = NULL, *padded = NULL, *spectrum = NULL, *size = NULL, *range = NULL,
               *best = NULL;
  int64_t first = PADDED / LONGEST, last = PADDED / SHORTEST;
  must(graft_op_view(f->residual, &f->count, 1, &flat));
  must(graft_op_mul_Tensor(flat, f->window, &tapered));
  must(graft_op_constant_pad_nd(tapered, (int64_t[]){0, PADDED - f->count}, 2, graft_scalar_int(0), &padded));
  must(graft_op_fft_r2c(padded, (int64_t[]){0}, 1, 0, true, &spectrum));
  must(graft_op_abs(spectrum, &size));
  must(graft_op_slice_Tensor(size, 0, &first, &last, 1, &range));
  must(graft_op_argmax(range, NULL, false, &best));
  double period = PADDED / (number(best) + (double)first);
  graft_tensor *const made[] = {flat, tapered, padded, spectrum, size, range, best};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) graft_tensor_release(made[i]);
  return period;
}

static void add_cycle(fit *f, double period) {
  graft_tensor *phase = NULL, *joined = NULL, *cosine = NULL, *sine = NULL;
  must(graft_op_mul_Scalar(f->years, graft_scalar_float(TURN / period), &phase));
  must(graft_op_cos(phase, &cosine));
  must(graft_op_sin(phase, &sine));
  graft_tensor *parts[] = {f->columns, cosine, sine};
  for (int i = 1; i < 3; i++) {
    graft_tensor *column = NULL;
    must(graft_op_view(parts[i], (int64_t[]){f->count, 1}, 2, &column));
    replace(&parts[i], column);
  }
  must(graft_op_cat(parts, 3, 1, &joined));
  replace(&f->columns, joined);
  for (int i = 1; i < 3; i++) graft_tensor_release(parts[i]);
  graft_tensor_release(phase);
}

static void fit_create(fit *f, graft_rt_device *device, const series *s) {
  float hann[MAX_YEARS];
  for (int64_t i = 0; i < s->count; i++) hann[i] = (float)(0.5 - 0.5 * cos(TURN * (double)i / (double)(s->count - 1)));
  *f = (fit){.device = device, .count = s->count};
  must(graft_tensor_from_host(device, GRAFT_F32, 1, &f->count, hann, &f->window));
  must(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){f->count, 1}, s->values, &f->values));
  must(graft_op_arange_start_step(graft_scalar_int(0), graft_scalar_int(f->count), graft_scalar_int(1), GRAFT_F32,
                                  device, &f->years));
  must(graft_op_full((int64_t[]){f->count, 1}, 2, graft_scalar_int(1), GRAFT_F32, device, &f->columns));
  solve(f); /* takes away the mean */
}

static void fit_destroy(fit *f) {
  graft_tensor *const held[] = {f->years, f->window, f->values, f->columns, f->residual};
  for (size_t i = 0; i < sizeof held / sizeof *held; i++) graft_tensor_release(held[i]);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: sunspots DATA [BACKEND [CYCLES]]\n");
    return 2;
  }
  int cycles = argc > 3 ? atoi(argv[3]) : 10;
  if (cycles < 1 || cycles > MAX_CYCLES) {
    fprintf(stderr, "sunspots: CYCLES is 1 to %d\n", MAX_CYCLES);
    return 2;
  }
  static series s;
  load(argv[1], &s);
  graft_rt_backend *backend;
  graft_rt_device *device;
  must(graft_backend_open(argc > 2 ? argv[2] : "opencl", NULL, &backend));
  must(graft_backend_device(backend, 0, &device));
  printf("%lld years of sunspots, on %s\n", (long long)s.count, graft_device_text(device));

  fit f;
  fit_create(&f, device, &s);
  double all = sum_of_squares(f.residual), first = 0, share = 0;
  for (int cycle = 1; cycle <= cycles; cycle++) {
    double period = strongest_period(&f);
    add_cycle(&f, period);
    solve(&f);
    share = 100 * (1 - sum_of_squares(f.residual) / all);
    printf("cycle %2d: %6.1f years; %4.1f %% of the variance explained\n", cycle, period, share);
    if (cycle == 1) first = period;
  }
  fit_destroy(&f);
  return first > 10.5 && first < 11.5 && share > 50 ? 0 : 1;
}
