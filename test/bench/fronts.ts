import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  closeBench,
  folder,
  load,
  median,
  openBench,
  ownCpuOf,
  type Requests,
  type Streams,
  start,
} from './_gateway.ts'

/**
 * Measures requests a second in sum, the processor time of all processes of infer for a request and for a chunk of a stream,
 * with 1, 2 and 4 gateway processes, and the messages between them. Prints a line for each. Run after `npm run build`:
 * `npx node test/bench/fronts.ts`, with `--seconds N` for the length of a round, `--processes 1,8` for other counts.
 */
const option = (name: string, usual: string): string => {
  const at = process.argv.indexOf(name)
  return (at < 0 ? undefined : process.argv[at + 1]) ?? usual
}
const seconds = Number(option('--seconds', '3'))
const processCounts = option('--processes', '1,2,4').split(',').map(Number)
const rounds = 3

/** The gateway processes of a server. */
const frontsOf = (pid: number): number[] =>
  readdirSync('/proc').flatMap(name => {
    try {
      const [, parent] = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return Number(parent) === pid && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('__front')
        ? [Number(name)]
        : []
    } catch {
      return []
    }
  })

try {
  const { config } = await openBench()
  for (const count of processCounts) {
    const data = join(folder, `data-${count}`)
    const own = join(folder, `infer-${count}.yaml`)
    writeFileSync(own, readFileSync(config, 'utf8').replace(/^gateway_processes: .*/, `gateway_processes: ${count}`))
    const env = { PATH: process.env.PATH, HOME: folder, INFER_DATA_DIR: data, NODE_OPTIONS: '--max-semi-space-size=8' }
    const server = await start(
      process.execPath,
      ['dist/main.cjs', 'serve', '--config', own, '--listen', '127.0.0.1:0'],
      /(http:\/\/127\.0\.0\.1:\d+)/,
      env,
    )
    const url = server.match[1]!
    const secret = readFileSync(join(data, 'root-token'), 'utf8').trim()
    const target = [Number(new URL(url).port), '/std/v1/chat/completions', secret] as const
    const fronts = frontsOf(server.pid)
    const used = () => ({ control: ownCpuOf(server.pid), fronts: fronts.reduce((sum, pid) => sum + ownCpuOf(pid), 0) })
    const counter = async (name: string) => {
      const text = await (await fetch(`${url}/metrics`)).text()
      return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
    }
    const handled = async () => {
      const text = await (await fetch(`${url}/metrics`)).text()
      return Number(
        /^infer_http_requests_total\{route="POST \/std\/v1\/chat\/completions",status="200"\} (\d+)$/m.exec(
          text,
        )?.[1] ?? 0,
      )
    }
    await load<Requests>(['requests', ...target, 64, seconds * 1000])
    const rate: number[] = []
    const request: number[] = []
    const control: number[] = []
    const chunk: number[] = []
    const messages: number[] = []
    const local: number[] = []
    for (let round = 0; round < rounds; round++) {
      const [before, requests, sent, free] = [
        used(),
        await handled(),
        await counter('infer_front_messages_total'),
        await counter('infer_front_requests_total'),
      ]
      rate.push((await load<Requests>(['requests', ...target, 64, seconds * 1000])).perSecond)
      const [after, done] = [used(), (await handled()) - requests]
      const all = after.control + after.fronts - before.control - before.fronts
      request.push((all * 1000) / done)
      control.push((after.control - before.control) / all)
      messages.push((((await counter('infer_front_messages_total')) - sent) * 1000) / done)
      local.push(((await counter('infer_front_requests_total')) - free) / done)
    }
    for (let round = 0; round < rounds; round++) {
      let before = used()
      const result = await load<Streams>(['streams', ...target, 200, seconds * 1000], () => (before = used()))
      const after = used()
      chunk.push(((after.control + after.fronts - before.control - before.fronts) * 1000) / result.chunks)
    }
    console.log(
      `${count} gateway process${count === 1 ? '' : 'es'}: ${median(rate).toFixed(0)} requests/s, ` +
        `${(1e6 / median(request)).toFixed(0)} in a second of processor time (${median(request).toFixed(0)} µs each), ` +
        `${median(chunk).toFixed(1)} µs a chunk; the first process ${(median(control) * 100).toFixed(0)} % of it; ` +
        `${(median(local) * 100).toFixed(0)} % answered by gateway processes, ${median(messages).toFixed(0)} messages per 1,000 requests`,
    )
    process.kill(server.pid, 'SIGKILL')
  }
} finally {
  closeBench()
}
