/* The numbers of products.c, for kernels that multiply matrices. */
#define ROWS n.of[0]
#define COLUMNS n.of[1]
#define DEPTH n.of[2]
#define GROUP n.of[3]  /* of weights of 4 bits: as many have a scale */
#define STEP_A n.of[4] /* of the scales, by row and by column: 0 where there is one number for all */
#define STEP_B n.of[5]
#define STEP_BIAS n.of[6]
#define A_ROW n.of[7] /* strides */
#define A_DEPTH n.of[8]
#define B_DEPTH n.of[9]
#define B_COLUMN n.of[10]
#define OUT_ROW n.of[11]
#define OUT_COLUMN n.of[12]
#define CHUNK n.of[13] /* rows of a piece, TILE at a time */
#define TILE 8

