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
  shuffled,
} from './_gateway.ts'

/**
 * Compares the path of a chat in two builds: the same requests go to both and to a minimal proxy, in short turns of random
 * order, so that the noise of the machine meets all. In a fixed order the same build was up to a half slower than itself,
 * by what came before it. Each build is started several times, because starts of one build differ. Beside each median is
 * the range that holds nine of ten medians of turns drawn again: a change within it is not known to be one. Prints one
 * line. Run: `npx node test/bench/gateway-against.ts OLDER/dist/main.cjs [starts] [rounds of each]` after `npm run build`
 * here and there.
 */
const [older, starts = '3', rounds = '16'] = process.argv.slice(2)
if (!older) throw new Error('Name the dist/main.cjs of the build to compare with.')
const names = ['proxy', 'before', 'now'] as const
type Name = (typeof names)[number]
/** Requests after which V8 has compiled nearly all of the path. */
const warmUp = 30_000
const turnMs = 400

/** What one round measured of each. */
type Round = Record<Name, number>
const emptyRound = (): Round => ({ proxy: 0, before: 0, now: 0 })

/** The rounds of all starts. */
const measured = { rate: [] as Round[], used: [] as Round[], chunk: [] as Round[] }

async function measure(proxy: Served, open: (name: 'before' | 'now') => Promise<Served>): Promise<void> {
  const servers = { proxy } as Record<Name, Served>
  // The one that is started first was the slower one more often.
  for (const name of shuffled(['before', 'now'] as const)) servers[name] = await open(name)
  const ask = (name: Name, ms: number) => load<Requests>(['requests', ...servers[name].address, 64, ms])
  for (const name of shuffled(names)) for (let sent = 0; sent < warmUp; ) sent += (await ask(name, 1000)).perSecond
  for (let round = 0; round < Number(rounds); round++) {
    const [rate, used] = [emptyRound(), emptyRound()]
    for (const name of shuffled(names)) {
      const begun = cpuOf(servers[name].pid)
      rate[name] = (await ask(name, turnMs)).perSecond
      used[name] = (cpuOf(servers[name].pid) - begun) / rate[name]
    }
    measured.rate.push(rate)
    measured.used.push(used)
  }
  for (let round = 0; round < Number(rounds) / 4; round++) {
    const chunk = emptyRound()
    for (const name of shuffled(names)) {
      let begun = 0
      const { chunks } = await load<Streams>(
        ['streams', ...servers[name].address, 200, 2000],
        () => (begun = cpuOf(servers[name].pid)),
      )
      chunk[name] = (cpuOf(servers[name].pid) - begun) / chunks
    }
    measured.chunk.push(chunk)
  }
  for (const name of ['before', 'now'] as const) process.kill(servers[name].pid, 'SIGKILL')
}

/** The median of one as a part of another, and the range of nine of ten medians of rounds drawn again. */
function part(rounds: readonly Round[], of: Name, to: Name): string {
  const ratios = rounds.map(round => round[of] / round[to])
  const drawn = () => median(ratios.map(() => ratios[Math.floor(Math.random() * ratios.length)]!))
  const medians = Array.from({ length: 1_000 }, drawn).toSorted((a, b) => a - b)
  return `${median(ratios).toFixed(3)} (${medians[50]!.toFixed(2)} to ${medians[950]!.toFixed(2)})`
}

try {
  const { proxy, config } = await openBench()
  const files = { before: resolve(older), now: resolve('dist/main.cjs') }
  for (let time = 0; time < Number(starts); time++) {
    await measure(servedBy(proxy), name => serve(`${name}-${time}`, files[name], config))
    console.error(
      `start ${time + 1} of ${starts}: requests/s now ÷ before ${part(measured.rate, 'now', 'before')} so far`,
    )
  }
  const { rate, used, chunk } = measured
  console.log(
    `gateway, ${starts} starts: ${part(rate, 'before', 'proxy')} of the proxy before, ${part(rate, 'now', 'proxy')} now; ` +
      `now ÷ before: requests/s ${part(rate, 'now', 'before')}, processor time of a request ` +
      `${part(used, 'now', 'before')}, of a chunk ${part(chunk, 'now', 'before')}`,
  )
} finally {
  closeBench()
}
