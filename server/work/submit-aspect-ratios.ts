import { createReadStream } from 'node:fs'
import { canonicalHash } from '../../core/canonical.ts'
import { invalid } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import type { FileRecord } from '../../core/store/store.ts'
import { byKind, fillMedia } from '../../core/tasks/generation/media.ts'
import type { AspectRatio } from '../../core/tasks/generation/size.ts'
import { estimateOf, taskRecord } from '../../core/tasks/registry.ts'
import { checkRequestFields } from '../../core/tasks/request-fields.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { Owners } from '../http/request/owners.ts'
import { allSubmittedBefore, type JobTerms, submitJobs } from './submit.ts'
import { deferForPrompt, forget, offered, type SubmitOwners, storeMedia } from './submit-generation.ts'

export interface AspectRatiosOptions {
  slug: string
  /** The whole body, with `aspect_ratios`. */
  body: Record<string, unknown>
  ratios: readonly AspectRatio[]
  terms: JobTerms
}

/** Fields that decide the size themselves, or that a request for several videos cannot have. */
const excluded = ['aspect_ratio', 'image_size', 'width', 'height'] as const

/**
 * Submits one video for each aspect ratio: each is a job of its own with its own files, all are stored in one commit.
 * Resolves with the jobs in the order of the ratios. Throws Failure as `submitGeneration` does; then nothing is kept.
 */
export async function submitAspectRatios(exchange: ClientExchange, options: AspectRatiosOptions, owners: SubmitOwners) {
  const { slug, body, ratios, terms } = options
  const { admission } = owners
  const { name, task } = offered(exchange, { slug }, owners)
  const model = owners.registry.find(name)!
  const estimate = () => estimateOf(task, {})
  const offer = admission.admit(exchange.caller, { kind: 'job', task, modelId: name, param: null, estimate })
  const record = taskRecord(task)
  const { aspect_ratios: _, ...shared } = body
  requireAspectRatios(record, slug, shared)
  checkRequestFields(record, shared, model.extra_params)
  const prepared = ratios.map(aspect_ratio => record.prepare({ ...shared, aspect_ratio }, model))
  const ids = ratios.map(() => newId('job'))
  const { deferred, defer } = deferForPrompt(exchange, prepared[0]!, { group: ids[0]!, terms }, owners)
  if (exchange.bodyHash !== undefined) exchange.bodyHash = canonicalHash([slug, exchange.bodyHash])
  const before = await allSubmittedBefore(exchange, [slug, body], ratios.length, owners)
  if (before) {
    exchange.releaseBody()
    return before
  }
  admission.requireBudget(offer)
  const kept: FileRecord[] = []
  try {
    // Fetched once, so that all videos have the same input. Each job has its own copy, which is removed with the job.
    const first = await storeMedia(exchange, ids[0]!, prepared[0]!.media, owners)
    kept.push(...first)
    exchange.releaseBody()
    const filled = [fillMedia(prepared[0]!, byKind(prepared[0]!.media, first))]
    for (const [at, one] of prepared.entries()) {
      if (at === 0) continue
      const copies: FileRecord[] = []
      for (const file of first) {
        const copy = await copyFor(ids[at]!, file, owners)
        copies.push(copy)
        kept.push(copy)
      }
      filled.push(fillMedia(one, byKind(one.media, copies)))
    }
    const jobs = filled.map((inputs, at) => ({
      id: ids[at]!,
      admitted: admission.estimated(offer, () => estimateOf(task, inputs)),
      slug,
      inputs: defer(inputs),
      terms,
      deferred,
    }))
    const submitted = await submitJobs(exchange, [slug, body], jobs, owners)
    const replayed = new Set(submitted.flatMap((one, at) => (one.replayed ? [ids[at]!] : [])))
    await forget(
      kept.filter(({ jobId }) => jobId !== null && replayed.has(jobId)),
      owners,
    )
    return submitted.map(({ job }) => job)
  } catch (thrown) {
    await forget(kept, owners)
    throw thrown
  }
}

/** Throws Failure for a task without aspect ratios, and for fields that contradict `aspect_ratios`. */
function requireAspectRatios(
  { id, category, request }: ReturnType<typeof taskRecord>,
  slug: string,
  body: Record<string, unknown>,
): void {
  const param = 'aspect_ratios'
  if (category !== 'video' || !Object.hasOwn((request as unknown as { shape: object }).shape, 'aspect_ratio'))
    throw invalid(
      param,
      `'${param}' makes a video for each aspect ratio, but the slug '${slug}' is ${id}, which ${category === 'video' ? 'keeps the shape of its input' : 'makes images'}. Remove '${param}'.`,
      'unsupported_parameter',
    )
  const other = excluded.find(name => body[name] != null)
  if (other !== undefined)
    throw invalid(
      param,
      `'${param}' sets the shape of each video, so '${other}' cannot be sent with it. Remove one of them.`,
    )
}

/** Copies an input file for another job. Rejects with Failure `disk_full`. */
const copyFor = (jobId: string, file: FileRecord, { files }: Owners<'files'>) =>
  files.receive(file.organizationId, createReadStream(files.pathOf(file)), {
    purpose: file.purpose,
    name: file.name,
    contentType: file.contentType,
    width: file.width,
    height: file.height,
    durationMs: file.durationMs,
    jobId,
    expiresAt: file.expiresAt,
    maxBytes: file.bytes,
  })
