/* The losses: one row an op. */
#include "kernels/loss/loss.h"

static const ocl_pair_loss mse = {.loss = "(x - y) * (x - y)", .slope = "(x - y)", .factor = 2};
static const ocl_pair_loss smooth_l1 = {.loss = "D_SIZE < z ? (VT)0.5f * D_SIZE * D_SIZE / z : D_SIZE - (VT)0.5f * z",
                                        .slope = "x - y <= -z ? (VT)(-1) : x - y >= z ? (VT)1 : (x - y) / z",
                                        .factor = 1};
static const ocl_pair_loss huber = {.loss = "D_SIZE <= z ? (VT)0.5f * D_SIZE * D_SIZE : z * (D_SIZE - (VT)0.5f * z)",
                                    .slope = "x - y <= -z ? -z : x - y >= z ? z : x - y",
                                    .factor = 1};
static const ocl_pair_loss cross_entropy = {.loss = "(y - (VT)1) * KEPT(log1p(-x)) - y * KEPT(log(x))",
                                            .slope = "(x - y) / fmax(((VT)1 - x) * x, (VT)1e-12f)",
                                            .factor = 1,
                                            .checked = true};
/* PyTorch composes the loss itself. */
static const ocl_pair_loss soft_margin = {.loss = "x", .slope = "-y / ((VT)1 + exp(y * x))", .factor = 1};

/* A gradient of a reduced loss is one number, expanded. */
#define GRADIENT (GRAFT_CAP_UNALIGNED | GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED)

#define PAIR(op, loss, caps) \
  { OCL_ENGINE(op, ocl_pair, ocl_pair_reads, &loss), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = caps }
#define LOSS(op, set) \
  { OCL_OP(op), .inputs = set, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED }

static const ocl_op ops[] = {
    PAIR(mse_loss, mse, GRAFT_CAP_UNALIGNED),
    PAIR(mse_loss_backward, mse, GRADIENT),
    PAIR(smooth_l1_loss, smooth_l1, GRAFT_CAP_UNALIGNED),
    PAIR(smooth_l1_loss_backward, smooth_l1, GRADIENT),
    PAIR(huber_loss, huber, GRAFT_CAP_UNALIGNED),
    PAIR(huber_loss_backward, huber, GRADIENT),
    PAIR(binary_cross_entropy, cross_entropy, GRAFT_CAP_UNALIGNED),
    PAIR(binary_cross_entropy_backward, cross_entropy, GRADIENT),
    PAIR(soft_margin_loss_backward, soft_margin, GRADIENT),
    LOSS(nll_loss_forward, OCL_FLOATS),
    LOSS(nll_loss_backward, OCL_FLOATS),
    LOSS(nll_loss2d_forward, OCL_FLOATS),
    LOSS(nll_loss2d_backward, OCL_FLOATS),
    LOSS(ctc_loss, OCL_BIT(F32) | OCL_BIT(F64)),
    LOSS(ctc_loss_backward, OCL_BIT(F32) | OCL_BIT(F64)),
    LOSS(multi_margin_loss, OCL_FLOATS | OCL_BIT(I64)),
    LOSS(multi_margin_loss_backward, OCL_FLOATS | OCL_BIT(I64)),
    LOSS(multilabel_margin_loss_forward, OCL_FLOATS | OCL_BIT(I64)),
    LOSS(multilabel_margin_loss_backward, OCL_FLOATS | OCL_BIT(I64)),
};
OCL_FAMILY(loss, ops)
