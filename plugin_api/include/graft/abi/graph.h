/* Graft plugin ABI: extension "graft.graph", calls that a plugin compiles to one program.
 *
 * The host keeps a graph of calls in an order in which they can run. When it compiles one it shows all of them and asks
 * which the plugin takes together (query); what is in no group, and each call of a group that compile refuses, goes to
 * its slot as ever, so that a plugin loses nothing but speed by what it leaves out. A group is compiled once, run often,
 * from any number of threads, and destroyed.
 *
 * Calls are args structs, as their slots would get them, whose descriptors have no data. Two that name one descriptor,
 * the same pointer, speak of the same elements. Those with one storage_id lie in one memory, from its first byte on, at
 * byte_offset; storage_version is 0. So a value that is broadcast, viewed or written in place is another descriptor of
 * the same storage. Calls of elementwise ops show their tensors in the shape of the result (stride 0 where one is
 * broadcast), with all of its dims, however the slot would see them. A number (GRAFT_TENSOR_HOST_VALUE) has data where
 * it is the same in every run; else each run brings it, as an input.
 *
 * Memory is as if the calls ran in their order, one by one. A storage that only calls of one group use need not exist:
 * its descriptors are neither among the inputs nor among the outputs of the group, and the host keeps no memory for it.
 *
 * What a group gives is what its calls give: to the bit where all of them are elementwise, with a rounding to each
 * call's dtype in between; elsewhere sums may be taken in another order, within the limits that their slots keep.
 *
 * Version 2 has calls that draw random numbers: their `philox` is NULL here, and each run brings what they draw from. To
 * a plugin of version 1 the host shows them without args; a host of version 1 sends neither `flags` nor `philox`, so that
 * a plugin asks GRAFT_HAS before it reads them. Sizes that are open until a run are in neither: fields at the
 * end of these structs would bring them, and a host that sends them looks for a later version.
 *
 * All functions of the table are there, and thread-safe, but that calls which name one stream are serialised. Of the
 * host, query and compile may ask `log`, `set_error`, `cache_directory` and `extension`; run also `workspace`, as a slot
 * does. exec->memo is NULL, exec->flags are such that each call's op knows those to be understood. */
#ifndef GRAFT_ABI_GRAPH_H
#define GRAFT_ABI_GRAPH_H

#include "graft/abi/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRAFT_GRAPH_VERSION 2

typedef struct graft_executable graft_executable; /* the plugin's: a group, compiled */

typedef uint32_t graft_graph_node_flags;
enum {
  /* It draws random numbers, or may do so, args or not. Such calls keep their order: each needs the one before it. */
  GRAFT_GRAPH_NODE_DRAWS = 0x1
};

/* A call, and what it reads and writes: each descriptor that its args name, absent ones left out. What it both reads and
 * writes is in both lists, through one descriptor or through one for each. */
typedef struct graft_graph_node {
  size_t struct_size;
  const graft_args *args; /* NULL: the host runs it by other means, and it is in no group */
  const graft_tensor_desc *const *reads;
  const graft_tensor_desc *const *writes;
  uint32_t read_count;
  uint32_t write_count;
  /* Since version 2. */
  graft_graph_node_flags flags;
  uint32_t reserved;
} graft_graph_node;

/* A graph, for query. All of it lives until query returns. */
typedef struct graft_graph_nodes {
  size_t struct_size;
  const graft_graph_node *const *nodes;
  /* Whose storages are seen when the graph has run: its outputs, and its inputs, written or not. */
  const graft_tensor_desc *const *seen;
  uint32_t node_count;
  uint32_t seen_count;
} graft_graph_nodes;

/* A group, for compile. All of it lives, unchanged, until the executable that was made of it is destroyed. */
typedef struct graft_graph_group {
  size_t struct_size;
  const graft_graph_node *const *nodes;
  /* Each descriptor with memory that a node reads before one of the group has written to it, once, */
  const graft_tensor_desc *const *inputs;
  /* and each with memory that one writes. */
  const graft_tensor_desc *const *outputs;
  uint32_t node_count;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t reserved;
} graft_graph_group;

typedef uint32_t graft_executable_flags;
enum {
  /* Runs with buffers that begin at any multiple of their elements' sizes. Without it the host aligns them as
   * GRAFT_DEVICE_ALIGNMENT says, the group's own byte offsets aside, or runs the calls one by one. */
  GRAFT_EXECUTABLE_UNALIGNED = 0x1
};

/* The answer of compile. Zero-filled and sized by the host. */
typedef struct graft_graph_compiled {
  size_t struct_size;
  graft_executable *executable;
  graft_executable_flags flags;
  uint32_t reserved;
  /* Since version 2. Bit n, below 64: an output may lie where input n does, if both have one dtype, shape, strides and
   * byte offset and the group has no other descriptor of either storage; in some runs it does. One output over an
   * input. */
  uint64_t in_place;
} graft_graph_compiled;

/* One run. Descriptors equal those of the group in their order, dtype, shape and strides, and have data, offsets and
 * contents of this run; they live until run returns. Two inputs may be one memory; an output shares memory with what the
 * group's descriptors of its storage name, with an input where `in_place` lets it, and nothing else. */
typedef struct graft_graph_run_args {
  size_t struct_size;
  const graft_tensor_desc *const *inputs;
  const graft_tensor_desc *const *outputs;
  /* Since version 2: for each node of the group with GRAFT_GRAPH_NODE_DRAWS, in their order, what it draws from, as a
   * slot's args have it; `state` is NULL. */
  const graft_philox *const *philox;
} graft_graph_run_args;

typedef struct graft_graph_api {
  size_t struct_size;
  /* Which calls the plugin takes together: groups has a number for each node, 0 when it comes: it runs alone; nodes of
   * one number, 1 to node_count, are one group. A group may leave out what stands between its nodes, but can be run at
   * once: no node outside needs what one of the group writes and is needed by another one, and no two groups need each
   * other. The host holds the answer against that, and a wrong one is an error that names the plugin. Local and pure:
   * the same for the same graph. exec->stream is NULL. UNIMPLEMENTED: none. */
  graft_status (*query)(const graft_exec *exec, const graft_graph_nodes *graph, uint32_t *groups) GRAFT_TABLE_NOEXCEPT;
  /* Compiles a group; may take as long as a compiler does, and submits nothing. exec->stream is NULL. UNIMPLEMENTED: the
   * calls run one by one; so they do after any other failure, which the host logs. */
  graft_status (*compile)(const graft_exec *exec, const graft_graph_group *group,
                          graft_graph_compiled *compiled) GRAFT_TABLE_NOEXCEPT;
  /* Submits it to exec->stream, as a slot does its op; several threads may run one executable on streams of theirs. No
   * UNIMPLEMENTED: what was compiled runs. */
  graft_status (*run)(const graft_exec *exec, graft_executable *executable,
                      const graft_graph_run_args *args) GRAFT_TABLE_NOEXCEPT;
  /* No run is under way and nothing that one has submitted, or the device is lost; it succeeds. Executables are destroyed
   * before events, streams and buffers. */
  graft_status (*destroy)(graft_executable *executable) GRAFT_TABLE_NOEXCEPT;
} graft_graph_api;

#ifdef __cplusplus
}
#endif

#endif
