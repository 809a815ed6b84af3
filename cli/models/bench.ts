import type { Command } from '@commander-js/extra-typings'
import type { BenchmarkRun } from '../../core/models/benchmark.ts'
import { type Client, dataOf, openClient } from '../client/client.ts'
import { commandTasks } from '../client/command-tasks.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { commandName, withCommon, withExamples } from '../terminal/options.ts'
import { rateText, sizeText, tookText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { chatSender, embeddingSender, fittingSize, measureRun, type Send } from './bench-runs.ts'
import { loadModel } from './load.ts'
import { detailOf, type ModelDetail } from './status.ts'

/** Requests at a time that are measured, one after the other. */
const counts = [1, 4, 16]

/** `infer model bench <id>`: measures how fast a model answers, and has the server keep the figures. */
export function define(command: Command, terminal: Terminal): void {
  const bench = withCommon(command)
    .summary('measure how fast a model answers')
    .description(
      'Loads a model that generates text or vectors and sends it requests of about 512 tokens, less if its context is shorter or it is slow: 1, then 4, then 16 at a time. Shows the rates of prompts and answers, the time to the first token, the memory and the time of the load. The server keeps the figures for the current settings; model plan and show, infer ps and the catalog show them. The requests are metered like any others. Nothing runs this by itself.',
    )
    .argument('<id>', 'the model')
    .action((id, { dataDir, json }) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const send = senderFor(client, await detailOf(client, id, signal))
        await loadModel(client, id, terminal, signal)
        const runs = await measure(client, id, send, terminal, signal)
        const params = { path: { id } }
        const kept = await dataOf(client.api.POST('/api/models/{id}/benchmark', { params, body: { runs }, signal }))
        if (json) return terminal.json({ model_id: id, ...kept })
        terminal.table(
          ['requests', 'prompt tokens/s', 'tokens/s', 'first token', 'prompt tokens', 'answer tokens'],
          kept.runs.map(rowOf),
          { optional: ['prompt tokens', 'answer tokens'] },
        )
        const load = kept.load_ms === null ? '' : ` It was loaded in ${tookText(kept.load_ms)}.`
        terminal.remark(
          `'${printable(id)}' ran ${printable(kept.runs_on)}, with ${sizeText(kept.memory_bytes)}.${load} These figures again: infer model plan ${printable(id)}`,
        )
      }),
    )
  withExamples(bench, [
    [`${commandName(command)} qwen3-8b`, '1, 4 and 16 requests at a time'],
    [`${commandName(command)} qwen3-8b --json`, 'the figures that the server keeps'],
  ])
}

/** Returns what sends the requests. Throws usage for a model of another kind. */
function senderFor(client: Client, { id, status: { tasks } }: ModelDetail): Send {
  if (tasks.includes(commandTasks.chat)) return chatSender(client, id)
  if (tasks.includes(commandTasks.embed)) return embeddingSender(client, id)
  throw usageFailure(
    `'${printable(id)}' does ${tasks.join(', ')}; a benchmark is only for models that chat or make vectors. Its time for one request: infer model test ${printable(id)}`,
  )
}

async function measure(
  client: Client,
  id: string,
  send: Send,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<BenchmarkRun[]> {
  const { engines, settings } = await detailOf(client, id, signal)
  const slots = engines.reduce((sum, engine) => sum + (engine.state === 'ready' ? engine.slots : 0), 0)
  const context = typeof settings.context_length === 'number' ? settings.context_length : null
  const live = Boolean((terminal.stderr as Partial<typeof terminal.stderr>).isTTY)
  try {
    terminal.waiting('Trying a first request')
    const size = await fittingSize(send, context, signal)
    const runs: BenchmarkRun[] = []
    for (const requests of counts) {
      const show = (count: number) =>
        (live || count === 0) && terminal.waiting(`${requests} at a time: ${count} of ${requests} answered`)
      show(0)
      runs.push(await measureRun(send, { requests, slots, size }, signal, show))
    }
    return runs
  } finally {
    if (live) terminal.progress('')
  }
}

const rowOf = (run: BenchmarkRun): string[] => {
  const rate = (value: number | null) => (value === null ? '-' : rateText(value))
  return [
    String(run.requests),
    rate(run.input_tokens_per_second),
    rate(run.output_tokens_per_second),
    tookText(run.time_to_first_token_ms),
    String(run.input_tokens),
    String(run.output_tokens),
  ]
}
