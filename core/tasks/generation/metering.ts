import type { Metering } from '../task.ts'

/** Meters tasks that write files: engines count nothing, and the work of a job follows from its inputs. */
export const generationMetering: Metering = { unit: 'nothing', cost: () => 0, work: workOfInputs }

const factors = ['width', 'height', 'num_images', 'num_frames', 'num_inference_steps'] as const

/** Pixels × images or frames × steps, of inputs that have every default filled in. */
function workOfInputs(inputs: string | null): number | null {
  if (!inputs) return null
  let asked: Partial<Record<(typeof factors)[number], unknown>> | null
  try {
    asked = JSON.parse(inputs) as typeof asked
  } catch {
    return null
  }
  if (!asked || !factors.some(name => name in asked)) return null
  let work = 1
  for (const name of factors) {
    const factor = asked[name] ?? 1
    if (typeof factor !== 'number' || !(factor > 0) || !Number.isFinite(factor)) return null
    work *= factor
  }
  return work
}
