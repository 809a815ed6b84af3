import type { EngineProgress } from '../../core/models/fleet.ts'
import type { EngineOutputs } from '../launcher/outputs.ts'
import type { ProgressLines } from '../presets/preset.ts'
import { presetOf } from '../presets/presets.ts'
import type { Resident } from '../residency/model-state.ts'

/** Returns a function that reads one line after the other, and returns the progress that a line reports. */
export function progressReader({ begins, bar, ends }: ProgressLines): (line: string) => EngineProgress | undefined {
  let counts = false
  let [pass, last] = [0, Number.POSITIVE_INFINITY]
  return line => {
    const found = bar.exec(line)?.groups
    if (!found) {
      if (begins.test(line)) [counts, last] = [true, Number.POSITIVE_INFINITY]
      else if (ends.test(line)) counts = false
      return undefined
    }
    const [step, steps] = [Number(found.step), Number(found.steps)]
    if (!counts || step < 1 || step > steps) return undefined
    if (step < last) pass++
    last = step
    return { pass, step, steps }
  }
}

/** Returns how to follow the progress that an engine prints; undefined if its preset cannot read it. */
export function progressFollower(outputs: Pick<EngineOutputs, 'watch'>, { engineId, serves }: Resident) {
  const { progress } = presetOf(serves.model)
  if (!progress) return undefined
  return (listener: (progress: EngineProgress) => void): (() => void) => {
    const read = progressReader(progress)
    return outputs.watch(engineId, line => {
      const reported = read(line)
      if (reported) listener(reported)
    })
  }
}
