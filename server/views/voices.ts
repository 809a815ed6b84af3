import { AbortSource } from '../../core/abort-source.ts'
import { Failure } from '../../core/failure.ts'
import { type ListedModel, nameAllowed } from '../../core/models/model-names.ts'
import { plainVoice, type Voice } from '../../core/tasks/protocols/openai-audio.ts'
import { audioProtocol } from '../../core/tasks/protocols/protocols.ts'
import type { Owners } from '../http/request/owners.ts'
import type { Viewer } from './job-record.ts'

/** Returns the speech models that the caller may use. */
export function speechModels({ caller }: Viewer, { registry }: Owners<'registry'>): ListedModel[] {
  const catalog = registry.catalog()
  return [...registry.names()].flatMap(({ kind, listed }) =>
    kind !== 'alias' && catalog.get(listed.id)?.traits.speech && nameAllowed(caller.token.models, listed)
      ? [listed]
      : [],
  )
}

/** Milliseconds to wait for an engine's list of voices. */
const timeoutMs = 2_000

/** Returns the configured or known voices; else those that the engine reports, if it runs and has a free slot. */
export async function voicesOf(model: ListedModel, { jobs, registry }: Owners<'jobs' | 'registry'>): Promise<Voice[]> {
  const traits = registry.catalog().get(model.id)?.traits
  const known = traits?.speech?.voices
  if (known) return known.map(plainVoice)
  const route = traits?.routes.synthesize
  const lease = route === undefined ? undefined : jobs.idleSlot(model.modelId)
  if (!lease) return []
  const timeout = new AbortSource()
  const timer = setTimeout(
    () => timeout.abort(new Failure('timeout', 'The engine did not report its voices in time.')),
    timeoutMs,
  )
  try {
    return await audioProtocol(route!).voices(lease, route!.path, timeout)
  } catch {
    // Many engines have no route for voices, so an empty list is no error.
    return []
  } finally {
    clearTimeout(timer)
    lease.release()
  }
}
