import type { EngineLine, EngineOutput } from '../../core/models/fleet.ts'
import { type Output, openOutput } from './output.ts'

export interface EngineOutputs extends EngineOutput {
  /** Starts recording the output of a launch. */
  open(launch: { launchId: string; modelId: string; secrets: readonly string[] }): Output
  /** Marks the launch as ended. Its output is kept until `keptAfterEnd` later launches have ended. */
  ended(launchId: string): void
  lines(launchId: string): string[]
  /**
   * Calls the listener with what an engine prints, also with each state of a progress bar that overwrites itself, until
   * the function that it returns is called. The text may contain secrets and is neither stored nor shown.
   */
  watch(engineId: string, listener: (text: string) => void): () => void
}

/** Number of ended launches whose output is kept; at limit a megabyte each. */
const keptAfterEnd = 8

/** Records the output of each launch and passes every line to the followers. */
export function openOutputs(): EngineOutputs {
  const launches = new Map<string, { modelId: string; engineId: string; output: Output; ended: boolean }>()
  const followers = new Set<(line: EngineLine) => void>()
  const watchers = new Set<{ engineId: string; listener: (text: string) => void }>()

  return {
    open({ launchId, modelId, secrets }) {
      // A launch id is the engine id and a launch number.
      const engineId = launchId.replace(/-\d+$/, '')
      const output = openOutput({
        secrets,
        onLine(line) {
          for (const follower of followers) follower({ ...line, modelId, engineId })
        },
        onUpdate(text) {
          for (const watcher of watchers) if (watcher.engineId === engineId) watcher.listener(text)
        },
      })
      launches.set(launchId, { modelId, engineId, output, ended: false })
      return output
    },
    ended(launchId) {
      const launch = launches.get(launchId)
      if (launch) launch.ended = true
      const ended = [...launches].filter(([, one]) => one.ended)
      for (const [id] of ended.slice(0, -keptAfterEnd)) launches.delete(id)
    },
    lines: launchId => launches.get(launchId)?.output.lines() ?? [],
    recent(modelId, limit) {
      const lines = [...launches.values()]
        .filter(launch => modelId === undefined || launch.modelId === modelId)
        .flatMap(launch =>
          launch.output.entries(limit).map(line => ({ ...line, modelId: launch.modelId, engineId: launch.engineId })),
        )
        .toSorted((one, other) => one.at - other.at)
      return limit === undefined ? lines : lines.slice(Math.max(0, lines.length - limit))
    },
    watch(engineId, listener) {
      const watcher = { engineId, listener }
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
    follow(listener) {
      followers.add(listener)
      return () => void followers.delete(listener)
    },
  }
}
