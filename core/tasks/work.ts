import { isPainted, type Task } from '../schemas/task.ts'

/**
 * How much work a job is, to compare it with others of its model: pixels × pictures or frames × steps for a generation,
 * whose inputs have every default filled in; 1 for text. Null where the inputs do not say.
 */
export function workOf(task: Task, inputs: string | null): number | null {
  if (!isPainted(task)) return 1
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

const factors = ['width', 'height', 'num_images', 'num_frames', 'num_inference_steps'] as const
