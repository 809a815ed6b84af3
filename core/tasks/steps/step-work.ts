import type { Done, ThreadWork } from '../../cpu/thread-work.ts'
import type { StepTask } from '../../schemas/task.ts'
import { taskRecord } from '../registry.ts'
import { tooLarge } from './size.ts'

/** Characters of inputs that are parsed: a value takes three characters at least, and about 50 bytes of memory. */
const maxLength = 32 << 20

/** Thread work of the tasks without a model. */
export const stepWork = {
  /** Returns the result for stored inputs, both as JSON. Throws the Failure of the task. */
  async runStep({ task, inputs }: { task: StepTask; inputs: string }): Promise<Done<Uint8Array>> {
    if (inputs.length > maxLength) throw tooLarge(`inputs of more than ${maxLength >> 20} MiB`)
    const result = await taskRecord(task).work(JSON.parse(inputs) as never)
    const json = new TextEncoder().encode(JSON.stringify(result))
    return { value: json, give: [json] }
  },
} satisfies ThreadWork
