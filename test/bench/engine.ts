import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { tinyChatRandom } from '../../bin/tiny-chat.ts'

/**
 * Compares the built-in engine with node-llama-cpp alone. The model is so small that a token is nearly all overhead.
 * Measures the tokens per second of HTTP streams as a share of those of `evaluate` without HTTP, text or stop strings.
 * Both compute with one thread. Short runs alternate and the median of their ratios counts, because other programs may
 * use the machine; the processor time per token is less noisy. Usage: engine.ts [streams,streams,…] [rounds]
 */
const counts = (process.argv[2] ?? '1,4,16,64').split(',').map(Number)
const turns = Number(process.argv[3] ?? 7)
const bar = 0.9
/** Tokens of each stream in a run. */
const lengthFor = (streams: number) => Math.max(150, Math.round(1200 / streams))
const folder = mkdtempSync(join(tmpdir(), 'infer-bench-'))
const model = join(folder, 'tiny.gguf')
writeFileSync(model, tinyChatRandom())
const socket = join(folder, 'engine.sock')
const most = Math.max(...counts)
const env = { ...process.env, OMP_WAIT_POLICY: 'PASSIVE' }
const here = (name: string) => join(import.meta.dirname, name)
const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!

function start(script: string, argument: string) {
  const child = spawn(process.execPath, [script, argument], { stdio: ['pipe', 'pipe', 'pipe'], env })
  const lines = (stream: NodeJS.ReadableStream) => createInterface({ input: stream })[Symbol.asyncIterator]()
  return { child, out: lines(child.stdout), log: lines(child.stderr) }
}

const bare = start(here('bare-engine.ts'), JSON.stringify({ model, sequences: most }))
const engine = start(
  here('../fixtures/gguf-engine.ts'),
  JSON.stringify({
    model,
    id: 'tiny',
    tasks: ['std/chat-completion'],
    // As the gateway calls it.
    socket,
    threads: 1,
    parallel: most,
    context: 2048,
    gpu: 'off',
  }),
)

async function ready(log: AsyncIterator<string>): Promise<void> {
  for (;;) {
    const { value, done } = await log.next()
    if (done) throw new Error('The engine ended.')
    if (value.includes('The engine is ready')) return
  }
}

/** The processor time of a process, in microseconds, in steps of a hundredth of a second. */
function processorTime(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

/** One stream on a raw connection; resolves when its last frame is there. */
function stream(tokens: number, seed: number): Promise<void> {
  const body = JSON.stringify({
    model: 'tiny',
    messages: [{ role: 'user', content: `question ${seed}` }],
    stream: true,
    max_tokens: tokens,
    // The tokens that end a text of this model.
    logit_bias: { 2: -100, 260: -100 },
  })
  return new Promise((resolve, reject) => {
    const connection = connect(socket)
    connection.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    let tail = ''
    connection.on('data', chunk => (tail = (tail + chunk.toString('latin1')).slice(-64)))
    connection.on('error', reject)
    connection.on('close', () =>
      tail.includes('data: [DONE]') ? resolve() : reject(new Error(`A stream ended with: ${tail}`)),
    )
  })
}

try {
  await ready(engine.log)
  let seed = 0
  /** Runs either engine. `cpu` is the processor time of its process in microseconds a token. */
  async function measured(pid: number, streams: number, run: (tokens: number) => Promise<unknown>) {
    const tokens = lengthFor(streams)
    const [began, spent] = [performance.now(), processorTime(pid)]
    await run(tokens)
    const all = streams * tokens
    return { rate: (all * 1000) / (performance.now() - began), cpu: (processorTime(pid) - spent) / all }
  }
  const overHttp = (streams: number) =>
    measured(engine.child.pid!, streams, tokens =>
      Promise.all(Array.from({ length: streams }, () => stream(tokens, ++seed))),
    )
  const without = (streams: number) =>
    measured(bare.child.pid!, streams, tokens => {
      bare.child.stdin.write(`${streams} ${tokens}\n`)
      return bare.out.next()
    })
  let worst = Number.POSITIVE_INFINITY
  for (const streams of counts) {
    await Promise.all([overHttp(streams), without(streams)])
    type Measured = Awaited<ReturnType<typeof measured>>
    const pairs: { bare: Measured; http: Measured }[] = []
    for (let turn = 0; turn < turns; turn++) pairs.push({ bare: await without(streams), http: await overHttp(streams) })
    const share = median(pairs.map(({ http, bare }) => http.rate / bare.rate))
    worst = Math.min(worst, share)
    const of = (which: 'http' | 'bare', what: 'rate' | 'cpu') =>
      Math.round(median(pairs.map(pair => pair[which][what])))
    console.log(
      `${String(streams).padStart(2)} streams: ${of('http', 'rate')} tokens/s over HTTP, ${of('bare', 'rate')} bare, share ${share.toFixed(2)}; ` +
        `processor time a token ${of('http', 'cpu')} µs and ${of('bare', 'cpu')} µs`,
    )
  }
  console.log(`${worst >= bar ? 'good' : 'BELOW'}: the smallest share is ${worst.toFixed(2)}, the bar ${bar}`)
  process.exitCode = worst >= bar ? 0 : 1
} finally {
  for (const { child } of [bare, engine]) {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
}
