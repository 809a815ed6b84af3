import { AbortSource } from '../../core/abort-source.ts'
import { modelAllowed } from '../../core/accounts/accounts.ts'
import { Failure } from '../../core/failure.ts'
import type { Model } from '../../core/models/model.ts'
import { audioProtocol } from '../../core/tasks/protocols/protocols.ts'
import { plainVoice, type Voice } from '../../core/tasks/protocols/voices.ts'
import { speech } from '../../core/tasks/speech/speech.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'

/** The models that speak and that the caller may use. */
export function speechModels({ caller }: Call, { registry }: Pick<Owners, 'registry'>): Model[] {
  const catalog = registry.catalog()
  return registry
    .all()
    .filter(({ id }) => catalog.get(id)?.traits.speech !== undefined && modelAllowed(caller.token.models, id))
}

/** An engine that does not say at once what voices it has is not waited for. */
const patienceMs = 2_000

/** What is configured or known of its engine; otherwise what the engine says, if it runs and has a moment. */
export async function voicesOf(model: Model, { jobs, registry }: Pick<Owners, 'jobs' | 'registry'>): Promise<Voice[]> {
  const traits = registry.catalog().get(model.id)?.traits
  const known = traits?.speech?.voices
  if (known) return known.map(plainVoice)
  const route = traits?.routes[speech.id]
  const lease = route === undefined ? undefined : jobs.idleSlot(model.id)
  if (!lease) return []
  const enough = new AbortSource()
  const timer = setTimeout(
    () => enough.abort(new Failure('timeout', 'The engine did not name its voices.')),
    patienceMs,
  )
  try {
    return await audioProtocol(route!).voices(lease, route!.path, enough)
  } catch {
    // Many engines have no such route; a list of voices is worth no error.
    return []
  } finally {
    clearTimeout(timer)
    lease.release()
  }
}
