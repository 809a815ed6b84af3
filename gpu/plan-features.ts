import { basename } from 'node:path'
import { engineFacts } from '../core/models/engine-facts.ts'
import type { Model } from '../core/models/model.ts'
import type { ModelPlan } from '../core/models/model-plan.ts'
import { durationText } from '../core/quantity-text.ts'
import type { Caches } from './caches/caches.ts'
import { formatBytes } from './engines/gguf/sizing.ts'
import { plannedAdapters } from './estimate/adapters.ts'
import type { MemoryPlan } from './estimate/estimate.ts'
import { generates } from './presets/preset.ts'
import type { ModelState } from './residency/model-state.ts'
import { savesConversations } from './saved-conversations.ts'

/** What the configuration gives a model besides its place. */
export const plannedFeatures = async (
  model: Model,
  { residents, placement: { plan } }: Pick<ModelState, 'residents' | 'placement'>,
  caches: Pick<Caches, 'of' | 'limits'> | undefined,
): Promise<Pick<ModelPlan, 'adapters' | 'affinity' | 'guesses' | 'saved' | 'savedDetail'>> => ({
  adapters: await plannedAdapters(model, plan),
  affinity: plannedAffinity(model, residents.length),
  guesses: plannedGuesses(model, plan),
  ...plannedSaves(model, caches),
})

/** How prompts choose among the engines of a model; null for a model that has one engine at most or no prompts. Pure. */
export function plannedAffinity(model: Model, engines: number): ModelPlan['affinity'] {
  const most = Math.max(engines, model.replicas.min, model.replicas.max)
  if (most < 2 || !generates(model)) return null
  return {
    engines: most,
    detail: `Of up to ${most} engines, a prompt goes to the one that has computed its beginning, unless that is busier than the average by more than a quarter.`,
  }
}

/** What guesses tokens for a model; null where nothing does. Pure. */
export function plannedGuesses(
  { speculative, engine }: Pick<Model, 'speculative' | 'engine'>,
  plan: Pick<MemoryPlan, 'draftBytes'> = {},
): ModelPlan['guesses'] {
  if (!speculative) return null
  const { tokens, draft_model } = speculative
  const draftBytes = plan.draftBytes ?? null
  // Callers of other organizations read it: a path says where the files of this machine are.
  const draftModel = draft_model?.startsWith('/') ? basename(draft_model) : (draft_model ?? null)
  const often = engineFacts(engine).isBuiltIn ? ' This is done only while it is faster for all requests together.' : ''
  const memory =
    draftBytes === null
      ? 'whose memory is not known'
      : `whose weights and cache take ${formatBytes(draftBytes)} of its memory`
  const how =
    draftModel === null ? 'from what the text repeats, without a further model' : `by '${draftModel}', ${memory}`
  return { tokens, draftModel, draftBytes, detail: `Up to ${tokens} tokens at once are guessed ${how}.${often}` }
}

/** What is saved of the conversations of a model, and where or why not; `detail` is null for a model without conversations. */
export function plannedSaves(
  model: Model,
  caches: Pick<Caches, 'of' | 'limits'> | undefined,
): Pick<ModelPlan, 'saved' | 'savedDetail'> {
  if (!generates(model)) return { saved: null, savedDetail: null }
  if (!savesConversations(model) || !caches) {
    const why = model.speculative?.draft_model
      ? 'No conversations are saved: the draft model would not have their memory.'
      : 'Its engine saves no conversations.'
    return { saved: null, savedDetail: why }
  }
  const limits = caches.limits()
  const counts = caches.of(model)
  if (!counts || limits.limitBytes === 0) {
    const why = limits.fault ?? "'caches.memory' is 0."
    return { saved: null, savedDetail: `No conversations are saved: ${why}` }
  }
  const { limitBytes, ageMs, disk } = limits
  const copies = disk ? ', with encrypted copies on disk' : ''
  return {
    saved: { ...counts, limitBytes, ageMs, disk },
    savedDetail: `Conversations are saved in main memory for ${durationText(ageMs)} after their last use${copies}: at most ${formatBytes(limitBytes)} of all models together.`,
  }
}
