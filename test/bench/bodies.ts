import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'

/**
 * What large bodies do to the memory of the server: callers that send chats of 30 MB without a pause, and then nothing for
 * 15 s. Prints one line, which ends with MISSED when a bar was missed; the exit code is 1 then. Run:
 * `npx node test/bench/bodies.ts`, with `--callers` at a time, `--mb` a body and `--seconds`. Uses build/infer when it is
 * there, else dist/main.cjs.
 */
const { values } = parseArgs({
  options: {
    callers: { type: 'string', default: '8' },
    mb: { type: 'string', default: '30' },
    seconds: { type: 'string', default: '40' },
  },
})
const [callers, mb, seconds] = [Number(values.callers), Number(values.mb), Number(values.seconds)]
const bars = { mostMb: 512, leftPart: 1.2 }
const folder = mkdtempSync(join(tmpdir(), 'infer-bench-'))
const children: ChildProcess[] = []

/** Starts a program and resolves with the first match in its output. */
function start(file: string, args: string[], wanted: RegExp, env: NodeJS.ProcessEnv): Promise<[number, string]> {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  children.push(child)
  return new Promise((resolve, reject) => {
    const look = (line: string) => {
      const match = wanted.exec(line)
      if (match) resolve([child.pid!, match[1]!])
    }
    createInterface({ input: child.stdout }).on('line', look)
    createInterface({ input: child.stderr }).on('line', look)
    child.once('exit', code => reject(new Error(`${file} ${args.join(' ')} exited (${code})`)))
  })
}

const rssMb = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

try {
  const here = (name: string) => join(import.meta.dirname, name)
  const [, enginePort] = await start(process.execPath, [here('instant.ts')], /^(\d+)$/, process.env)
  const config = join(folder, 'infer.yaml')
  const model = { id: 'bench', engine: 'remote', url: `http://127.0.0.1:${enginePort}/v1`, concurrency: 16 }
  writeFileSync(config, stringify({ models: [model], limits: { min_free_disk: 0, ballast: 0 } }))
  const [file, before] = existsSync('build/infer')
    ? ['build/infer', []]
    : [process.execPath, ['--max-semi-space-size=8', 'dist/main.cjs']]
  const env = { PATH: process.env.PATH, HOME: folder, INFER_DATA_DIR: join(folder, 'data') }
  const serving = [...before, 'serve', '--config', config, '--listen', '127.0.0.1:0']
  const [pid, port] = await start(file, serving, /http:\/\/127\.0\.0\.1:(\d+)/, env)
  const secret = readFileSync(join(folder, 'data/root-token'), 'utf8').trim()

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
            authorization: `Bearer ${secret}`,
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

  let mostMb = startMb
  const watch = setInterval(() => (mostMb = Math.max(mostMb, rssMb(pid))), 20)
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
  const missed = mostMb > bars.mostMb || leftMb > startMb * bars.leftPart || broken || !outcomes['200']
  console.log(
    `bodies: ${callers} chats of ${mb} MB at a time for ${seconds} s: ${told.join(', ')}; RSS ${startMb.toFixed(0)} MB before, ` +
      `at most ${mostMb.toFixed(0)} MB (bar ${bars.mostMb}), ${endMb.toFixed(0)} MB at the end, ` +
      `${leftMb.toFixed(0)} MB 15 s later (bar ${(startMb * bars.leftPart).toFixed(0)})${missed ? ' MISSED' : ''}`,
  )
  if (missed) process.exitCode = 1
} finally {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}
