import { execFileSync } from 'node:child_process'
import { loadavg } from 'node:os'
import { z } from 'zod'
import { Dag, mostMembers, Parameter } from '../../core/dag/definition.ts'
import { parseJson } from '../../core/json.ts'
import { diagnose } from '../../core/workflows/diagnose.ts'
import { blockingOf } from '../../core/workflows/diagnostics.ts'
import { ranksOf } from '../../core/workflows/graph.ts'
import { offerOf } from '../../core/workflows/offer.ts'
import { dependencies } from '../../core/workflows/plan.ts'

/**
 * How long a definition of 200 nodes and 1,000 edges is looked over, from its JSON text to the answer of
 * POST /api/workflows/validate: in the middle of many, and for the first time in a process that has loaded everything
 * and done nothing yet. Beside it, in the same run, the text parsed and checked for its shape alone. Prints one line.
 */
const [nodeCount, edgeCount] = [200, 1_000]

const content = (node: number) => `\${nodes.n${node}.result.choices[0].message.content}`
/** Nodes of four kinds that refer to a parameter and to what comes before them. */
function nodeOf(at: number): object {
  // The last text and the last picture among those before it.
  const text = at - (at % 4)
  const model = (task: string, inputs: object) => ({ model_id: 'any', task, inputs })
  if (at % 4 === 1)
    return model('slug/text-to-image', { prompt: `\${input.topic}: ${content(text)}`, seed: at, image_size: 'square' })
  if (at % 4 === 2)
    return model('slug/image-to-video', {
      prompt: content(text),
      image_url: `\${nodes.n${at - 1}.result.images[0].url}`,
      num_frames: 41,
    })
  if (at % 4 === 3)
    return model('std/rerank', { query: '${input.topic}', documents: [content(text), 'a', 'b'], top_n: 1 })
  const messages = [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: `About \${input.topic}: ${at < 4 ? 'begin' : `${content(at - 4)}\n${content(Math.max(0, at - 8))}`}`,
    },
  ]
  return {
    ...model('std/chat-completion', { messages, max_tokens: 64, temperature: 0 }),
    outputs: ['choices[0].message.content'],
  }
}

function definition(): string {
  const edges: object[] = []
  for (let apart = 1; edges.length < edgeCount; apart++)
    for (let to = apart; to < nodeCount && edges.length < edgeCount; to++)
      edges.push({ from: `n${to - apart}`, to: `n${to}` })
  const nodes = Object.fromEntries(Array.from({ length: nodeCount }, (_, at) => [`n${at}`, nodeOf(at)]))
  return JSON.stringify({ dag: { nodes, edges }, parameters: { topic: { type: 'string' } } })
}

const text = Buffer.from(definition())
const Body = z.object({ dag: Dag, parameters: z.record(z.string(), Parameter).nullish() })
const offer = {
  ...offerOf({ find: () => undefined }, () => false),
  model: () => ({
    enabled: true,
    tasks: ['std/chat-completion', 'slug/text-to-image', 'slug/image-to-video', 'std/rerank'],
  }),
}

const shape = (): z.output<typeof Body> => Body.parse(parseJson(text, { depth: 64, keys: mostMembers }))
function validate(): void {
  const { dag, parameters } = shape()
  const diagnostics = diagnose(dag, parameters ?? undefined, offer)
  const order = ranksOf(dependencies(dag))
  const answer = { valid: blockingOf(diagnostics).length === 0, diagnostics, order }
  if (!answer.valid || JSON.stringify(answer).length < nodeCount) throw new Error(JSON.stringify(answer).slice(0, 500))
}
function timed(work: () => void): number {
  const start = performance.now()
  work()
  return performance.now() - start
}

const first = process.argv[2]
if (first) process.stdout.write(String(timed(first === 'shape' ? shape : validate)))
else {
  const middle = (values: readonly number[]): string =>
    values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!.toFixed(1)
  const often = (times: number, work: () => number) => middle(Array.from({ length: times }, work))
  const cold = (what: string) => Number(execFileSync(process.execPath, [import.meta.filename, what]))
  often(30, () => timed(validate))
  process.stdout.write(
    `validate: ${nodeCount} nodes, ${edgeCount} edges, ${Math.round(text.length / 1024)} KiB: ` +
      `${often(50, () => timed(validate))} ms (its shape alone ${often(50, () => timed(shape))}), ` +
      `the first of a process ${often(5, () => cold('all'))} ms (its shape alone ${often(5, () => cold('shape'))}); ` +
      `load ${loadavg()[0]!.toFixed(1)}\n`,
  )
}
