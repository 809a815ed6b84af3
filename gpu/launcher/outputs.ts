import type { EngineLine, EngineOutput } from '../../core/models/fleet.ts'
import { type Output, openOutput } from './output.ts'

export interface Outputs extends EngineOutput {
  /** Starts recording the output of a launch. */
  open(launch: { launchId: string; modelId: string; secrets: readonly string[] }): Output
  /** Marks the launch as ended. Its output is kept until `keptAfterEnd` later launches have ended. */
  ended(launchId: string): void
  lines(launchId: string): string[]
}

/** Number of ended launches whose output is kept; at limit a megabyte each. */
const keptAfterEnd = 8

/** Records the output of each launch and passes every line to the followers. */
export function openOutputs(): Outputs {
  const launches = new Map<string, { modelId: string; engineId: string; output: Output; ended: boolean }>()
  const followers = new Set<(line: EngineLine) => void>()

  return {
    open({ launchId, modelId, secrets }) {
      // A launch id is the engine id and a launch number.
      const engineId = launchId.replace(/-\d+$/, '')
      const output = openOutput({
        secrets,
        onLine(line) {
          for (const follower of followers) follower({ ...line, modelId, engineId })
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
    follow(listener) {
      followers.add(listener)
      return () => void followers.delete(listener)
    },
  }
}
