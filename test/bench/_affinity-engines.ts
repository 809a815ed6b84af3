import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Model } from '../../core/models/model.ts'
import { openAffinity } from '../../gpu/affinity/affinity.ts'
import { chooseSlot } from '../../gpu/requests/choose-slot.ts'
import { newModelState, type Resident } from '../../gpu/residency/model-state.ts'
import { newResident } from '../../gpu/residency/new-resident.ts'
import { freePort } from '../_engine.ts'

/** Requests of one engine at a time, tokens of a context, and requests that run at a time on all engines. */
const [slots, context, running] = [4, 2_048, 6]
/** Conversations, the turns of each, tokens of an answer, and the programs whose system prompts they share. */
const [conversations, turns, answerTokens, programs] = [12, 4, 8, 4]

export interface EngineRun {
  /** Tokens of prompts that were found in an engine, and those that one engine with the memory of all would have found. */
  cached: number
  ideal: number
  /** Requests of the busiest engine, as a share of the mean. */
  busiest: number
  /** Milliseconds to the first token. */
  p50: number
  p99: number
  requests: number
}

interface Message {
  role: string
  content: string
}

/** A text that no other number begins with: `count` words of a fixed sequence. */
function textOf(seed: number, count: number): string {
  let state = seed * 7_919 + 17
  const words = ['river', 'stone', 'market', 'window', 'engine', 'garden', 'letter', 'winter', 'bridge', 'paper']
  return Array.from({ length: count }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return `${words[Math.floor(state / 65_536) % words.length]}`
  }).join(' ')
}
const systemOf = (program: number): string => `You are assistant ${program}. ${textOf(1_000 + program, 200)}`

/** Starts engines of llama-server, each with one thread, as the preset does. */
async function startEngines(program: string, file: string, replicas: number) {
  const model = Model.parse({ id: 'chat', engine: 'llama-server', source: file, replicas: { min: 1, max: replicas } })
  const state = newModelState(model, { modelId: 'chat', bytes: 0, devices: 1, kind: 'cpu' }, slots)
  const started = await Promise.all(
    Array.from({ length: replicas }, async (_, at) => {
      const port = await freePort()
      const args = ['-m', file, '--host', '127.0.0.1', '--port', String(port), '-np', String(slots)]
      const sizes = [
        '-c',
        String(context * slots),
        '-t',
        '1',
        '-tb',
        '1',
        '-b',
        '64',
        '--jinja',
        '--no-ui',
        '--offline',
      ]
      const child = spawn(program, [...args, ...sizes], {
        stdio: 'ignore',
        env: { ...process.env, GOMP_SPINCOUNT: '0' },
      })
      const closed = once(child, 'close')
      const resident = newResident(state, `engine-${at}`, { devices: ['cpu'] }, 0)
      resident.state = 'ready'
      state.residents.push(resident)
      const url = `http://127.0.0.1:${port}`
      await untilHealthy(child, url)
      const own = Array.from({ length: slots }, (_, id) => ({ id, free: true, prompt: '', usedAt: 0 }))
      return { child, closed, url, resident, requests: 0, slots: own }
    }),
  )
  return {
    engines: started,
    residents: state.residents,
    stop: async (): Promise<void> => {
      for (const { child } of started) child.kill('SIGKILL')
      await Promise.all(started.map(({ closed }) => closed))
    },
  }
}

async function untilHealthy(child: ChildProcess, url: string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`llama-server ended with ${child.exitCode}.`)
    const answer = await fetch(`${url}/health`).catch(() => undefined)
    if (answer?.status === 200) return
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

/** Sends one chat. Resolves with its answer, its tokens, and the milliseconds to its first one. */
async function chat(url: string, body: string) {
  const begun = performance.now()
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  if (!answer.ok || !answer.body) throw new Error(`llama-server answered ${answer.status}: ${await answer.text()}`)
  const done = { content: '', firstMs: 0, prompt: 0, cached: 0, completion: 0 }
  let rest = ''
  for await (const bytes of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + bytes).split('\n')
    rest = lines.pop()!
    for (const line of lines.filter(one => one.startsWith('data: {'))) {
      const { choices, usage } = JSON.parse(line.slice(6)) as {
        choices: { delta: { content?: string | null } }[]
        usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details: { cached_tokens: number } }
      }
      const text = choices[0]?.delta.content
      if (text && done.firstMs === 0) done.firstMs = performance.now() - begun
      done.content += text ?? ''
      if (!usage) continue
      done.prompt = usage.prompt_tokens
      done.completion = usage.completion_tokens
      done.cached = usage.prompt_tokens_details.cached_tokens
    }
  }
  return done
}

/** How many characters two texts have in common from their start, without the bracket at the end of the first. */
function commonLength(earlier: string, text: string): number {
  const most = Math.min(earlier.length - 1, text.length)
  let at = 0
  while (at < most && earlier[at] === text[at]) at++
  return at
}

const bodyOf = (messages: readonly Message[], slot?: number): string =>
  JSON.stringify({
    ...(slot !== undefined && { id_slot: slot }),
    model: 'chat',
    messages,
    max_tokens: answerTokens,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  })

/** How many tokens a text has. */
async function tokensOf(url: string, content: string): Promise<number> {
  const answer = await fetch(`${url}/tokenize`, { method: 'POST', body: JSON.stringify({ content }) })
  return ((await answer.json()) as { tokens: number[] }).tokens.length
}

/**
 * Runs conversations that grow by turns on engines of llama-server: by the affinity of the product, or each request on the
 * least busy engine. The next turn is always that of the conversation that has waited longest, so that the engine that was
 * freed last is not its own by chance.
 */
export async function runEngines(
  choice: 'affinity' | 'least-busy',
  { program, file, replicas }: { program: string; file: string; replicas: number },
): Promise<EngineRun> {
  const { engines, residents, stop } = await startEngines(program, file, replicas)
  const affinity = openAffinity()
  const firstTokens: number[] = []
  const sum = { cached: 0, ideal: 0 }
  const known = new Set<number>()
  const leastBusy = (): Resident =>
    residents
      .filter(one => one.leases < one.slots)
      .toSorted((a, b) => a.leases - b.leases || a.lastUsedAt - b.lastUsedAt)[0]!

  /** A conversation: each call is one turn. */
  function converse(number: number): () => Promise<void> {
    const kind = number % programs
    const system = systemOf(kind)
    const messages: Message[] = [{ role: 'system', content: system }]
    let before: number | undefined
    return async () => {
      const content = `Part ${messages.length} of ${number}: ${textOf(number * 100 + messages.length, 60)}`
      messages.push({ role: 'user', content })
      before ??= known.has(kind) ? await tokensOf(engines[0]!.url, system) : 0
      const body = bodyOf(messages)
      const near = choice === 'affinity' ? affinity.choose(residents, body) : undefined
      const resident = residents.find(({ engineId }) => engineId === near?.engineId) ?? leastBusy()
      near?.given(resident.engineId)
      resident.leases++
      resident.lastUsedAt = performance.now()
      const engine = engines.find(one => one.resident === resident)!
      engine.requests++
      // As the product names the slots of an engine whose conversations are saved.
      const prompt = JSON.stringify(messages)
      const slot = chooseSlot(
        engine.slots.map(one => ({ ...one, one, length: one.prompt.length, common: commonLength(one.prompt, prompt) })),
      )!.one
      Object.assign(slot, { free: false, prompt, usedAt: performance.now() })
      const answer = await chat(engine.url, bodyOf(messages, slot.id))
      slot.free = true
      resident.leases--
      known.add(kind)
      messages.push({ role: 'assistant', content: answer.content })
      firstTokens.push(answer.firstMs)
      sum.cached += answer.cached
      sum.ideal += Math.min(before, answer.prompt)
      before = answer.prompt + answer.completion
    }
  }

  try {
    const started = Array.from({ length: conversations }, (_, at) => converse(at))
    const waiting = Array.from({ length: turns }, () => started).flat()
    const busy = new Set<() => Promise<void>>()
    const work = async () => {
      while (waiting.length > 0) {
        const at = waiting.findIndex(one => !busy.has(one))
        const [next] = waiting.splice(Math.max(0, at), 1)
        busy.add(next!)
        await next!()
        busy.delete(next!)
      }
    }
    await Promise.all(Array.from({ length: running }, work))
  } finally {
    await stop()
  }
  firstTokens.sort((a, b) => a - b)
  const requests = firstTokens.length
  const at = (share: number) => firstTokens[Math.floor(requests * share)]!
  const busiest = Math.max(...engines.map(one => one.requests)) / (requests / replicas)
  return { ...sum, busiest, p50: at(0.5), p99: at(0.99), requests }
}
