import type { Launcher, ProcessExit } from './launcher.ts'

/** Launcher for engines that run elsewhere: it uses their address, stops no process and has no logs. */
export function openRemoteLauncher(): Launcher {
  const open = new Map<string, { modelId: string; startedAt: number; exited: PromiseWithResolvers<ProcessExit> }>()
  return {
    async start({ launchId, modelId, address }) {
      const exited = Promise.withResolvers<ProcessExit>()
      const startedAt = performance.now()
      open.set(launchId, { modelId, startedAt: Date.now(), exited })
      return {
        launchId,
        pid: () => null,
        endpoint: { origin: address! },
        exited: exited.promise,
        lastOutputAt: () => startedAt,
      }
    },
    async list() {
      return [...open].map(([launchId, { modelId, startedAt }]) => ({ launchId, modelId, pid: null, startedAt }))
    },
    async stop(launchId) {
      open.get(launchId)?.exited.resolve({ status: 'left', lastError: '' })
      open.delete(launchId)
    },
    logs: () => [],
  }
}
