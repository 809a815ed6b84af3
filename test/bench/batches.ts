import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openBench, rssMb } from './server.ts'

/**
 * Measures a batch of 50,000 lines with an engine that answers at once: memory against the same server after single calls
 * of that kind, and whether the output has each line exactly once after three `kill -9`. Then measures how long calls wait beside a batch whose lines
 * take 50 ms each. Prints one line, which ends with MISSED when a bar was missed; the exit code is then 1. Run:
 * `npx node test/bench/batches.ts`, with `--lines` and `--kills`.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { lines: { type: 'string', default: '50000' }, kills: { type: 'string', default: '3' } },
})
const serviceMs = 50
const slots = 4
const memoryBar = 50
/** Calls before the batch. */
const singleCalls = 10_000

/** An engine that answers after as many milliseconds as the request has `max_tokens`. Prints its port. */
function serveEngine(): void {
  const usage = { prompt_tokens: 12, completion_tokens: 14, total_tokens: 26 }
  const choices = [
    { index: 0, message: { role: 'assistant', content: 'An answer of ordinary length.' }, finish_reason: 'stop' },
  ]
  const answer = JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'bench',
    choices,
    usage,
  })
  const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
    let text = ''
    req.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    req.on('end', () => {
      const send = () => void res.writeHead(200, { 'content-type': 'application/json' }).end(answer)
      const ms = Number(/"max_tokens":(\d+)/.exec(text)?.[1] ?? 1) - 1
      if (ms > 0) setTimeout(send, ms)
      else send()
    })
  })
  server.listen(0, '127.0.0.1', () => console.log((server.address() as { port: number }).port))
}

interface Batch {
  id: string
  status: string
  request_counts: { total: number; completed: number; failed: number }
  output_file_id: string | null
}

async function measure(lines: number, kills: number): Promise<void> {
  const bench = openBench()
  try {
    const { match: engine } = await bench.script('batches.ts', ['engine'], /^(\d+)$/)
    const model = { id: 'bench', engine: 'remote', url: `http://127.0.0.1:${engine}/v1`, concurrency: slots }
    const config = {
      models: [{ ...model, tasks: ['std/chat-completion'] }],
      limits: { min_free_disk: 0, ballast: 0 },
    }
    let server = await bench.serve(config)
    const send = (path: string, init: RequestInit = {}) =>
      fetch(`http://127.0.0.1:${server.port}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${server.rootToken}`, ...(init.headers as object) },
      })
    const post = (path: string, body: object) =>
      send(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    const chat = (at: number, max_tokens: number) => ({
      model: 'bench',
      messages: [{ role: 'user', content: `Question ${at}: ${'why is it so? '.repeat(20)}` }],
      max_tokens,
    })

    async function start(count: number, max_tokens: number): Promise<Batch> {
      const text = Array.from({ length: count }, (_, at) =>
        JSON.stringify({
          custom_id: `line ${at}`,
          method: 'POST',
          url: '/v1/chat/completions',
          body: chat(at, max_tokens),
        }),
      ).join('\n')
      const form = new FormData()
      form.set('purpose', 'batch')
      form.set('file', new Blob([text]), 'in.jsonl')
      const { id } = (await (await send('/std/v1/files', { method: 'POST', body: form })).json()) as { id: string }
      const wanted = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }
      return (await (await post('/std/v1/batches', wanted)).json()) as Batch
    }
    const read = async (id: string) => (await (await send(`/std/v1/batches/${id}`)).json()) as Batch

    // The server collects the garbage of its start after two seconds.
    await delay(4_000)
    const idle = rssMb(server.pid)
    // What any work of this kind needs: the code of the path, compiled, and a young generation at its full size.
    let calls = 0
    await Promise.all(
      Array.from({ length: slots }, async () => {
        while (calls++ < singleCalls) await (await post('/std/v1/chat/completions', chat(calls, 1))).text()
      }),
    )
    const warm = rssMb(server.pid)
    const startedAt = performance.now()
    let batch = await start(lines, 1)
    let peak = 0
    for (let killed = 0; batch.status !== 'completed'; ) {
      await delay(100)
      peak = Math.max(peak, rssMb(server.pid))
      batch = await read(batch.id)
      if (batch.status === 'failed') throw new Error(`The batch failed: ${JSON.stringify(batch)}`)
      if (killed < kills && batch.request_counts.completed > (lines * (killed + 1)) / (kills + 1)) {
        killed++
        const exited = bench.exit(server.pid)
        process.kill(server.pid, 'SIGKILL')
        await exited
        server = await bench.serve(config)
      }
    }
    const seconds = (performance.now() - startedAt) / 1000
    const output = await (await send(`/std/v1/files/${batch.output_file_id}/content`)).text()
    const ids = output
      .trimEnd()
      .split('\n')
      .map(line => (JSON.parse(line) as { custom_id: string }).custom_id)
    const isExact = ids.length === lines && new Set(ids).size === lines

    const slow = await start(2_000, serviceMs + 1)
    while ((await read(slow.id)).request_counts.completed < slots) await delay(20)
    const waits: number[] = []
    for (let at = 0; at < 200; at++) {
      const sentAt = performance.now()
      await (await post('/std/v1/chat/completions', chat(at, serviceMs + 1))).text()
      waits.push(performance.now() - sentAt - serviceMs)
      await delay(7)
    }
    if ((await read(slow.id)).status !== 'in_progress') throw new Error('The batch ended before the calls did.')
    waits.sort((a, b) => a - b)
    const p99 = waits[Math.floor(waits.length * 0.99)]!
    const missed = peak - warm > memoryBar || !isExact || p99 > serviceMs
    console.log(
      `batches: ${lines} lines in ${seconds.toFixed(1)} s with ${kills} kills, ${isExact ? 'each once' : `${ids.length} in the output, ${new Set(ids).size} different`}; ` +
        `memory idle ${idle.toFixed(0)} MiB, after ${singleCalls} calls ${warm.toFixed(0)}, with the batch ${peak.toFixed(0)} at most (+${(peak - warm).toFixed(0)}, bar ${memoryBar}); ` +
        `calls beside lines of ${serviceMs} ms wait p50 ${waits[100]!.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms (bar ${serviceMs})${missed ? ' MISSED' : ''}`,
    )
    if (missed) process.exitCode = 1
  } finally {
    bench.close()
  }
}

if (positionals[0] === 'engine') serveEngine()
else await measure(Number(values.lines), Number(values.kills))
