import { resolve } from 'node:path'
import {
  closeBench,
  cpuOf,
  load,
  median,
  openBench,
  type Requests,
  type Served,
  type Streams,
  serve,
  servedBy,
} from './_gateway.ts'

/**
 * Compares the path of a chat in two builds: the same requests go to both and to a minimal proxy in alternation, so that
 * the noise of the machine meets all. Each build is started several times, because starts of one build differ by more
 * than most changes: the range of the starts is printed beside the median. Prints one line. Run: `npx node
 * test/bench/gateway-against.ts OLDER/dist/main.cjs [starts] [rounds of each]` after `npm run build` here and there.
 */
const [older, starts = '4', rounds = '7'] = process.argv.slice(2)
if (!older) throw new Error('Name the dist/main.cjs of the build to compare with.')
const names = ['proxy', 'before', 'now'] as const
type Name = (typeof names)[number]
/** Requests after which V8 has compiled nearly all of the path. */
const warmUp = 30_000

const perName = (): Record<Name, number[]> => ({ proxy: [], before: [], now: [] })
const ratios = (of: number[], to: number[]) => of.map((value, at) => value / to[at]!)

/** What one start of each build took: of the proxy's requests, and of the time of the older build. */
async function compareOnce(proxy: Served, open: (name: 'before' | 'now') => Promise<Served>) {
  const servers: Record<Name, Served> = { proxy, before: await open('before'), now: await open('now') }
  const ask = (name: Name) => load<Requests>(['requests', ...servers[name].address, 64, 1000])
  for (const name of names) for (let sent = 0; sent < warmUp; ) sent += (await ask(name)).perSecond
  const [rate, used, chunk] = [perName(), perName(), perName()]
  const inTurn = (round: number) => (round % 2 === 0 ? names : names.toReversed())
  for (let round = 0; round < Number(rounds); round++)
    for (const name of inTurn(round)) {
      const begun = cpuOf(servers[name].pid)
      const { perSecond } = await ask(name)
      rate[name].push(perSecond)
      used[name].push((cpuOf(servers[name].pid) - begun) / perSecond)
    }
  for (let round = 0; round < 3; round++)
    for (const name of inTurn(round)) {
      let begun = 0
      const { chunks } = await load<Streams>(
        ['streams', ...servers[name].address, 200, 2000],
        () => (begun = cpuOf(servers[name].pid)),
      )
      chunk[name].push((cpuOf(servers[name].pid) - begun) / chunks)
    }
  for (const name of ['before', 'now'] as const) process.kill(servers[name].pid, 'SIGKILL')
  return {
    before: median(ratios(rate.before, rate.proxy)),
    now: median(ratios(rate.now, rate.proxy)),
    rate: median(ratios(rate.now, rate.before)),
    request: median(ratios(used.now, used.before)),
    chunk: median(ratios(chunk.now, chunk.before)),
  }
}

try {
  const { proxy, config } = await openBench()
  const files = { before: resolve(older), now: resolve('dist/main.cjs') }
  const all: Awaited<ReturnType<typeof compareOnce>>[] = []
  for (let time = 0; time < Number(starts); time++) {
    all.push(await compareOnce(servedBy(proxy), name => serve(`${name}-${time}`, files[name], config)))
    console.error(`start ${time + 1} of ${starts}: ${JSON.stringify(all.at(-1))}`)
  }
  const of = (figure: keyof (typeof all)[number]) => {
    const values = all.map(one => one[figure]).toSorted((a, b) => a - b)
    return `${median(values).toFixed(3)} (${values[0]!.toFixed(2)} to ${values.at(-1)!.toFixed(2)})`
  }
  console.log(
    `gateway, ${starts} starts: ${of('before')} of the proxy before, ${of('now')} now; now ÷ before: requests/s ${of('rate')}, ` +
      `processor time of a request ${of('request')}, of a chunk ${of('chunk')}`,
  )
} finally {
  closeBench()
}
