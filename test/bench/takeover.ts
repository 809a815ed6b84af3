import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startLoad } from '../_takeover-load.ts'

/**
 * How long requests wait while one server takes over from another, again and again under load.
 * Usage: takeover.ts [times] [streams] [requests a second] [gateway processes]. Prints one line, and the
 * phases of each take-over to stderr; INFER_PROGRAM is the program, by default that from source.
 */
const [times = 20, streams = 200, perSecond = 300, processes = 1] = process.argv.slice(2).map(Number)
const root = join(import.meta.dirname, '..', '..')
const program = process.env.INFER_PROGRAM?.split(' ') ?? [process.execPath, join(root, 'cli', 'main.ts')]
const dataDir = mkdtempSync(join(tmpdir(), 'infer-takeover-'))

const engine = spawn(process.execPath, [join(root, 'test', 'fixtures', 'engine.ts'), '--port', '18793'], {
  stdio: ['ignore', 'ignore', 'inherit'],
})
writeFileSync(
  join(dataDir, 'infer.yaml'),
  `listen: 127.0.0.1:0
gateway_processes: ${processes}
limits: {min_free_disk: 1MiB, ballast: 1MiB}
models: [{id: far, engine: remote, url: 'http://127.0.0.1:18793/v1', concurrency: 1000}]
`,
)

const run = (args: string[]) => {
  const child = spawn(program[0]!, [...program.slice(1), ...args, '--data-dir', dataDir], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', piece => {
      output += String(piece)
      if (process.env.VERBOSE) process.stderr.write(piece)
    })
  return { child, output: () => output }
}

const first = run(['serve', '--log-level', 'debug'])
while (!first.output().includes('root-token')) await once(first.child.stdout, 'data')
const serverFile = () => JSON.parse(readFileSync(join(dataDir, 'server.json'), 'utf8')) as { url: string; pid: number }
const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
const load = startLoad({ url: serverFile().url, secret, model: 'far', streams, perSecond })
await delay(2_000)
const usual = load.takeSlowest()
const gaps: number[] = []
const slowest: number[] = []
const phasesOf = (text: string) => text.split('\n').filter(line => /"(Handed|Took) over"/.test(line))
try {
  for (let at = 0; at < times; at++) {
    const { child, output } = run(['serve', '--takeover'])
    const [code] = (await once(child, 'close')) as [number]
    if (code !== 0) throw new Error(output())
    await delay(1_000)
    const taken = load.takeSlowest()
    gaps.push(taken.gapMs)
    slowest.push(taken.slowestMs)
    await delay(500)
    load.takeSlowest()
  }
} finally {
  const { answered, failures } = await load.stop()
  process.stderr.write(`${phasesOf(first.output()).join('\n')}\n`)
  console.log(
    `takeover: ${times} times, ${streams} streams, ${perSecond} requests/s: ${failures.length} of ${answered + failures.length} failed; longest gap ${Math.max(...gaps)} ms, slowest request ${Math.max(...slowest)} ms (before: ${usual.gapMs}, ${usual.slowestMs} ms)`,
  )
  for (const failure of new Set(failures)) console.log(failure)
  process.kill(serverFile().pid, 'SIGTERM')
  engine.kill()
  await delay(3_000)
  rmSync(dataDir, { recursive: true, force: true })
}
