import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { chooseReplica } from '../../gpu/affinity/choose-replica.ts'
import { openPrefixIndex } from '../../gpu/affinity/prefix-index.ts'
import { runEngines } from './_affinity-engines.ts'

/**
 * Simulates replicas of one model on recorded conversations: the choice of the product beside the least busy engine, on the
 * same arrivals. An engine computes prompts one after another, answers side by side, and keeps what was used last. Prints
 * the share of the tokens that one engine with the memory of all would have found, the busiest engine, and the time to the
 * first token; a line ends with MISSED, and the exit code is 1, outside the bars. Run:
 * `npx node test/bench/affinity.ts trace.jsonl`, with lines `{"timestamp": ms, "input_length", "output_length", "hash_ids"}`,
 * a hash for each 512 tokens. `--busy 0.9`: share of the time in which the least busy choice computes prompts; `--memory`:
 * tokens that an engine keeps.
 *
 * The same on real engines, with conversations that grow by turns and share four system prompts:
 * `npx node test/bench/affinity.ts --engines llama-server PATH MODEL`, a program and a GGUF file. Both choices run one after the
 * other with new engines, of one thread each: on a busy machine only their ratios say something.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    engines: { type: 'string' },
    replicas: { type: 'string', default: '4' },
    busy: { type: 'string', default: '0.9' },
    memory: { type: 'string', default: '2000000' },
  },
})
const replicas = Number(values.replicas)
/** Tokens that an engine keeps. */
const memory = Number(values.memory)
const blockTokens = 512
/** Tokens a second of a prompt, of an answer, and the answers that an engine generates side by side. */
const [promptRate, answerRate, slots] = [8_000, 40, 64]
const bars = { cached: 0.8, busiest: 1.25, firstToken: 0.6 }

interface Arrival {
  timestamp: number
  input_length: number
  output_length: number
  hash_ids: number[]
}

/** What an engine keeps: the blocks that were used last. */
function openCache(tokens: number) {
  const kept = new Set<number>()
  return {
    find(blocks: readonly number[]): number {
      const missing = blocks.findIndex(block => !kept.has(block))
      return missing < 0 ? blocks.length : missing
    },
    use(blocks: readonly number[]): void {
      for (const block of blocks.toReversed()) {
        kept.delete(block)
        kept.add(block)
      }
      for (const oldest of kept) {
        if (kept.size * blockTokens <= tokens) break
        kept.delete(oldest)
      }
    },
  }
}

function run(choice: 'affinity' | 'least-busy', arrivals: readonly Arrival[], stretch: number) {
  const spanMs = arrivals.at(-1)!.timestamp
  const index = openPrefixIndex(Math.floor(memory / blockTokens))
  const engines = Array.from({ length: replicas }, (_, at) => ({
    engineId: String(at),
    cache: openCache(memory),
    /** When it has computed the prompts that it has. */
    promptsUntil: 0,
    ends: [] as number[],
    requests: 0,
    computedMs: 0,
  }))
  let cached = 0
  const firstTokens: number[] = []
  for (const { timestamp, input_length: length, output_length: answer, hash_ids: blocks } of arrivals) {
    const now = timestamp * stretch
    for (const engine of engines) engine.ends = engine.ends.filter(end => end > now)
    const candidates = engines.map(({ engineId, ends }) => ({
      engineId,
      leases: ends.length,
      slots,
      // Blocks of the trace are five of the product.
      common: choice === 'affinity' ? index.common(engineId, blocks) * 5 : 0,
      known: choice === 'affinity' ? index.size(engineId) : 0,
    }))
    const engine = engines[Number(chooseReplica(candidates)?.engineId ?? 0)]!
    index.add(engine.engineId, blocks)
    const found = Math.min(length, engine.cache.find(blocks) * blockTokens)
    engine.cache.use(blocks)
    const ms = ((length - found) / promptRate) * 1000
    engine.promptsUntil = Math.max(now, engine.promptsUntil) + ms
    engine.ends.push(engine.promptsUntil + (answer / answerRate) * 1000)
    engine.requests++
    engine.computedMs += ms
    cached += found
    firstTokens.push(engine.promptsUntil - now)
  }
  firstTokens.sort((a, b) => a - b)
  const busiest = Math.max(...engines.map(({ requests }) => requests)) / (arrivals.length / replicas)
  const busy = engines.reduce((sum, { computedMs }) => sum + computedMs, 0) / replicas / (spanMs * stretch)
  const at = (share: number) => firstTokens[Math.floor(firstTokens.length * share)]!
  return { cached, busiest, busy, p50: at(0.5), p99: at(0.99) }
}

function simulate(trace: string) {
  const lines = readFileSync(trace, 'utf8').trimEnd().split('\n')
  const arrivals = lines.map(line => JSON.parse(line) as Arrival)
  const whole = openCache(memory * replicas)
  let ideal = 0
  for (const { input_length: length, hash_ids: blocks } of arrivals) {
    ideal += Math.min(length, whole.find(blocks) * blockTokens)
    whole.use(blocks)
  }
  const stretch = run('least-busy', arrivals, 1).busy / Number(values.busy)
  const runOf = (choice: Parameters<typeof run>[0]) => ({
    ideal,
    requests: arrivals.length,
    ...run(choice, arrivals, stretch),
  })
  return { near: runOf('affinity'), plain: runOf('least-busy') }
}

async function measure(program: string, file: string) {
  const options = { program, file, replicas }
  const plain = await runEngines('least-busy', options)
  return { plain, near: await runEngines('affinity', options) }
}

const [first, second] = positionals
const { near, plain } = values.engines === undefined ? simulate(first!) : await measure(first!, second!)
const missed =
  near.cached / near.ideal < bars.cached || near.busiest > bars.busiest || near.p50 / plain.p50 > bars.firstToken
const text = ({ cached, ideal, busiest, p50, p99, ...of }: typeof near) => {
  const busy = 'busy' in of ? `, ${Math.round((of.busy as number) * 100)} % busy` : ''
  return `${(cached / ideal).toFixed(2)} of the ideal, busiest ${busiest.toFixed(2)} of the mean${busy}, first token p50 ${p50.toFixed(0)} ms, p99 ${(p99 / 1000).toFixed(1)} s`
}
console.log(
  `affinity: ${replicas} ${values.engines ?? 'simulated'} replicas, ${near.requests} requests: ${text(near)} (least busy: ${text(plain)}; p50 ${(near.p50 / plain.p50).toFixed(2)})${missed ? ' MISSED' : ''}`,
)
process.exitCode = missed ? 1 : 0
