import { execFileSync } from 'node:child_process'
import { loadavg } from 'node:os'
import { z } from 'zod'
import { Dag, maxMembers, Parameter } from '../../core/dag/definition.ts'
import { parseBoundedJson } from '../../core/json.ts'
import { surveyInTimeSlices } from '../../core/workflows/diagnose.ts'
import { blockingOf } from '../../core/workflows/diagnostics.ts'
import { offerOf } from '../../core/workflows/offer.ts'

/**
 * Measures the validation of a definition with 200 nodes and 1,000 edges, from its JSON text to the answer of
 * POST /api/workflows/validate: the median of many, and the first one in a process that has loaded all code. Compares with
 * parsing and checking only the schema in the same run. Prints one line.
 */
const [nodeCount, edgeCount] = [200, 1_000]

const content = (node: number) => `\${nodes.n${node}.result.choices[0].message.content}`
/** Nodes of four kinds that refer to a parameter and to earlier nodes. */
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
  ...offerOf({ all: () => [], find: () => undefined, catalog: () => new Map() }, () => false),
  model: (id: string) => ({
    id,
    enabled: true,
    extraParams: [],
    resolutions: undefined,
    generationDefaults: undefined,
    voices: undefined,
    voiceAliases: {},
    tasks: ['std/chat-completion', 'slug/text-to-image', 'slug/image-to-video', 'std/rerank'],
  }),
}

const shape = (): z.output<typeof Body> => Body.parse(parseBoundedJson(text, { depth: 64, keys: maxMembers }))
async function validate(): Promise<void> {
  const { dag, parameters } = shape()
  const { diagnostics, order } = await surveyInTimeSlices(dag, parameters ?? undefined, offer)
  const answer = { valid: blockingOf(diagnostics).length === 0, diagnostics, order }
  if (!answer.valid || JSON.stringify(answer).length < nodeCount) throw new Error(JSON.stringify(answer).slice(0, 500))
}
/** Milliseconds, and the longest time in which the loop came to nothing else. */
async function timed(work: () => unknown): Promise<{ whole: number; stretch: number }> {
  let stretch = 0
  let over = false
  let turn = performance.now()
  const note = () => {
    const now = performance.now()
    stretch = Math.max(stretch, now - turn)
    turn = now
    if (!over) setImmediate(note)
  }
  setImmediate(note)
  const start = performance.now()
  await work()
  const whole = performance.now() - start
  over = true
  await new Promise(resolve => setImmediate(resolve))
  return { whole, stretch }
}

const first = process.argv[2]
if (first) {
  globalThis.gc?.()
  process.stdout.write(JSON.stringify(await timed(first === 'shape' ? shape : validate)))
} else {
  type Times = { whole: number; stretch: number }
  const middle = (values: readonly number[]): string =>
    values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!.toFixed(1)
  const often = async (times: number, work: () => Times | Promise<Times>) => {
    const found: Times[] = []
    for (let time = 0; time < times; time++) found.push(await work())
    return { whole: middle(found.map(one => one.whole)), stretch: middle(found.map(one => one.stretch)) }
  }
  const child = (what: string): Times =>
    JSON.parse(execFileSync(process.execPath, ['--expose-gc', import.meta.filename, what], { encoding: 'utf8' }))
  await often(50, () => timed(validate))
  const [warm, warmShape] = [await often(50, () => timed(validate)), await often(50, () => timed(shape))]
  const [cold, coldShape] = [await often(5, () => child('all')), await often(5, () => child('shape'))]
  process.stdout.write(
    `validate: ${nodeCount} nodes, ${edgeCount} edges, ${Math.round(text.length / 1024)} KiB: ${warm.whole} ms, ` +
      `at most ${warm.stretch} of them in one piece (its shape alone ${warmShape.whole} ms); the first of a process ` +
      `${cold.whole} ms, ${cold.stretch} in one piece (its shape alone ${coldShape.whole} ms); ` +
      `load ${loadavg()[0]!.toFixed(1)}\n`,
  )
}
