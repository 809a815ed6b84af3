import type { Exit, Launcher } from './launcher.ts'

/** "Starts" engines that run elsewhere: takes their address as it is. Nothing is there to be stopped or to be read. */
export function openRemoteLauncher(): Launcher {
  const open = new Map<string, { modelId: string; startedAt: number; exited: PromiseWithResolvers<Exit> }>()
  return {
    async start({ launchId, modelId, address }) {
      const exited = Promise.withResolvers<Exit>()
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
      open.get(launchId)?.exited.resolve({ status: 'left', lastWords: '' })
      open.delete(launchId)
    },
    logs: () => [],
  }
}
