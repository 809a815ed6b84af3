import { z } from 'zod'

/** Keys of a model for the built-in engine. Other engines refuse all of them but `context_length`. */
export const ggufFields = {
  context_length: z.number().int().min(1).optional().meta({
    description:
      'Tokens of one request, prompt and answer together. Each slot has a context of this length. Also for vllm and llama-server.',
    unit: 'tokens',
    example: 16_384,
    absent: 'what the model has and the memory allows',
  }),
  gpu: z.enum(['auto', 'off', 'cuda', 'vulkan']).optional().meta({
    description: 'What computes on the GPU. `infer doctor` shows which work here.',
    example: 'cuda',
    absent: 'auto: the first that works here',
  }),
  gpu_layers: z.number().int().min(0).max(4096).optional().meta({
    description: 'Layers of the model on the GPU; the output layer counts as one. The rest runs on the processor.',
    unit: 'layers',
    example: 20,
    absent: 'as many as fit',
  }),
  flash_attention: z
    .enum(['auto', 'on', 'off'])
    .optional()
    .meta({ description: 'Needs less memory for long contexts.', example: 'on', absent: 'auto' }),
  kv_type: z.enum(['f16', 'q8_0', 'q4_0']).optional().meta({
    description: 'Number format of the KV cache. q8_0 takes half of the memory of f16, q4_0 about a quarter.',
    example: 'q8_0',
    absent: 'f16',
  }),
  threads: z.number().int().min(1).max(1024).optional().meta({
    description: 'Processor threads that compute.',
    unit: 'threads',
    example: 8,
    absent: 'by the number of cores',
  }),
  batch_size: z.number().int().min(32).max(4096).optional().meta({
    description: 'Tokens that are computed at a time. More is faster on long prompts and takes more memory.',
    unit: 'tokens',
    example: 1024,
    absent: '512',
  }),
  mmap: z.boolean().optional().meta({
    description: 'Map the model file into memory instead of reading it.',
    example: false,
    absent: 'true',
  }),
  mlock: z.boolean().optional().meta({
    description: 'Keep the model in memory, so that the system never swaps it out.',
    example: true,
    absent: 'false',
  }),
}
