import type { Launcher } from './launcher.ts'

/** Starts each launch once at a time: a call that comes while it is being started gets the same result. */
export function singleStarts(start: Launcher['start']) {
  const running = new Map<string, Promise<void>>()
  return {
    start(this: void, ...given: Parameters<Launcher['start']>): Promise<void> {
      const [{ launchId }] = given
      const starting = running.get(launchId) ?? start(...given).finally(() => running.delete(launchId))
      running.set(launchId, starting)
      return starting
    },
    /** Resolves when the launch is not being started any more, however that has ended. */
    settled: async (launchId: string): Promise<void> => await running.get(launchId)?.catch(() => {}),
  }
}
