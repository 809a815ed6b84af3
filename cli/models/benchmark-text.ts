import type { Api } from '../client/client.ts'
import { lengthText, rateText, sizeText, tookText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'

type Benchmark = Api['ModelBenchmark']

/** Returns a benchmark as lines for people: where and when it was measured, and a line for each number of requests. */
export function benchmarkLines(
  { measured_at, runs_on, memory_bytes, load_ms, runs }: Benchmark,
  now: number,
): string[] {
  const load = load_ms === null ? '' : `, loaded in ${tookText(load_ms)}`
  return [
    `benchmark of ${lengthText(now - measured_at)} ago: ${printable(runs_on)}, ${sizeText(memory_bytes)}${load}`,
    ...runs.map(run => `  ${run.requests} at a time: ${runText(run)}`),
  ]
}

function runText(run: Benchmark['runs'][number]): string {
  const { input_tokens_per_second: input, output_tokens_per_second: output, time_to_first_token_ms: first } = run
  return [
    ...(output === null ? [] : [`${rateText(output)} tokens/s`]),
    ...(input === null ? [] : [`prompts ${rateText(input)} tokens/s`]),
    `${output === null ? 'answer' : 'first token'} after ${tookText(first)}`,
  ].join(', ')
}

/** The token rate of one request alone, for a table; `-` where it was not measured. */
export const benchmarkRate = (benchmark: Benchmark | undefined): string => {
  const rate = benchmark?.runs[0]?.output_tokens_per_second ?? null
  return rate === null ? '-' : rateText(rate)
}
