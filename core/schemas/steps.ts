import { z } from 'zod'
import { array, count, namedObject, optionalOneOf } from './fields.ts'

/** The longest text of a step, in characters. */
export const maxStepText = 4 << 20

/** How a text can be split, with the usual size of a part. */
export const splitSizes = { tokens: 500, characters: 2_000, lines: 50, paragraphs: 5 } as const
export type SplitUnit = keyof typeof splitSizes
const splitUnits = Object.keys(splitSizes) as [SplitUnit, ...SplitUnit[]]

export const maxChunks = 10_000

export const SplitRequest = namedObject('SplitRequest', 'A text to split into chunks.', {
  text: z.string().max(maxStepText).describe('The text.'),
  by: optionalOneOf(
    'Unit of `size` and `overlap`. `tokens` are estimated from the length of the text, so that most tokenizers make fewer of it; chunks end with a paragraph, a line or a sentence where possible. Default: `tokens`.',
    splitUnits,
  ),
  size: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('The most units of a chunk. Default: 500 tokens, 2000 characters, 50 lines or 5 paragraphs.'),
  overlap: z
    .int()
    .min(0)
    .optional()
    .describe('How many units at the end of a chunk begin the next one too. Default: 0.'),
  max_chunks: z
    .int()
    .min(1)
    .max(maxChunks)
    .optional()
    .describe('The node fails if the text makes more chunks than this. Default: 1000.'),
}).refine(({ by = 'tokens', size = splitSizes[by], overlap = 0 }) => overlap < size, {
  path: ['overlap'],
  message: "'overlap' must be less than 'size'.",
})
export type SplitRequest = z.output<typeof SplitRequest>

export const SplitResult = namedObject('SplitResult', 'The chunks of a text.', {
  chunks: array('The chunks in order. Without empty ones.', z.string()),
  count: count('How many chunks there are.'),
})
export type SplitResult = z.output<typeof SplitResult>
