import type { JobRecord } from '../../core/store/store.ts'
import { hasFiles, shownResult as withAddresses } from '../../core/tasks/result-files.ts'
import { prune } from '../../core/workflows/prune.ts'
import type { Call } from '../call.ts'
import { Embedded, readResult } from '../embedded.ts'
import { originOf } from '../origin.ts'

type Stored = JobRecord['result']

/** A result as it is sent: files by address. A large one is put among the embedded; null where there are none. */
export async function shownResult(task: string, result: Stored, call: Call, embedded?: Embedded[]): Promise<unknown> {
  const files = hasFiles(task)
  if (typeof result === 'object' && result !== null && !files) {
    const large = embedded && new Embedded(result)
    if (large) embedded.push(large)
    return large ?? null
  }
  if (result === null) return null
  const stored = JSON.parse(await readResult(result)) as unknown
  if (!files) return stored
  const origin = originOf(call)
  return withAddresses(task, stored, file => call.owners.files.link(file, origin))
}

/** What a node keeps, as it stands among the outputs of its execution, and its result as it stands with the node. */
export interface ShownKept {
  output: { result: unknown; values: Record<string, unknown> }
  result: unknown
}

/** What a node keeps of its result. Large results are not looked through on the loop. */
export async function shownKept(
  { task, outputs }: { task: string; outputs: readonly string[] },
  result: Stored,
  call: Call,
  embedded?: Embedded[],
): Promise<ShownKept> {
  if (result === null || typeof result === 'string' || hasFiles(task)) {
    const output = prune(await shownResult(task, result, call), outputs)
    return { output, result: output.result }
  }
  if (!embedded) return { output: { result: null, values: {} }, result: null }
  if (outputs.length === 0) {
    const whole = new Embedded(result)
    embedded.push(whole)
    return { output: { result: whole, values: {} }, result: whole }
  }
  const [kept, part] = (['kept', 'result'] as const).map(
    what => new Embedded(() => call.owners.cpu.pruned(result.path, outputs, what)),
  ) as [Embedded, Embedded]
  embedded.push(kept, part)
  return { output: kept as unknown as ShownKept['output'], result: part }
}
