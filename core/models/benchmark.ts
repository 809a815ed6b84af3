import { z } from 'zod'
import { array, integer, namedObject, nullableInteger, string } from '../schemas/fields.ts'

const count = z.int().min(1).max(1_000_000_000)
/** One for each field: the bundle would describe a shared one. */
const rate = () => z.number().min(0).max(1e12)

/** Figures of as many requests as there are at a time. */
export const BenchmarkRun = namedObject('BenchmarkRun', 'Figures of requests that are sent at a time.', {
  requests: count.max(1_000).describe('How many requests were sent at a time.'),
  input_tokens: z.int().min(0).max(1_000_000_000).describe('Tokens of all prompts together.'),
  output_tokens: z.int().min(0).max(1_000_000_000).describe('Tokens of all answers together.'),
  input_tokens_per_second: rate()
    .nullable()
    .describe('Rate at which prompts were read, all together; null if requests for text had to wait for a slot.'),
  output_tokens_per_second: rate()
    .nullable()
    .describe('Rate at which tokens were generated, all together; null for vectors.'),
  time_to_first_token_ms: rate().describe(
    'Median time from a request to its first token, or to its answer, milliseconds.',
  ),
})
export type BenchmarkRun = z.infer<typeof BenchmarkRun>

/** The newest benchmark of a model with its current settings, as it is stored and shown. */
export const ModelBenchmark = namedObject(
  'ModelBenchmark',
  'Measured by `infer model bench` with the current settings.',
  {
    measured_at: integer('Unix seconds.'),
    runs_on: string('Where the engine ran: `on GPU 0, 37 of 37 layers`.'),
    memory_bytes: integer('Bytes that were reserved for the engine.'),
    load_ms: nullableInteger('How long its load took; null if unknown.'),
    runs: array('Figures by the number of requests at a time.', BenchmarkRun).max(8),
  },
)
export type ModelBenchmark = z.infer<typeof ModelBenchmark>
