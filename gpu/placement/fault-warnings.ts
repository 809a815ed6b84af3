import type { Log } from '../../core/log.ts'
import type { Model } from '../../core/models/model.ts'
import { newFaults } from '../estimate/adapters.ts'
import type { ModelState } from '../residency/model-state.ts'

type Placement = ModelState['placement']

/** Logs why files of a model cannot be loaded, and which of its adapters, unless the placement before had the same faults. */
export function warnOfFaults(
  log: Log,
  { id, source }: Pick<Model, 'id' | 'source'>,
  { loadFault, plan }: Placement,
  before: Placement | undefined,
): void {
  if (loadFault && before?.loadFault?.text !== loadFault.text)
    log.warn('A model cannot be loaded', { model: id, source, reason: loadFault.text })
  for (const { id: adapter, fault } of newFaults(plan, before?.plan))
    log.warn('An adapter cannot be used', { model: id, adapter, reason: fault })
}
