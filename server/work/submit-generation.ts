import { canonicalHash } from '../../core/canonical.ts'
import { Failure, invalid } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import type { Model } from '../../core/models/model.ts'
import { closeSlugs } from '../../core/models/slugs.ts'
import { conversationTask, type GenerationTask, type ImageTask } from '../../core/schemas/task.ts'
import type { FileRecord, JobRecord } from '../../core/store/store.ts'
import { modelFor } from '../../core/tasks/catalog.ts'
import { checkAbilities, type SpecialInputs } from '../../core/tasks/generation/abilities.ts'
import { byKind, fillMedia } from '../../core/tasks/generation/media.ts'
import type { MediaReference, PreparedGeneration } from '../../core/tasks/generation/prepare.ts'
import type { GenerationInputs } from '../../core/tasks/protocols/generation-call.ts'
import { estimateOf, taskRecord } from '../../core/tasks/registry.ts'
import { checkRequestFields } from '../../core/tasks/request-fields.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { Owners } from '../http/request/owners.ts'
import { entryAllowed } from './allowed-models.ts'
import { type JobOptions, type JobTerms, submitJob, submittedBefore } from './submit.ts'

/** Why this server rewrites no prompts, and what to do. */
export const noRewriter =
  "No model rewrites prompts on this server. Set 'prompt_rewriting.model' in infer.yaml to the id of a chat model, and start the server again."

/**
 * Returns how to submit the jobs of a request: deferred until their prompt has been rewritten, if the request asks for that.
 * `group` is the id of its first job: the prompt is rewritten once for all. Throws Failure `unsupported_parameter` if no
 * model rewrites prompts, and as admission does if the caller may not use that model.
 */
export function deferForPrompt(
  exchange: ClientExchange,
  { expansionField: param }: Pick<PreparedGeneration, 'expansionField'>,
  { group, terms }: { group: string; terms: JobTerms | undefined },
  { admission, config }: Owners<'admission' | 'config'>,
): { deferred: boolean; defer: (inputs: GenerationInputs) => GenerationInputs } {
  if (param === undefined) return { deferred: false, defer: inputs => inputs }
  const modelId = config.prompt_rewriting?.model
  if (modelId === undefined) throw invalid(param, `'${param}': ${noRewriter}`, 'unsupported_parameter')
  admission.admit(exchange.caller, { kind: 'call', task: conversationTask, modelId, param })
  const not_before = terms?.notBefore ?? 0
  return { deferred: true, defer: inputs => ({ ...inputs, prompt_expansion: { group, not_before } }) }
}

/** The target of a request: a slug, or a model and one of its tasks. */
export type SlugTarget = { slug: string } | { modelId: string; task: GenerationTask | ImageTask }

export interface SlugOptions {
  target: SlugTarget
  /** The inputs as they were sent. */
  body: unknown
  terms?: JobTerms
  /** Whether to refuse inputs that the task does not know. fal-compatible and OpenAI-compatible routes ignore them. */
  strict?: boolean
}

export interface SubmittedGeneration {
  job: JobRecord
  replayed: boolean
  model: Model
  /** Whether the body asks for a synchronous answer. */
  syncMode: boolean
}

export type SubmitOwners = Owners<'admission' | 'config' | 'files' | 'jobs' | 'log' | 'media' | 'registry' | 'webhooks'>

/**
 * Submits an image or video generation as a durable job: finds the model, asks admission, validates the request, and
 * stores every image, video and audio that it names as a file of the organization. Throws Failure for an invalid
 * request; then nothing is kept.
 */
export async function submitGeneration(
  exchange: ClientExchange,
  { target, body, terms, strict = false }: SlugOptions,
  owners: SubmitOwners,
): Promise<SubmittedGeneration> {
  const { admission } = owners
  const { name, task, slug } = offered(exchange, target, owners)
  const model = owners.registry.find(name)!
  const param = slug === null ? 'model' : null
  const offer = admission.admit(exchange.caller, {
    kind: 'job',
    task,
    modelId: name,
    param,
    estimate: () => estimateOf(task, {}),
  })
  refuseSeveralShapes(body)
  if (strict) checkRequestFields(taskRecord(task), body, model.extra_params)
  const prepared = taskRecord(task).prepare(body, model)
  // A model that edits images may do so with a mask only, or without one only.
  if (prepared.task !== task) admission.admit(exchange.caller, { kind: 'job', task: prepared.task, modelId: name })
  checkAbilities({ ...prepared.inputs, ...imagesOf(prepared.media) }, owners.registry.catalog().get(name)!)
  const id = newId('job')
  const { deferred, defer } = deferForPrompt(exchange, prepared, { group: id, terms }, owners)
  // The same body under another slug is another request.
  if (exchange.bodyHash !== undefined && slug !== null) exchange.bodyHash = canonicalHash([slug, exchange.bodyHash])
  // Checked before the media are fetched, because they may no longer exist at their source.
  const before = await submittedBefore(exchange, [slug, body], owners)
  if (before) {
    exchange.releaseBody()
    return { job: before, replayed: true, model, syncMode: prepared.syncMode }
  }
  admission.requireBudget(offer)
  const stored = await storeMedia(exchange, id, prepared.media, owners)
  exchange.releaseBody()
  const options = () => {
    const filled = fillMedia(prepared, byKind(prepared.media, stored))
    const admitted = admission.estimated(offer, () => estimateOf(task, filled))
    return { id, slug, deferred, terms, admitted, inputs: defer(filled) }
  }
  const submitted = await submitWithFiles(exchange, [slug, body], stored, options, owners)
  return { ...submitted, model, syncMode: prepared.syncMode }
}

/**
 * Submits a job whose files are stored already, with the options that this function returns. It may store more of them. The
 * files are removed if there is no new job: the request is refused, or has created its job before.
 */
export async function submitWithFiles(
  exchange: ClientExchange,
  body: unknown,
  stored: readonly FileRecord[],
  options: () => JobOptions | Promise<JobOptions>,
  owners: Owners<'config' | 'files' | 'jobs' | 'log'>,
): Promise<{ job: JobRecord; replayed: boolean }> {
  try {
    const submitted = await submitJob(exchange, body, await options(), owners)
    if (submitted.replayed) await forget(stored, owners)
    return submitted
  } catch (thrown) {
    await forget(stored, owners)
    throw thrown
  }
}

/** Throws Failure `unsupported_parameter` for `aspect_ratios`: the routes that use this answer with one request. */
function refuseSeveralShapes(body: unknown) {
  const param = 'aspect_ratios'
  if (body === null || typeof body !== 'object' || (body as Record<string, unknown>)[param] == null) return
  throw invalid(
    param,
    `'${param}' makes several videos, and this answers with one. Send a request with 'aspect_ratio' for each, or '${param}' to POST /slug/{slug}.`,
    'unsupported_parameter',
  )
}

/** Finds the name of the model and the task of the target. Throws Failure `model_not_found` or `unsupported_task`, which names alternatives. */
export function offered(exchange: ClientExchange, target: SlugTarget, { registry }: Owners<'registry'>) {
  if ('slug' in target) {
    const found = registry.bySlug(target.slug)
    if (found) return { name: found.name, task: found.task, slug: target.slug }
    const allowed = [...registry.slugs()]
      .filter(([, { name }]) => entryAllowed(exchange, registry.catalog().get(name)!))
      .map(([slug]) => slug)
    const close = closeSlugs(target.slug, allowed).map(slug => `'${slug}'`)
    const instead =
      close.length > 0 ? `Did you mean ${close.join(' or ')}?` : 'GET /api/model-status lists the existing ones.'
    throw new Failure('model_not_found', `There is no model with the slug '${target.slug.slice(0, 128)}'. ${instead}`)
  }
  const { id } = modelFor(taskRecord(target.task), target.modelId, registry.catalog())
  return { name: id, task: target.task, slug: null }
}

/** Returns the number of input images and the field that names them. */
function imagesOf(media: readonly MediaReference[]): Pick<SpecialInputs, 'images' | 'imageField'> {
  const images = media.filter(({ kind }) => kind === 'image')
  return { images: images.length, imageField: images[0]?.field.replace(/\[0\].*$/, '') ?? 'image' }
}

/** Stores the media that the request names as files, in their order: all of them or none. */
export async function storeMedia(
  exchange: ClientExchange,
  jobId: string,
  wanted: readonly MediaReference[],
  owners: Owners<'files' | 'log' | 'media'>,
): Promise<FileRecord[]> {
  const sender = { ...exchange.sender, jobId }
  const settled = await Promise.allSettled(
    wanted.map(({ field, value, kind, alpha }) =>
      owners.media.take(sender, field, exchange.inline.get(value) ?? value, kind, { alpha }),
    ),
  )
  const kept = settled.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
  const refused = settled.find(one => one.status === 'rejected')
  if (refused) {
    await forget(kept, owners)
    throw refused.reason
  }
  return kept
}

/** Removes the files of a job that was not created. A file that cannot be removed now is removed when it expires. */
export async function forget(created: readonly FileRecord[], { files, log }: Owners<'files' | 'log'>): Promise<void> {
  for (const { organizationId, id } of created)
    await files
      .remove(organizationId, id)
      .catch((cause: unknown) => log.warn('A file of a refused request could not be removed', { file: id }, cause))
}
