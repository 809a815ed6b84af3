import type { EngineLine, EngineOutput } from '../../core/models/fleet.ts'
import { type Output, openOutput } from './output.ts'

export interface Outputs extends EngineOutput {
  /** Begins to keep what a launch prints. */
  open(launch: { launchId: string; modelId: string; secrets: readonly string[] }): Output
  /** The launch is over; its output is kept for a while. */
  ended(launchId: string): void
  lines(launchId: string): string[]
}

/** Outputs of launches that have ended which are kept; at most a megabyte each. */
const keptAfterEnd = 8

/** What engines print: kept for each launch, and told at once to those who follow. */
export function openOutputs(): Outputs {
  const launches = new Map<string, { modelId: string; engineId: string; output: Output; over: boolean }>()
  const followers = new Set<(line: EngineLine) => void>()

  return {
    open({ launchId, modelId, secrets }) {
      // An engine that is started again gets another launch of the same engine.
      const engineId = launchId.replace(/-\d+$/, '')
      const output = openOutput({
        secrets,
        heard(line) {
          for (const follower of followers) follower({ ...line, modelId, engineId })
        },
      })
      launches.set(launchId, { modelId, engineId, output, over: false })
      return output
    },
    ended(launchId) {
      const launch = launches.get(launchId)
      if (launch) launch.over = true
      const over = [...launches].filter(([, one]) => one.over)
      for (const [id] of over.slice(0, -keptAfterEnd)) launches.delete(id)
    },
    lines: launchId => launches.get(launchId)?.output.lines() ?? [],
    recent(modelId, most) {
      const lines = [...launches.values()]
        .filter(launch => modelId === undefined || launch.modelId === modelId)
        .flatMap(launch =>
          launch.output.entries(most).map(line => ({ ...line, modelId: launch.modelId, engineId: launch.engineId })),
        )
        .toSorted((one, other) => one.at - other.at)
      return most === undefined ? lines : lines.slice(Math.max(0, lines.length - most))
    },
    follow(listener) {
      followers.add(listener)
      return () => void followers.delete(listener)
    },
  }
}
