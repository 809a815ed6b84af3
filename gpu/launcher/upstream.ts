import type { Launch, Launcher } from './launcher.ts'

/** Launcher for engines that run elsewhere and are only called: it ends no process, knows no output and no devices. */
export function openUpstreamLauncher(): Launcher {
  const launches = new Map<string, Launch>()
  const listeners = new Set<() => void>()
  return {
    pollMs: 60_000,
    async start({ launchId, engineId, modelId, addresses = [] }) {
      if (launches.has(launchId)) return
      const endpoint = { origin: addresses[0]!, origins: addresses, generation: 1 }
      launches.set(launchId, { ...unknown, launchId, engineId, modelId, endpoint })
    },
    list: async () => [...launches.values()],
    async stop(launchId) {
      launches.delete(launchId)
      for (const listener of listeners) listener()
    },
    async *logs() {},
    capacity: async () => ({ devices: [], reason: null, broken: false }),
    watch(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    note() {},
    async leave() {},
    async close() {},
  }
}

const unknown = {
  state: 'running',
  reason: null,
  node: null,
  pid: null,
  status: null,
  endsAt: null,
  note: null,
  secrets: [],
} as const
