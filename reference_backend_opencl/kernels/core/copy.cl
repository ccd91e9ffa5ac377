/* From one buffer to another, in words of 32 bits; a work-item moves `part` of them. */
KERNEL copy_words(PLACE(to), CONST_PLACE(from), long words, long part) {
  const long end = min(((long)get_global_id(0) + 1) * part, words);
  __global CT *target = (__global CT *)(to + offset_to);
  __global const CT *source = (__global const CT *)(from + offset_from);
  long i = (long)get_global_id(0) * part;
  for (; i + VEC <= end; i += VEC) VSTORE(VLOAD(source + i), target + i);
  for (; i < end; i++) target[i] = source[i];
}
