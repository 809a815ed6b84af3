import type { Metering } from '../task.ts'

/** Meters generation tasks. Engines report no usage, so the cost is 0 and the work is computed from the inputs. */
export const generationMetering: Metering = { unit: 'nothing', cost: () => 0, work: workOfInputs }

const factors = ['width', 'height', 'num_images', 'num_frames', 'num_inference_steps'] as const

/** Returns pixels × images or frames × steps. The inputs must have all defaults. */
function workOfInputs(inputs: string | null): number | null {
  if (!inputs) return null
  let parsed: Partial<Record<(typeof factors)[number], unknown>> | null
  try {
    parsed = JSON.parse(inputs) as typeof parsed
  } catch {
    return null
  }
  if (!parsed || !factors.some(name => name in parsed)) return null
  let work = 1
  for (const name of factors) {
    const factor = parsed[name] ?? 1
    if (typeof factor !== 'number' || !(factor > 0) || !Number.isFinite(factor)) return null
    work *= factor
  }
  return work
}
