import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openBench, rssMb } from './server.ts'

/**
 * Measures the memory of the server while clients send chats of 30 MB without a pause, and 15 s after the last one.
 * Prints one line, which ends with MISSED when a bar was missed; the exit code is then 1. Run:
 * `npx node test/bench/bodies.ts`, with `--callers` (concurrent clients), `--mb` (size of a body) and `--seconds`.
 */
const { values } = parseArgs({
  options: {
    callers: { type: 'string', default: '8' },
    mb: { type: 'string', default: '30' },
    seconds: { type: 'string', default: '40' },
  },
})
const [callers, mb, seconds] = [Number(values.callers), Number(values.mb), Number(values.seconds)]
const bars = { maxMb: 512, leftMb: 173 }
const bench = openBench()

try {
  const engine = await bench.script('instant.ts', [], /^(\d+)$/)
  const { pid, port, rootToken } = await bench.serve({
    models: [{ id: 'bench', engine: 'remote', url: `http://127.0.0.1:${engine.match}/v1`, concurrency: 16 }],
    limits: { min_free_disk: 0, ballast: 0 },
  })

  const body = (size: number) =>
    Buffer.from(JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'x'.repeat(size) }] }))
  const outcomes: Record<string, number> = {}
  const send = (bytes: Buffer): Promise<void> =>
    new Promise(resolve => {
      const end = (outcome: string) => {
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        resolve()
      }
      const asked = request(
        {
          port,
          host: '127.0.0.1',
          method: 'POST',
          path: '/v1/chat/completions',
          agent: false,
          headers: {
            authorization: `Bearer ${rootToken}`,
            'content-type': 'application/json',
            'content-length': bytes.length,
          },
        },
        response => void response.resume().once('end', () => end(String(response.statusCode))),
      )
      asked.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
      asked.end(bytes)
    })

  // A server that has answered what is usual is the start.
  for (let at = 0; at < 200; at++) await send(body(200))
  await delay(1_000)
  const startMb = rssMb(pid)
  for (const outcome of Object.keys(outcomes)) delete outcomes[outcome]

  let maxMb = startMb
  const watch = setInterval(() => (maxMb = Math.max(maxMb, rssMb(pid))), 20)
  const large = body(mb << 20)
  const until = performance.now() + seconds * 1_000
  const caller = async () => {
    while (performance.now() < until) {
      await send(large)
      await delay(50)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const endMb = rssMb(pid)
  await delay(15_000)
  clearInterval(watch)
  const leftMb = rssMb(pid)
  const told = Object.entries(outcomes).map(([outcome, count]) => `${outcome}: ${count}`)
  const broken = Object.keys(outcomes).some(outcome => outcome !== '200' && outcome !== '503')
  const missed = maxMb > bars.maxMb || leftMb > bars.leftMb || broken || !outcomes['200']
  console.log(
    `bodies: ${callers} chats of ${mb} MB at a time for ${seconds} s: ${told.join(', ')}; RSS ${startMb.toFixed(0)} MB before, ` +
      `at most ${maxMb.toFixed(0)} MB (bar ${bars.maxMb}), ${endMb.toFixed(0)} MB at the end, ` +
      `${leftMb.toFixed(0)} MB 15 s later (bar ${bars.leftMb})${missed ? ' MISSED' : ''}`,
  )
  if (missed) process.exitCode = 1
} finally {
  bench.close()
}
