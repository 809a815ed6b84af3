import type { JobRecord } from '../../core/store/store.ts'
import { hasFiles, shownResult as withAddresses } from '../../core/tasks/registry.ts'
import { prune } from '../../core/workflows/prune.ts'
import { Embedded, readResult } from '../http/request/json-text.ts'
import type { Owners } from '../http/request/owners.ts'
import type { Viewer } from './viewer.ts'

type Stored = JobRecord['result']

/** Returns a result with the addresses of its files. A large one is added to `embedded`; without it, it is null. */
export async function shownResult(
  task: string,
  result: Stored,
  { origin }: Pick<Viewer, 'origin'>,
  { files }: Pick<Owners, 'files'>,
  embedded?: Embedded[],
): Promise<unknown> {
  const linked = hasFiles(task)
  if (typeof result === 'object' && result !== null && !linked) {
    const large = embedded && new Embedded(result)
    if (large) embedded.push(large)
    return large ?? null
  }
  if (result === null) return null
  const stored = JSON.parse(await readResult(result)) as unknown
  return linked ? withAddresses(task, stored, file => files.link(file, origin)) : stored
}

/** The kept parts of a result: for the outputs of the execution, and as the result of the node itself. */
export interface ShownKept {
  output: { result: unknown; values: Record<string, unknown> }
  result: unknown
}

/** Returns the kept parts of a node's result. Large results are not parsed on the event loop. */
export async function shownKept(
  { task, outputs }: { task: string; outputs: readonly string[] },
  result: Stored,
  viewer: Pick<Viewer, 'origin'>,
  owners: Pick<Owners, 'cpu' | 'files'>,
  embedded?: Embedded[],
): Promise<ShownKept> {
  if (result === null || typeof result === 'string' || hasFiles(task)) {
    const output = prune(await shownResult(task, result, viewer, owners), outputs)
    return { output, result: output.result }
  }
  if (!embedded) return { output: { result: null, values: {} }, result: null }
  if (outputs.length === 0) {
    const whole = new Embedded(result)
    embedded.push(whole)
    return { output: { result: whole, values: {} }, result: whole }
  }
  const [kept, part] = (['kept', 'result'] as const).map(
    what => new Embedded(() => owners.cpu.pruned(result, outputs, what)),
  ) as [Embedded, Embedded]
  embedded.push(kept, part)
  return { output: kept as unknown as ShownKept['output'], result: part }
}
