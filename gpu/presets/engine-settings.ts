/** Fields of the configuration that only the built-in engine supports. */
export const ggufSettings = [
  'gpu',
  'gpu_layers',
  'flash_attention',
  'kv_type',
  'threads',
  'batch_size',
  'speculative',
  'mmap',
  'mlock',
] as const

/** Fields of the configuration that only the engine `python` supports, besides `threads`. */
export const pythonSettings = ['environment', 'dtype', 'quantization', 'offload', 'loras', 'compile'] as const

/** Fields of the configuration that only some engines support. */
export const engineSettings = [
  'protocol',
  'engine_version',
  'parking',
  'nodes',
  ...ggufSettings,
  ...pythonSettings,
] as const
