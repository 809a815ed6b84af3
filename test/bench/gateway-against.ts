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
 * the noise of the machine meets all. Prints one line. Run: `npx node test/bench/gateway-against.ts OLDER/dist/main.cjs
 * [rounds] [seconds]` after `npm run build` here and there.
 */
const [older, rounds = '21', seconds = '1'] = process.argv.slice(2)
if (!older) throw new Error('Name the dist/main.cjs of the build to compare with.')
const length = Number(seconds) * 1000
const names = ['proxy', 'before', 'now'] as const
type Name = (typeof names)[number]

const perName = (): Record<Name, number[]> => ({ proxy: [], before: [], now: [] })
const ratio = (of: number[], to: number[]) => median(of.map((value, at) => value / to[at]!)).toFixed(3)

try {
  const { proxy, config } = await openBench()
  const servers: Record<Name, Served> = {
    proxy: servedBy(proxy),
    before: await serve('before', resolve(older), config),
    now: await serve('now', resolve('dist/main.cjs'), config),
  }
  const ask = (name: Name) => load<Requests>(['requests', ...servers[name].address, 64, length])
  // V8's compilation is not measured.
  for (let time = 0; time < 3; time++) for (const name of names) await ask(name)
  const [rate, used, chunk] = [perName(), perName(), perName()]
  for (let round = 0; round < Number(rounds); round++)
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const begun = cpuOf(servers[name].pid)
      const { perSecond } = await ask(name)
      rate[name].push(perSecond)
      used[name].push((cpuOf(servers[name].pid) - begun) / perSecond)
    }
  for (let round = 0; round < Number(rounds) / 3; round++)
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      let begun = 0
      const { chunks } = await load<Streams>(
        ['streams', ...servers[name].address, 200, length * 2],
        () => (begun = cpuOf(servers[name].pid)),
      )
      chunk[name].push((cpuOf(servers[name].pid) - begun) / chunks)
    }
  const rates = rate.now.map((value, at) => value / rate.before[at]!).toSorted((a, b) => a - b)
  console.log(
    `gateway: ${ratio(rate.before, rate.proxy)} of the proxy before, ${ratio(rate.now, rate.proxy)} now; now ÷ before: ` +
      `requests/s ${ratio(rate.now, rate.before)} (${rates[0]!.toFixed(2)} to ${rates.at(-1)!.toFixed(2)} in ${rounds} rounds), ` +
      `processor time of a request ${ratio(used.now, used.before)}, of a chunk ${ratio(chunk.now, chunk.before)}`,
  )
} finally {
  closeBench()
}
