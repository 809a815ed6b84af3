import { z } from 'zod'

/** The other keys of the model in the example. */
const vllm = { id: 'qwen3-32b', engine: 'vllm', source: 'Qwen/Qwen3-32B' }

/** The key `speculative` of a model. */
export const Speculative = z
  .strictObject({
    draft_model: z.string().min(1).max(4096).optional().meta({
      description:
        'A small model with the same vocabulary that guesses: a GGUF file for llama-server, a folder or a name on the hub for vllm. Its memory is counted with that of the model.',
      example: 'Qwen/Qwen3-0.6B',
      with: vllm,
      absent: 'tokens are guessed from n-grams: after the same three tokens, the text continues as it did before',
    }),
    tokens: z.int().min(1).max(64).default(8).meta({
      description: 'Tokens that are guessed at once, at most.',
      unit: 'tokens',
      example: 4,
    }),
  })
  .optional()
  .meta({
    description:
      'Guess tokens, of which the model then checks several at once. On a GPU that takes little longer than one. The answers stay those of the model. For gguf (without `draft_model`), llama-server and vllm. `gguf` guesses only while that makes all requests together faster.',
    example: { tokens: 16 },
    absent: 'no token is guessed',
  })
export type Speculative = z.output<typeof Speculative>
