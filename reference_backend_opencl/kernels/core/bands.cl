/* The order in which groups make the tiles, TILE_M x TILE_N, of a product. */
#define BAND 16 /* rows of tiles that run at about the same time, so that their strips are found in the cache */

/* Where a product's tile is: down a band, then to the next column. */
static INLINED void find_tile(int tile, int panels_m, int panels_n, long *row, long *column) {
  int band = tile / (BAND * panels_n), first = band * BAND;
  int height = min(BAND, panels_m - first), within = tile - first * panels_n;
  *row = (long)(first + within % height) * TILE_M;
  *column = (long)(within / height) * TILE_N;
}
