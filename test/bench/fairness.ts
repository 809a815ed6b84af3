import { parseArgs } from 'node:util'
import { backlogModels, measureBacklog } from './fairness/backlog.ts'
import type { Print } from './fairness/figures.ts'
import { openPlatform } from './fairness/platform.ts'
import { measureShares, shareModels } from './fairness/shares.ts'
import { measureWaiting, waitingModels } from './fairness/waiting.ts'

/**
 * Measures over HTTP how fairly organizations share one slot: they send chats and durable jobs to a server that runs from
 * source, and the engine counts its working time for each of them. Prints one line per figure and takes about four
 * minutes. A line ends with MISSED when its bar was missed; the exit code is then 1. Run:
 * `npx node test/bench/fairness.ts`, with `--parts waiting,shares,backlog` for some of them, `--rounds` for the first,
 * `--seconds` for the second, `--jobs` and `--calls` for the third.
 */
const { values } = parseArgs({
  options: {
    parts: { type: 'string', default: 'waiting,shares,backlog' },
    rounds: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '60' },
    jobs: { type: 'string', default: '10000' },
    calls: { type: 'string', default: '300' },
  },
})
let missed = 0
const print: Print = (line, kept = true) => {
  if (!kept) missed++
  console.log(`fairness: ${line}${kept ? '' : ' MISSED'}`)
}
const measurements: Record<string, (platform: Awaited<ReturnType<typeof openPlatform>>) => Promise<void>> = {
  waiting: platform => measureWaiting(platform, { rounds: Number(values.rounds), print }),
  shares: platform => measureShares(platform, { seconds: Number(values.seconds), print }),
  backlog: platform => measureBacklog(platform, { jobs: Number(values.jobs), calls: Number(values.calls), print }),
}

await using platform = await openPlatform([...waitingModels, ...shareModels, ...backlogModels])
for (const part of values.parts.split(',')) {
  const measure = measurements[part]
  if (!measure) throw new Error(`There is no part '${part}'. Known: ${Object.keys(measurements).join(', ')}.`)
  await measure(platform)
}
if (missed > 0) process.exitCode = 1
