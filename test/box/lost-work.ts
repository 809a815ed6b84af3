import { until } from '../e2e/_home.ts'
import type { Box } from './box.ts'

/** Waits for the end of all acknowledged work. Returns what is wrong with it, by its id. */
export async function lostWork(box: Box, withinMs: number): Promise<ReadonlyMap<string, string>> {
  const lost = new Map<string, string>()
  const open = new Set(box.acknowledged)
  box.say(`${open.size} pieces of acknowledged work are checked`)
  const allEnded = async () => {
    for (const one of open) {
      const wrong = await one.check().catch((cause: unknown) => (cause as Error).message)
      if (wrong === undefined) continue
      open.delete(one)
      if (wrong !== null) lost.set(one.id, wrong)
    }
    return open.size === 0
  }
  await until('the end of all acknowledged work', allEnded, withinMs).catch(() => {
    for (const { id } of open) lost.set(id, `it has not ended ${withinMs / 1_000} s after the last request`)
  })
  return lost
}
