import { setTimeout as delay } from 'node:timers/promises'
import { median, type Print, quantile } from './figures.ts'
import type { Platform } from './platform.ts'
import { type Kind, keepSending, send } from './requests.ts'

const serviceMs = 200
/** The longest that one figure may take; at least `fewest` rounds are run. */
const longestMs = 25_000
const fewest = 3
const models = { chat: 'waiting-chats', job: 'waiting-jobs' } as const
export const waitingModels = Object.values(models)

/**
 * How long organization B waits for one answer while organization A always has 40 requests waiting for the same slot,
 * for chats and jobs on both sides. B is either new each time or sends again as soon as it has its answer.
 */
export async function measureWaiting(
  platform: Platform,
  { rounds, print }: { rounds: number; print: Print },
): Promise<void> {
  const b = await platform.organization('b')
  const alone: Record<Kind, number[]> = { chat: [], job: [] }
  for (let round = 0; round < 5; round++)
    for (const kind of ['chat', 'job'] as const)
      alone[kind].push(await send(kind, platform, { model: models[kind], ms: serviceMs }, b))

  for (const behind of ['chat', 'job'] as const) {
    const a = await platform.organization(`a-${behind}`)
    const work = { model: models[behind], ms: serviceMs }
    // One is served and 40 wait.
    const load = keepSending(behind, platform, work, a, 41)
    while (((await platform.used(work.model)).organizations[a.name]?.answers ?? 0) < 5) await delay(serviceMs)
    for (const kind of ['chat', 'job'] as const)
      for (const who of ['new', 'same'] as const) {
        const name = `${who}-${kind}-behind-${behind}`
        let by = await platform.organization(name)
        const times: number[] = []
        const began = performance.now()
        while (times.length < rounds && (times.length < fewest || performance.now() - began < longestMs)) {
          if (who === 'new') {
            by = await platform.organization(`${name}-${times.length}`)
            await delay(Math.random() * serviceMs)
          }
          times.push(await Promise.race([send(kind, platform, work, by), load.failed]))
        }
        const waited = median(times)
        print(
          `${kind} behind ${behind}s, ${who === 'new' ? 'a new organization each time' : 'the same organization again'}: ` +
            `${waited.toFixed(0)} ms = ${(waited / serviceMs).toFixed(1)} service times (bar 3), most ${quantile(times, 1).toFixed(0)} ms, ` +
            `median of ${times.length}; ${median(alone[kind]).toFixed(0)} ms when nobody waits`,
          waited <= 3 * serviceMs,
        )
      }
    load.stop()
    const { maxAtOnce } = await platform.used(work.model)
    if (maxAtOnce > 1) throw new Error(`${maxAtOnce} requests ran at once on the one slot of ${work.model}`)
  }
}
