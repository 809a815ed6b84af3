import type { Requester } from '../admission/admission.ts'
import { Failure } from '../failure.ts'
import type { BatchFault, BatchRecord } from '../store/store.ts'
import type { BatchEndpoint } from './batch-endpoint.ts'
import { maxFaults, maxInputBytes } from './batch-limits.ts'
import type { BatchesOptions } from './batches.ts'
import type { InputFiles } from './input-files.ts'

/** The result of the check of an input file: its lines and first model, or what is wrong with it. */
export type Validated = { total: number; modelId: string | null } | { faults: BatchFault[] }

const ofFile = (code: string, message: string, param: string | null = null): Validated => ({
  faults: [{ code, message, param, line: null }],
})

/** Checks the input file of a batch, and whether the token may use each of its models now. */
export function openValidation({
  admission,
  files,
  input,
  config,
}: Pick<BatchesOptions, 'admission' | 'files' | 'config'> & { input: InputFiles }) {
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
    const checked = await input.check(
      {
        path: files.pathOf(file),
        endpoint: endpoint.path,
        namesModel: endpoint.modelId === undefined,
        maxBytes: config.limits.json_body,
      },
      signal,
    )
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
