import { z } from 'zod'

/** The section `ollama` of infer.yaml. */
export const OllamaSettings = z
  .strictObject({
    loopback_token: z
      .string()
      .regex(/^tok_[0-9A-Za-z]{10,64}$/, 'must be the id of a token (tok_…), as `infer token list` shows it')
      .optional()
      .meta({
        description:
          'Id of the token, not its secret, as which requests below `/ollama` count that come without a token from a program on this machine: by a direct connection to a loopback address, and from no web page.',
        example: 'tok_01JC0000000000000000000000',
        absent: 'none: every request needs a token',
      }),
  })
  .prefault({})
  .meta({
    description: "The API for Ollama's clients, many of which cannot send a token.",
    example: { loopback_token: 'tok_01JC0000000000000000000000' },
    absent: 'the defaults of its keys',
  })
