/* The order in which groups make the tiles, TILE_M x TILE_N, of a product. */
#define BAND 16 /* rows of tiles that run at about the same time, so that their strips are found in the cache */

/* Which tile a group makes: down a band, then to the next column. */
static INLINED void find_tile(long panels_m, long panels_n, long *row, long *column) {
  int group = get_group_id(0), band = group / (BAND * (int)panels_n), first = band * BAND;
  int height = min(BAND, (int)panels_m - first), within = group - first * (int)panels_n;
  *row = (long)(first + within % height) * TILE_M;
  *column = (long)(within / height) * TILE_N;
}
