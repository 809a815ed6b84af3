import type { Requester } from '../admission/admission.ts'
import { Failure } from '../failure.ts'
import type { Region } from '../schemas/region.ts'
import type { BatchFault, BatchRecord } from '../store/store.ts'
import { type BatchEndpoint, batchWindow, maxFaults, maxInputBytes, targetOf } from './batch-line.ts'
import { type InputFiles, openInputFiles } from './batch-work.ts'
import type { BatchesOptions } from './batches.ts'
import { firstHalf, lineError, openLineAdmission, type PageJobs, storePageJobs } from './feed-lines.ts'
import { openOutputLines } from './output-lines.ts'

/** Milliseconds until lines that must wait for something else are tried again. */
const retryMs = 2_000

/** The steps of batches. Each is done from the state in the store, and may be repeated after a crash. */
export function openBatchSteps(
  options: BatchesOptions & {
    /** How many unfinished batches an organization has. */
    ofOrganization: (id: string) => number
    /** Aborts when the server stops. */
    signal: AbortSignal
  },
) {
  const { store, jobs, files, endpoints, requesterOf, config, ofOrganization, signal } = options
  const input = openInputFiles(options.cpu)
  const validate = openValidation({ ...options, input })
  const { job_retention } = config.limits
  const admitLines = openLineAdmission({
    ...options,
    // Its result is needed until the batch has ended.
    retentionMs: ({ expiresAt }) => (job_retention === 0 ? null : Math.max(0, expiresAt - Date.now()) + job_retention),
  })
  const maxBytes = config.limits.json_body

  const requester = (batch: BatchRecord) =>
    requesterOf(batch.organizationId, batch.tokenId, (batch.region as Region | null) ?? undefined)
  const pathOf = async (batch: BatchRecord): Promise<string | undefined> => {
    const file = await files.api.find(batch.organizationId, batch.inputFileId)
    return file && files.pathOf(file)
  }

  async function check(batch: BatchRecord): Promise<number> {
    const checked = await validate(batch, endpoints.find(batch.endpoint), await requester(batch), signal)
    if ('faults' in checked) await store.batches.fail(batch, checked.faults, Date.now())
    else await store.batches.begin(batch, checked, Date.now())
    return 0
  }

  /** Turns the next lines into jobs, if enough of the earlier ones have ended. */
  async function feed(batch: BatchRecord, patient: boolean): Promise<number> {
    const open = batch.fed - batch.completed - batch.failed
    if (batch.fed === batch.total || batch.restError) return Infinity
    const admits = await requester(batch)
    const endpoint = endpoints.find(batch.endpoint)
    const path = await pathOf(batch)
    const impossible = !admits
      ? new Failure('token_revoked', 'The token that created this batch no longer exists.')
      : !path
        ? new Failure('not_found', `The input file ${batch.inputFileId} no longer exists.`)
        : undefined
    if (impossible) return refuseRest(batch, impossible)
    // Its model may be enabled again.
    if (!endpoint) return retryMs
    const window = batchWindow(ofOrganization(batch.organizationId), admits!.limits.pendingJobs)
    if (open > Math.floor(window / 2)) return Infinity
    const { nextOffset: offset, nextLine: line } = batch
    const lines = window - open
    const page = await input.page({ path: path!, target: targetOf(batch), offset, line, lines, maxBytes })
    return keep(batch, await admitLines(batch, endpoint, page, admits!, patient))
  }

  /** Stores lines as jobs. */
  async function keep(batch: BatchRecord, fed: PageJobs): Promise<number> {
    try {
      await storePageJobs(batch, fed, options)
    } catch (thrown) {
      const { code } = Failure.from(thrown)
      if (code !== 'quota_exceeded' && code !== 'queue_full' && code !== 'storage_full' && code !== 'disk_full')
        throw thrown
      // What running work holds leaves no room for all of them: fewer at a time.
      const { jobs: wanted } = fed
      if (code !== 'disk_full' && wanted.length > 1) return keep(batch, firstHalf(fed))
      return retryMs
    }
    const { stopped } = fed
    if (stopped?.forAll) return refuseRest(batch, stopped.by)
    return fed.lines.length > 0 ? 0 : retryMs
  }

  async function refuseRest(batch: BatchRecord, failure: Failure): Promise<number> {
    await store.batches.refuseRest(batch, lineError(failure), Date.now())
    return 0
  }

  /** Cancels the jobs of lines that have not ended. */
  async function withdraw(batch: BatchRecord): Promise<number> {
    for (const id of await store.batches.running(batch))
      await jobs.cancel(batch.organizationId, id).catch((thrown: unknown) => {
        // It has ended meanwhile.
        if (Failure.from(thrown).code !== 'job_already_finished') throw thrown
      })
    return retryMs
  }

  async function finish(batch: BatchRecord): Promise<number> {
    const path = batch.total > 0 ? await pathOf(batch) : undefined
    if (path) {
      const lines = openOutputLines({ ...options, batch, path, maxBytes, files: input })
      const { organizationId, id, outputLifetimeMs: keptMs } = batch
      const produce = (source: AsyncIterable<string | Uint8Array>, fileId: string, kind: string) =>
        files.api.produce(organizationId, source, {
          id: fileId,
          name: `${id}_${kind}.jsonl`,
          contentType: 'application/jsonl',
          purpose: 'output',
          apiPurpose: 'batch_output',
          expiresAt: { keptMs },
        })
      if (batch.completed > 0) await produce(lines.outputs(), batch.outputFileId, 'output')
      if (batch.total > batch.completed) await produce(lines.errors(), batch.errorFileId, 'error')
    }
    await store.batches.finish(batch, Date.now())
    return 0
  }

  return {
    /**
     * Does the next step. Resolves with the milliseconds until the batch must be looked at again; 0: at once. Unless
     * `patient`, a line whose admission fails for an unknown reason fails alone, and the step goes on.
     */
    async next(batch: BatchRecord, patient: boolean): Promise<number> {
      const { status, expiresAt } = batch
      const isOpen = status === 'validating' || status === 'in_progress'
      const leftMs = expiresAt - Date.now()
      if (isOpen && leftMs <= 0) {
        await store.batches.expire(batch, Date.now())
        return 0
      }
      if (status === 'validating') return check(batch)
      if (status === 'in_progress') return Math.min(leftMs, await feed(batch, patient))
      return batch.fed > batch.completed + batch.failed ? withdraw(batch) : finish(batch)
    },

    /**
     * Ends what can be ended of a batch whose next step fails each time: lines that are not jobs yet fail with the
     * failure; in any other state the whole batch does.
     */
    async giveUp(batch: BatchRecord, failure: Failure): Promise<void> {
      const { code } = failure
      const message =
        code === 'internal_error'
          ? `This could not be processed, although it was tried again for minutes. The log of infer has the cause under the batch ${batch.id}.`
          : failure.message
      const at = Date.now()
      if (batch.status === 'in_progress' && batch.restError === null)
        await store.batches.refuseRest(batch, { ...lineError(failure), message }, at)
      else await store.batches.fail(batch, [{ code, message, param: null, line: null }], at)
    },
  }
}

/** The result of the check of an input file: its lines and first model, or what is wrong with it. */
export type Validated = { total: number; modelId: string | null } | { faults: BatchFault[] }

const ofFile = (code: string, message: string, param: string | null = null): Validated => ({
  faults: [{ code, message, param, line: null }],
})

/** Checks the input file of a batch, and whether the token may use each of its models now. */
function openValidation(options: Pick<BatchesOptions, 'admission' | 'files' | 'config'> & { input: InputFiles }) {
  const { admission, files, input, config } = options
  /** Returns why the token cannot use a model for the task; undefined if it can. */
  function refusal(requester: Requester, endpoint: BatchEndpoint, modelId: string): Failure | undefined {
    try {
      admission.admit(requester, { kind: 'line', task: endpoint.task, modelId })
      return undefined
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure.code === 'internal_error') throw thrown
      // What may pass does not make the file invalid.
      return failure.retryable ? undefined : failure
    }
  }

  return async (
    batch: BatchRecord,
    endpoint: BatchEndpoint | undefined,
    requester: Requester | undefined,
    signal: AbortSignal,
  ): Promise<Validated> => {
    const file = await files.api.find(batch.organizationId, batch.inputFileId)
    if (!file) return ofFile('not_found', `The file ${batch.inputFileId} no longer exists.`, 'input_file_id')
    if (file.bytes > maxInputBytes)
      return ofFile(
        'file_too_large',
        `The file has ${file.bytes} bytes. An input file may have ${maxInputBytes >> 20} MiB.`,
      )
    if (!requester) return ofFile('token_revoked', 'The token that created this batch no longer exists.')
    if (!endpoint) return ofFile('model_not_found', `There is no model for ${batch.endpoint}.`, 'endpoint')
    const target = { endpoint: endpoint.path, namesModel: endpoint.modelId === undefined }
    const maxBytes = config.limits.json_body
    const rules = { ...target, bounds: config.limits, maxBytes }
    const checked = await input.check({ path: files.pathOf(file), ...rules }, signal)
    const { total, models } = checked
    const named = endpoint.modelId === undefined ? models : [{ id: endpoint.modelId, lines: [1] }]
    const refused = named.flatMap(({ id, lines }) => {
      const failure = refusal(requester, endpoint, id)
      if (!failure) return []
      const { code, message } = failure
      return lines.map((line): BatchFault => ({ code, message, param: 'body.model', line }))
    })
    const faults = [...checked.faults, ...refused].toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)).slice(0, maxFaults)
    return faults.length > 0 ? { faults } : { total, modelId: named[0]?.id ?? null }
  }
}
