import { execFileSync } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
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
 * Compares infer with the minimal proxy in one run: processor time includes all threads, and only ratios are kept, so that
 * lines of different machines are comparable. A short mix of requests prints the processor time of a request, with a
 * warning if it is a quarter more than the same mix took in the last line of history.csv: V8 has not compiled all by then.
 * `record` goes on with 16 and 64 connections and with streams, and appends a line. Needs dist/main.cjs.
 */
const file = join(import.meta.dirname, 'history.csv')
const recording = process.argv[2] === 'record'
/** Part of the processor time of a request that it may grow without a warning: runs of one build differ by as much. */
const tolerated = 0.25

type Name = 'proxy' | 'infer'
const names: readonly Name[] = ['proxy', 'infer']

/** Returns infer's figures as parts of the proxy's, of each round. */
async function compared<Figure extends string>(
  count: number,
  measure: (name: Name) => Promise<Record<Figure, number>>,
): Promise<Record<Figure, number>[]> {
  const ratios: Record<Figure, number>[] = []
  for (let round = 0; round < count; round++) {
    const figures = {} as Record<Name, Record<Figure, number>>
    for (const name of shuffled(names)) figures[name] = await measure(name)
    const parts = Object.entries<number>(figures.infer).map(([figure, value]) => [
      figure,
      value / figures.proxy[figure as Figure],
    ])
    ratios.push(Object.fromEntries(parts) as Record<Figure, number>)
  }
  return ratios
}

/** The least time of each, of which noise takes away nothing: a median of so few rounds differs by a half between two runs. */
async function shortMix(timeOf: (name: Name) => Promise<number>): Promise<string> {
  const times: Record<Name, number[]> = { proxy: [], infer: [] }
  for (let round = 0; round < 6; round++) for (const name of shuffled(names)) times[name].push(await timeOf(name))
  return (Math.min(...times.infer) / Math.min(...times.proxy)).toFixed(3)
}

/** The median of a figure, with three digits behind the point. */
const of = <Figure extends string>(ratios: readonly Record<Figure, number>[], figure: Figure) =>
  median(ratios.map(one => one[figure])).toFixed(3)

try {
  const { proxy, config } = await openBench()
  const servers: Record<Name, Served> = {
    proxy: servedBy(proxy),
    infer: await serve('infer', resolve('dist/main.cjs'), config),
  }
  const ask = async (name: Name, connections: number, ms = 1_000) => {
    const { pid, address } = servers[name]
    const begun = cpuOf(pid)
    const { perSecond } = await load<Requests>(['requests', ...address, connections, ms])
    return { perSecond, time: (cpuOf(pid) - begun) / perSecond }
  }
  const stream = async (name: Name) => {
    const { pid, address } = servers[name]
    let begun = 0
    const { chunks } = await load<Streams>(['streams', ...address, 200, 2_000], () => (begun = cpuOf(pid)))
    return { time: (cpuOf(pid) - begun) / chunks }
  }
  // V8 compiles by the number of calls: after a time, a slow machine would still be at it.
  const warmUpEnds = performance.now() + 12_000
  for (const name of names)
    for (let sent = 0; sent < 8_000 && performance.now() < warmUpEnds; ) sent += (await ask(name, 64)).perSecond
  const short = await shortMix(async name => (await ask(name, 64, 500)).time)
  if (recording) {
    // V8's compilation is not measured: it goes on for some 100,000 requests, and for as many chunks.
    for (const name of names) for (let sent = 0; sent < 80_000; ) sent += (await ask(name, 64)).perSecond
    for (const name of names) for (let time = 0; time < 3; time++) await stream(name)
    const requests = await compared(11, name => ask(name, 64))
    const few = await compared(11, name => ask(name, 16))
    const chunks = await compared(5, stream)
    const commit = execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim()
    const date = new Date().toISOString().slice(0, 10)
    const figures = [of(few, 'perSecond'), of(requests, 'perSecond'), of(requests, 'time'), of(chunks, 'time'), short]
    const line = [date, commit, ...figures].join(',')
    appendFileSync(file, `${line}\n`)
    console.log(`bench: ${line}`)
  } else {
    const [date, commit, , , , , before] = readFileSync(file, 'utf8').trim().split('\n').at(-1)!.split(',')
    console.log(
      `bench: a request takes ${short} of the processor time of the minimal proxy, ${before} at ${commit} of ${date}`,
    )
    if (Number(short) > Number(before) * (1 + tolerated))
      console.log(`Warning: that is more than ${tolerated * 100} % above the last line of test/bench/history.csv.`)
  }
} finally {
  closeBench()
}
