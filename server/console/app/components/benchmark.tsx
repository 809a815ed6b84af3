import type { Schema } from '../api/client.ts'
import { modelsText } from '../text/models.ts'
import { countText, durationText } from './format.ts'

/** The figures of the newest benchmark of a model, a line for each number of requests; nothing before any. */
export function Benchmark({ benchmark }: { benchmark: Schema<'ModelBenchmark'> | null }) {
  return benchmark?.runs.map(({ requests, output_tokens_per_second: rate, time_to_first_token_ms: first }) => (
    <span key={requests} className="text-muted block text-xs tabular-nums">
      {modelsText.benchmarkRun(requests, rate === null ? null : countText(Math.round(rate)), durationText(first))}
    </span>
  ))
}
