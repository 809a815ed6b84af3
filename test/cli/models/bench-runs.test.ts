import { expect, test } from 'vitest'
import { fittingSize, measureRun, type RequestSize, runOf, type Sample } from '../../../cli/models/bench-runs.ts'
import { Failure } from '../../../core/failure.ts'

const sample = (firstAt: number, endedAt: number, of: Partial<Sample> = {}): Sample => ({
  sentAt: 0,
  firstAt,
  endedAt,
  inputTokens: 500,
  outputTokens: 101,
  ...of,
})
const never = new AbortController().signal

test('rates are those of all requests together; the first token is the median', () => {
  expect(runOf([sample(250, 1_250)], 4)).toEqual({
    requests: 1,
    input_tokens: 500,
    output_tokens: 101,
    input_tokens_per_second: 2_000,
    output_tokens_per_second: 100,
    time_to_first_token_ms: 250,
  })
  const four = [sample(100, 900), sample(500, 1_000), sample(200, 1_000), sample(300, 1_100)]
  expect(runOf(four, 4)).toMatchObject({
    input_tokens_per_second: 4_000,
    output_tokens_per_second: 400,
    time_to_first_token_ms: 200,
  })
  // Two of them waited for a slot.
  expect(runOf(four, 2)).toMatchObject({ input_tokens_per_second: null, output_tokens_per_second: 400 })
  const vector = sample(80, 80, { outputTokens: 0 })
  expect(runOf([vector], 1)).toMatchObject({ input_tokens_per_second: 6_250, output_tokens_per_second: null })
  // Vectors have no answer that delays the others.
  expect(runOf([vector, sample(160, 160, { outputTokens: 0 })], 1)).toMatchObject({ input_tokens_per_second: 6_250 })
})

test.each<[string, number | null, (size: RequestSize) => Sample, RequestSize]>([
  ['512 tokens', null, ({ words }) => sample(1, 2, { inputTokens: words * 2 }), { words: 256, output: 128 }],
  [
    'what a short context has room for',
    256,
    ({ words }) => sample(1, 2, { inputTokens: words }),
    { words: 64, output: 64 },
  ],
  ['less of a slow model', 8_192, () => sample(1, 20_000), { words: 100, output: 32 }],
])('the size of the requests: %s', async (_, context, answer, expected) => {
  expect(await fittingSize(async size => answer(size), context, never)).toEqual(expected)
})

test('a prompt that is refused for its length is halved; another refusal is not repeated', async () => {
  const tried: number[] = []
  const send = async ({ words }: RequestSize) => {
    tried.push(words)
    if (words > 60) throw new Failure('context_length_exceeded', 'Too long.')
    return sample(1, 2, { inputTokens: words })
  }
  expect(await fittingSize(send, null, never)).toEqual({ words: 50, output: 128 })
  expect(tried).toEqual([400, 200, 100, 50])
  const broken = () => Promise.reject(new Failure('worker_error', 'It broke.'))
  await expect(fittingSize(broken, null, never)).rejects.toThrow('It broke.')
})

test('requests are sent at once, and the others are aborted when one fails', async () => {
  const size = { words: 1, output: 1 }
  let sent = 0
  let aborted = 0
  const send = (_: RequestSize, signal: AbortSignal) =>
    ++sent === 4
      ? Promise.reject(new Failure('worker_error', 'It broke.'))
      : new Promise<Sample>((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted++
            reject(new Error('aborted'))
          })
        })
  const run = measureRun(send, { requests: 4, slots: 4, size }, never, () => {})
  await expect(run).rejects.toThrow('It broke.')
  expect([sent, aborted]).toEqual([4, 3])
})
